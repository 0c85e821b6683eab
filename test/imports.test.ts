import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Which room may import which other; its own files and packages from the registry are always fine. */
const ARROWS: Record<string, string[]> = {
  cli: ['protocol', 'sdk'],
  contract: [],
  dashboard: ['contract', 'protocol'],
  protocol: [],
  sandboxd: [],
  sdk: ['protocol'],
  server: ['contract', 'protocol'],
  testing: ['server'],
  bench: ['protocol', 'sandboxd', 'sdk', 'server'],
  examples: ['bench', 'sdk'],
  test: ['cli', 'contract', 'protocol', 'sandboxd', 'sdk', 'server', 'bench', 'examples', 'testing'],
}

function sources(room: string): string[] {
  return readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !/(^|\/)(node_modules|dist)\//.test(path))
    .map((path) => join(root, room, path))
}

function importsOf(path: string): string[] {
  // Templates hold programs that are shown to people, with imports of their own.
  const text = readFileSync(path, 'utf8').replace(/`[^`]*`/g, '')
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '')
}

const imports = Object.keys(ARROWS).flatMap((room) =>
  sources(room).flatMap((from) => importsOf(from).map((to) => ({ room, from: relative(root, from), to }))),
)
const files = imports
  .filter(({ to }) => to.startsWith('.'))
  .map(({ from, to, room }) => ({ room, from, to: relative(root, resolve(root, dirname(from), to)) }))

test('a room imports only the rooms that its arrows name; its tests may use another room’s harness', () => {
  const wrong = files.filter(({ room, from, to }) => {
    const target = to.split('/')[0] ?? ''
    const harness = from.startsWith(`${room}/test/`) && (to.startsWith(`${target}/test/`) || target === 'testing')
    return target !== room && !ARROWS[room]?.includes(target) && !harness
  })
  expect(wrong).toEqual([])
})

test('no room reaches into another through the registry’s door', () => {
  const wrong = imports.filter(
    ({ room, to }) => /^@boltyard\/(\w+)/.test(to) && ![room, ...(ARROWS[room] ?? [])].includes(to.split('/')[1] ?? ''),
  )
  expect(wrong).toEqual([])
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

test('inside the server: http → nodes, gateway, accounts → store; gateway → lightning; a runtime knows no HTTP; what is pure imports nothing that is not', () => {
  const src = 'server/src'
  const arrows: [from: string, to: string][] = [
    [`${src}/store/`, `${src}/(http|gateway|accounts|runtimes|lightning)/`],
    [`${src}/accounts/`, `${src}/(http|gateway|runtimes)/`],
    [`${src}/nodes/`, `${src}/(http|gateway|runtimes)/`],
    [`${src}/gateway/`, `${src}/(http|runtimes|accounts)/`],
    [`${src}/runtimes/`, `${src}/(http|gateway|accounts)/`],
    [`${src}/lightning/`, `${src}/(http|gateway|accounts|runtimes)/`],
    [`${src}/lightning/`, `${src}/(nodes|store)/`],
    [`${src}/(nodes/node|problems|platform/ids|platform/secrets|accounts/keys/key-format)\\.ts`, `${src}/`],
    [`${src}/`, `${src}/main\\.ts`],
  ]
  const wrong = files.filter(({ from, to }) =>
    arrows.some(([source, target]) => new RegExp(`^${source}`).test(from) && new RegExp(`^${target}`).test(to)),
  )
  expect(wrong).toEqual([])
})

test('the server’s environment goes from main to config.ts and nowhere else, but for PATH and the crash points', () => {
  const readers = sources('server/src').filter((path) => /process\.env\b/.test(readFileSync(path, 'utf8')))
  expect(readers.map((path) => relative(root, path)).sort()).toEqual([
    'server/src/main.ts',
    'server/src/platform/crashpoint.ts',
    'server/src/platform/linux.ts',
  ])
})

test('C30: what a node is made of, the full password with it, is opened by the node host for the runtime; no path of a request names it', () => {
  const naming = (pattern: RegExp): string[] =>
    sources('server/src')
      .filter((path) => pattern.test(readFileSync(path, 'utf8')))
      .map((path) => relative(root, path).replace('server/src/', ''))
      .sort()
  expect(naming(/\b(openMaterial|findMaterial)\b/)).toEqual(['node-host.ts', 'nodes/material.ts', 'store/nodes.ts'])
  expect(naming(/'node material'/)).toEqual(['nodes/material.ts', 'nodes/reseal.ts'])
})

test('the arrows are looked at: every room was found and has imports', () => {
  for (const room of Object.keys(ARROWS)) expect(imports.some((one) => one.room === room)).toBe(true)
})
