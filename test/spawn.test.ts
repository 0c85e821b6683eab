import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const ROOMS = ['server/src', 'sandboxd/src']
const files = ROOMS.flatMap((room) =>
  readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(room, path)),
)

/** From the name to the closing bracket of the call. */
function callsIn(text: string): string[] {
  return [...text.matchAll(/(?<![.\w#])(spawn|spawnSync|exec|execSync|execFile|execFileSync|fork)\(/g)].map((match) => {
    let depth = 0
    for (let at = match.index; ; at++) {
      if (text[at] === '(') depth++
      if (text[at] === ')' && --depth === 0) return text.slice(match.index, at + 1)
      if (at >= text.length) throw new Error('a call that does not end')
    }
  })
}

/** The environment argument: in the call itself, or in the definition of the name that the call uses. */
function environmentOf(call: string, text: string): string | undefined {
  const direct = /\benv:\s*(\{[^}]*\}|[\w.()]+)/.exec(call)?.[1]
  if (direct !== undefined) return direct
  const name = /,\s*(\w+),?\s*\)$/.exec(call)?.[1]
  return name === undefined ? undefined : new RegExp(`const ${name} = [^\\n]*\\benv:\\s*(\\{[^}]*\\})`).exec(text)?.[1]
}

test('security 6: every process gets its own environment, with nothing of ours except PATH', () => {
  const started = files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    return text.includes('node:child_process')
      ? callsIn(text).map((call) => ({ file, call, env: environmentOf(call, text) }))
      : []
  })
  expect(started.length).toBeGreaterThanOrEqual(6)
  expect(started.filter(({ env }) => env === undefined)).toEqual([])
  const ours = started.filter(({ env = '' }) => /process\.env/.test(env.replace('PATH: process.env.PATH', '')))
  expect(ours).toEqual([])
})

test('security 6: only node:child_process starts processes, and it is imported by name', () => {
  const wrong = files.filter((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    const imports = [...text.matchAll(/^import (.*) from '(?:node:)?(child_process|cluster|worker_threads)'$/gm)]
    return (
      imports.some(([, names = '', module]) => module !== 'child_process' || !names.startsWith('{')) ||
      /import\('(node:)?child_process'\)/.test(text)
    )
  })
  expect(wrong).toEqual([])
})
