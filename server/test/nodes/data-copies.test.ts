import {
  appendFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
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

describe('C25: the copy of one version', () => {
  /** The data says which version has written it last. */
  async function keptFrom(versions: string[]): Promise<{ copies: DataCopies; read: () => string; nodes: string }> {
    const nodes = mkdtempSync(join(tmpdir(), 'boltyard-copies-'))
    onTestFinished(() => rmSync(nodes, { recursive: true }))
    const copies = new DataCopies(nodes)
    mkdirSync(join(nodes, NODE))
    for (const version of versions) {
      writeFileSync(join(nodes, NODE, DATABASE), version)
      await copies.keep(NODE, version)
    }
    return { copies, read: () => readFileSync(join(nodes, NODE, DATABASE), 'utf8'), nodes }
  }
  const long = `1.${'0'.repeat(220)}`

  test.each([
    [['1.0.0_a', '1.0.0+a', '1.0.0-a']],
    [['+', '_', '.', '..', '-']],
    [['0.8.0.unfinished', '0.8.0']],
    [['0.8.0', '0.8.0.unfinished', '0.8.0.unfinished.unfinished']],
    [[`${long}1`, `${long}2`]],
  ])('C25: is not that of another: %j', async (versions) => {
    const { copies, read } = await keptFrom(versions)
    for (const version of versions) {
      await copies.restore(NODE, version)
      expect(read()).toBe(version)
    }
  })

  test('C25: is where an earlier release put it', async () => {
    const longest = 'a'.repeat(255 - `${NODE}.before-update-from-.unfinished`.length)
    const versions = ['0.8.0', '0.8.0-3f2a1b9', 'V1_rc.1', longest]
    const { nodes } = await keptFrom(versions)
    const expected = [NODE, ...versions.map((version) => `${NODE}.before-update-from-${version}`)]
    expect(readdirSync(nodes).sort()).toEqual(expected.sort())
  })

  test('C50: is removed with the others, whatever its version is called', async () => {
    const { copies, nodes } = await keptFrom(['0.8.0', '1.0.0+a', '0.8.0.unfinished'])
    await copies.removeAll(NODE)
    expect(readdirSync(nodes)).toEqual([NODE])
  })
})
