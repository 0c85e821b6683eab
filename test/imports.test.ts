import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Which room may import which other; its own files and packages from the registry are always fine. */
const ARROWS: Record<string, string[]> = {
  sandboxd: [],
  bench: ['sandboxd'],
  test: ['sandboxd'],
}

function sources(room: string): string[] {
  return readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !/(^|\/)(node_modules|dist)\//.test(path))
    .map((path) => join(root, room, path))
}

function importsOf(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '')
}

const imports = Object.keys(ARROWS).flatMap((room) =>
  sources(room).flatMap((from) => importsOf(from).map((to) => ({ room, from: relative(root, from), to }))),
)
const files = imports
  .filter(({ to }) => to.startsWith('.'))
  .map(({ from, to, room }) => ({ room, from, to: relative(root, resolve(root, dirname(from), to)) }))

test('a room imports only the rooms that its arrows name', () => {
  const wrong = files.filter(({ room, to }) => {
    const target = to.split('/')[0] ?? ''
    return target !== room && !ARROWS[room]?.includes(target)
  })
  expect(wrong).toEqual([])
})

test('no room reaches into another through the registry’s door', () => {
  expect(imports.filter(({ room, to }) => to.startsWith('@boltyard/') && !ARROWS[room]?.includes(to.slice(10)))).toEqual([])
})

test('inside sandboxd: the API uses the node, the node and the hub do not know the API; the ledger and the codecs are pure', () => {
  const arrows: [from: RegExp, to: RegExp][] = [
    [/^sandboxd\/src\/(node|hub|lightning)\//, /^sandboxd\/src\/(api\/|daemon|main)/],
    [/^sandboxd\/src\/lightning\//, /^sandboxd\/src\/(?!lightning)/],
    [/^sandboxd\/src\/node\/(ledger|liquidity|turns|faults)\.ts/, /^sandboxd\/src\/(journal|json-|log|hub)/],
    [/^sandboxd\/src\//, /^sandboxd\/test\//],
  ]
  expect(files.filter(({ from, to }) => arrows.some(([source, target]) => source.test(from) && target.test(to)))).toEqual([])
})

test('the arrows are looked at: every room was found and has imports', () => {
  for (const room of Object.keys(ARROWS)) expect(imports.some((one) => one.room === room)).toBe(true)
})
