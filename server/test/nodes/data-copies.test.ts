import {
  appendFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DataCopies } from '../../src/runtimes/process/data-copies.ts'

const NODE = 'node_1'
const DATABASE = 'phoenix.mainnet.02abcd.db'

async function copied(): Promise<{ directory: string; isUntouched: () => Promise<boolean> }> {
  const nodes = mkdtempSync(join(tmpdir(), 'boltyard-copies-'))
  const directory = join(nodes, NODE)
  mkdirSync(directory)
  for (const name of ['seed.dat', 'phoenix.conf', 'phoenix.log', DATABASE]) writeFileSync(join(directory, name), `${name}\n`)
  writeFileSync(join(directory, `${DATABASE}-wal`), 'frames')
  mkdirSync(join(directory, 'below'))
  writeFileSync(join(directory, 'below', 'large'), Buffer.alloc(200_000, 7))
  const copies = new DataCopies(nodes)
  await copies.keep(NODE, '0.8.0')
  return { directory, isUntouched: () => copies.isUntouched(NODE, '0.8.0') }
}

test.each<[string, (directory: string) => void]>([
  ['nothing', () => undefined],
  ['a file that the service writes', (directory) => writeFileSync(join(directory, 'phoenix.conf'), 'other')],
  ['its log', (directory) => appendFileSync(join(directory, 'phoenix.log'), 'more')],
  ['its rotated log', (directory) => writeFileSync(join(directory, 'phoenix.log.1'), 'more')],
  ['SQLite’s shared memory', (directory) => writeFileSync(join(directory, `${DATABASE}-shm`), 'index')],
  ['an empty write-ahead log', (directory) => writeFileSync(join(directory, 'other.db-wal'), '')],
])('C25: changed: %s. The data counts as untouched', async (_what, change) => {
  const { directory, isUntouched } = await copied()
  change(directory)
  expect(await isUntouched()).toBe(true)
})

test.each<[string, (directory: string) => void]>([
  ['a byte of the database', (directory) => writeFileSync(join(directory, DATABASE), `${DATABASE}!`)],
  ['the length of the database', (directory) => appendFileSync(join(directory, DATABASE), '!')],
  ['the name of the database', (directory) => renameSync(join(directory, DATABASE), join(directory, 'old.db'))],
  ['a new file', (directory) => writeFileSync(join(directory, 'channels.v2'), '')],
  ['a deleted file', (directory) => rmSync(join(directory, 'seed.dat'))],
  ['the write-ahead log', (directory) => appendFileSync(join(directory, `${DATABASE}-wal`), '!')],
  ['the write-ahead log, which is now empty', (directory) => truncateSync(join(directory, `${DATABASE}-wal`))],
  [
    'the last byte of a large file',
    (directory) => writeFileSync(join(directory, 'below', 'large'), Buffer.alloc(200_000, 7).fill(8, 199_999)),
  ],
  ['a new directory', (directory) => mkdirSync(join(directory, 'v2'))],
  [
    'a link to the same content',
    (directory) => {
      renameSync(join(directory, DATABASE), join(directory, '..', 'elsewhere'))
      symlinkSync(join(directory, '..', 'elsewhere'), join(directory, DATABASE))
    },
  ],
])('C25: changed: %s. The new version may have connected', async (_what, change) => {
  const { directory, isUntouched } = await copied()
  change(directory)
  expect(await isUntouched()).toBe(false)
})

test('C25: a restore that was not recorded proves that the data is untouched, until the data is used again', async () => {
  const { directory, isUntouched } = await copied()
  const copies = new DataCopies(join(directory, '..'))
  await copies.restore(NODE, '0.8.0')
  expect(await isUntouched()).toBe(true)
  await copies.forgetRestore(NODE)
  expect(await isUntouched()).toBe(false)
})

test('C25: without a copy there is no evidence', async () => {
  const { directory } = await copied()
  expect(await new DataCopies(join(directory, '..')).isUntouched(NODE, '0.7.0')).toBe(false)
})

test('C25: a hard link to the database does not hide a change', async () => {
  const { directory, isUntouched } = await copied()
  linkSync(join(directory, DATABASE), join(directory, 'phoenix.log.9'))
  appendFileSync(join(directory, 'phoenix.log.9'), '!')
  expect(await isUntouched()).toBe(false)
})
