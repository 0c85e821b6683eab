import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fileStore } from '../../src/buy/index.ts'
import { outcomeOf, Seller } from './seller.ts'

/** Whoever can write into the directory of purchases can make the buyer pay again, or present credentials elsewhere. */

let parent: string
let directory: string
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'boltyard-'))
  directory = join(parent, 'purchases')
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(parent, { recursive: true })
})

test('a missing directory counts as empty, and is created with access for its owner only', async () => {
  const store = fileStore(directory)
  expect([await store.get('a'), await store.list('')]).toEqual([undefined, []])
  await store.set('a', '1')
  expect([await store.get('a'), await store.list(''), statSync(directory).mode & 0o777]).toEqual(['1', ['a'], 0o700])
})

test('an entry stays if the lock is lost while a new one is written, and nothing of the new one is left', async () => {
  const store = fileStore(directory)
  await store.set('a', 'theirs')
  let files: string[] = []
  const mayReplace = async (): Promise<void> => {
    files = readdirSync(directory)
    throw new Error('the lock is lost')
  }
  await expect(store.set('a', 'ours', mayReplace)).rejects.toThrow('the lock is lost')
  // `mayReplace` was called when the new file existed, right before the rename.
  expect([files.length, readdirSync(directory), await store.get('a')]).toEqual([2, ['a.json'], 'theirs'])
})

test.each<[string, () => void]>([
  ['everybody can write', () => chmodSync(directory, 0o777)],
  ['a group can write', () => chmodSync(directory, 0o770)],
  ['belongs to somebody else', () => vi.spyOn(process, 'getuid').mockReturnValue((process.getuid?.() ?? 0) + 1)],
  [
    'is a link',
    () => {
      rmSync(directory, { recursive: true })
      mkdirSync(join(parent, 'other'), { mode: 0o700 })
      symlinkSync(join(parent, 'other'), directory)
    },
  ],
  [
    'is a file',
    () => {
      rmSync(directory, { recursive: true })
      writeFileSync(directory, '')
    },
  ],
])('a directory that %s is refused before anything is read, written or paid', async (_, change) => {
  mkdirSync(directory, { mode: 0o700 })
  change()
  const store = fileStore(directory)
  const uses = [
    () => store.get('a'),
    () => store.set('a', '1'),
    () => store.add('a', '1'),
    () => store.delete('a'),
    () => store.list(''),
  ]
  for (const use of uses) await expect(use()).rejects.toThrow(/chmod 700/)
  const seller = await new Seller().open()
  expect(await outcomeOf(seller.buyer({ store: directory }).fetch(seller.url))).toMatch(/^TypeError: .*chmod 700/)
  expect([seller.got, seller.paid]).toEqual([[], []])
})
