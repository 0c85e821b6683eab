import { cpSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { type Created, Yard } from '../../support/crash.ts'
import { type Key, temporaryDirectory } from '../../support/server.ts'
import { adopt, command, idOf } from './moving.ts'

/** C70: tools that copy a directory between machines may lose or mix files without an error. */

const FUNDED_SAT = 5_000

let home: Yard
let away: Yard
let abroad: Key
let created: Created
let released: string

beforeAll(async () => {
  ;[home, away] = await Promise.all([new Yard().start(), new Yard().start()])
  abroad = await away.newKey(['nodes:write'])
  created = await home.createReady()
  await home.fund(created.node.id, FUNDED_SAT)
  released = join(temporaryDirectory(), 'released')
  expect((await command(home, ['release', created.node.id, released])).code).toBe(0)
})

const refusal = (says: string) => ({ code: 78, signal: null, stderr: expect.stringContaining(says) })
const database = (): string => readdirSync(released).find((name) => name.endsWith('.db')) ?? ''

function copyOf(directory: string): string {
  const copy = join(temporaryDirectory(), 'copy')
  cpSync(directory, copy, { recursive: true })
  return copy
}

test.each<[string, (copy: string) => void, string]>([
  ['a database that was cut short', (copy) => truncateSync(join(copy, database()), 100), 'differs from what the release wrote'],
  [
    'the log of another copy',
    (copy) => writeFileSync(join(copy, `${database()}-wal`), 'older'),
    'differs from what the release wrote',
  ],
  [
    'a log that is missing',
    (copy) => {
      const path = join(copy, 'boltyard.json')
      const manifest = JSON.parse(readFileSync(path, 'utf8'))
      manifest.files.push({ name: `${database()}-wal`, bytes: 1, sha256: '0'.repeat(64) })
      writeFileSync(path, JSON.stringify(manifest))
    },
    '-wal is missing',
  ],
])('C70: a released directory with %s is refused, and nothing changes', async (_, damage, says) => {
  const copy = copyOf(released)
  damage(copy)
  expect(await adopt(away, copy, abroad)).toEqual(refusal(says))
  expect(readFileSync(join(copy, 'seed.dat'), 'utf8')).toBe(created.credentials.seed)
})

test('C70: a directory that was copied into an older copy is refused, also with --newest', async () => {
  const copy = copyOf(released)
  cpSync(released, join(copy, 'kiosk'), { recursive: true })
  for (const more of [[], ['--newest']])
    expect(await adopt(away, copy, abroad, ...more)).toEqual(refusal('contains another wallet in "kiosk"'))
})

test('C70: a released directory on which phoenixd has run is adopted with --newest', async () => {
  const copy = copyOf(released)
  writeFileSync(join(copy, `${database()}-journal`), 'written since')
  expect(await adopt(away, copy, abroad)).toEqual(refusal('add --newest'))
  const id = idOf(await adopt(away, copy, abroad, '--newest'))
  expect(readFileSync(join(away.directory(id), `${database()}-journal`), 'utf8')).toBe('written since')
})
