import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const source = join(import.meta.dirname, '../src')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))

test('dashboard: every pattern of a field compiles as browsers compile it, with the flag v', () => {
  const found = files.flatMap((path) => {
    const text = readFileSync(join(source, path), 'utf8')
    return [...text.matchAll(/\bpattern=(?:"([^"]*)"|\{.*)/g)].map(([attribute, pattern]) => ({ path, attribute, pattern }))
  })
  expect(found).not.toEqual([])
  // Only a literal pattern can be compiled here.
  const wrong = found.filter(({ pattern }) => pattern === undefined || !compiles(pattern))
  expect(wrong.map(({ path, attribute }) => `${path}: ${attribute}`)).toEqual([])
  expect(compiles(' *[A-Za-z0-9._-]{1,64} *')).toBe(false)
})

/** If a pattern does not compile, the browser ignores it. */
function compiles(pattern: string): boolean {
  try {
    new RegExp(`^(?:${pattern})$`, 'v')
    return true
  } catch {
    return false
  }
}
