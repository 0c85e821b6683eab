import { constants } from 'node:fs'
import { copyFile, type FileHandle, lstat, mkdir, open, readdir, readlink, rmdir, symlink, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncDirectory } from './data-dir.ts'
import type { UserIds } from './linux.ts'

/**
 * Works on directories whose contents belong to another user, who may replace any part of a path while we walk it. So each directory is
 * opened once, without following links, and its entries are reached through the open descriptor. Only the top-level path is trusted,
 * because it is in a directory that belongs to us. Entries owned by a third user are left alone: a hard link to someone else's file must
 * not be copied or given away.
 */

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY
const NO_LINK = constants.O_NOFOLLOW
/** Without O_NONBLOCK, opening a pipe would wait for a writer. */
const FILE = constants.O_RDONLY | constants.O_NONBLOCK | NO_LINK
const COMPARED_BYTES = 65_536

/** A path to the entry that stays valid in this process even if the directory is moved. */
const entryIn = (directory: FileHandle, name: string): string => `/proc/self/fd/${directory.fd}/${name}`
const entriesOf = (directory: FileHandle): Promise<string[]> => readdir(`/proc/self/fd/${directory.fd}`)

async function withOpen<T>(path: string, flags: number, work: (handle: FileHandle) => Promise<T>): Promise<T> {
  const handle = await open(path, flags)
  try {
    return await work(handle)
  } finally {
    await handle.close()
  }
}

/** Does nothing if the path does not exist. A link is removed, not followed. */
export async function removeTree(path: string): Promise<void> {
  const top = await lstat(path).catch(unlessMissing)
  if (!top) return
  if (top.isDirectory()) await withOpen(path, DIRECTORY | NO_LINK, removeEntries)
  await (top.isDirectory() ? rmdir(path) : unlink(path))
  syncDirectory(dirname(path))
}

async function removeEntries(directory: FileHandle): Promise<void> {
  for (const name of await entriesOf(directory)) {
    const path = entryIn(directory, name)
    if ((await lstat(path)).isDirectory()) {
      await withOpen(path, DIRECTORY | NO_LINK, removeEntries)
      await rmdir(path)
    } else await unlink(path)
  }
}

/** The copy belongs to us. The target must not exist yet. */
export async function copyTree(from: string, to: string): Promise<void> {
  await withOpen(from, DIRECTORY, async (directory) => copyEntries(directory, to, (await directory.stat()).uid))
}

async function copyEntries(directory: FileHandle, to: string, owner: number): Promise<void> {
  await mkdir(to, { mode: 0o700 })
  for (const name of await entriesOf(directory)) {
    const [path, target] = [entryIn(directory, name), join(to, name)]
    const stat = await lstat(path)
    if (stat.uid !== owner) continue
    if (stat.isDirectory()) await withOpen(path, DIRECTORY | NO_LINK, (below) => copyEntries(below, target, owner))
    else if (stat.isSymbolicLink()) await symlink(await readlink(path), target)
    else if (stat.isFile()) await withOpen(path, FILE, (file) => copyContent(file, target, owner))
  }
  syncDirectory(to)
}

/**
 * Copies these files of a directory and nothing else, durably. Throws unless all of them are regular files of the directory's owner that
 * nobody has changed meanwhile. The target must not exist yet.
 */
export async function copyFiles(from: string, to: string, names: string[]): Promise<void> {
  await withOpen(from, DIRECTORY, async (directory) => {
    const { uid } = await directory.stat()
    const states = async (): Promise<string[]> => {
      const stats = await Promise.all(names.map((name) => lstat(entryIn(directory, name), { bigint: true })))
      return stats.map(({ dev, ino, size, mtimeNs }) => `${dev}:${ino}:${size}:${mtimeNs}`)
    }
    const before = await states()
    await mkdir(to, { mode: 0o700 })
    for (const name of names)
      if (!(await withOpen(entryIn(directory, name), FILE, (file) => copyContent(file, join(to, name), uid))))
        throw new Error(`${name} is not a regular file of the directory's owner`)
    if ((await states()).join() !== before.join()) throw new Error('the files changed while they were copied')
    syncDirectory(to)
  })
}

/** False if it is not a file of this owner. */
async function copyContent(file: FileHandle, to: string, owner: number): Promise<boolean> {
  const stat = await file.stat()
  if (!stat.isFile() || stat.uid !== owner) return false
  await copyFile(`/proc/self/fd/${file.fd}`, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  await withOpen(to, constants.O_RDWR, async (copy) => {
    // Since Node 22, a copy that root makes has the owner of the original.
    await copy.chown(process.getuid?.() ?? 0, process.getgid?.() ?? 0)
    await copy.chmod(stat.mode & 0o700)
    await copy.utimes(stat.atime, stat.mtime)
    await copy.sync()
  })
  return true
}

/**
 * Whether a copy made by copyTree still equals the original, except for files for which `isIgnored` returns true. Anything that cannot be
 * compared counts as different.
 */
export async function isSameTree(
  path: string,
  copy: string,
  isIgnored: (name: string, bytes: number) => boolean,
): Promise<boolean> {
  return withOpen(path, DIRECTORY, async (original) => {
    const { uid } = await original.stat()
    return withOpen(copy, DIRECTORY | NO_LINK, (other) => areSameEntries(original, other, uid, isIgnored))
  })
}

async function areSameEntries(
  original: FileHandle,
  copy: FileHandle,
  owner: number,
  isIgnored: (name: string, bytes: number) => boolean,
): Promise<boolean> {
  const names = new Set([...(await entriesOf(original)), ...(await entriesOf(copy))])
  for (const name of names) {
    const [path, other] = [entryIn(original, name), entryIn(copy, name)]
    const [mine, theirs] = [await lstat(path).catch(unlessMissing), await lstat(other).catch(unlessMissing)]
    if (isIgnored(name, Math.max(mine?.size ?? 0, theirs?.size ?? 0))) continue
    if (!theirs && mine && mine.uid !== owner) continue
    if (!mine || !theirs) return false
    if (mine.isDirectory() && theirs.isDirectory()) {
      const below = await withOpen(path, DIRECTORY | NO_LINK, (a) =>
        withOpen(other, DIRECTORY | NO_LINK, (b) => areSameEntries(a, b, owner, isIgnored)),
      )
      if (!below) return false
    } else if (mine.isSymbolicLink() && theirs.isSymbolicLink()) {
      if ((await readlink(path)) !== (await readlink(other))) return false
    } else if (mine.isFile() && theirs.isFile()) {
      if (!(await withOpen(path, FILE, (a) => withOpen(other, FILE, (b) => areSameFiles(a, b))))) return false
    } else return false
  }
  return true
}

async function areSameFiles(a: FileHandle, b: FileHandle): Promise<boolean> {
  const [first, second] = [await a.stat(), await b.stat()]
  if (!first.isFile() || first.size !== second.size) return false
  const [left, right] = [Buffer.alloc(COMPARED_BYTES), Buffer.alloc(COMPARED_BYTES)]
  for (let at = 0; at < first.size; ) {
    const [one, other] = [await a.read(left, 0, COMPARED_BYTES, at), await b.read(right, 0, COMPARED_BYTES, at)]
    if (one.bytesRead === 0 || !left.subarray(0, one.bytesRead).equals(right.subarray(0, other.bytesRead))) return false
    at += one.bytesRead
  }
  return true
}

/**
 * Changes the owner of everything that belongs to the current owner, the directory itself last, so that an interrupted run can be repeated.
 */
export async function giveTree(path: string, to: UserIds): Promise<void> {
  await withOpen(path, DIRECTORY, async (directory) => {
    const { uid } = await directory.stat()
    if (uid === to.uid) return
    await giveEntries(directory, uid, to)
    await directory.chown(to.uid, to.gid)
  })
}

async function giveEntries(directory: FileHandle, from: number, to: UserIds): Promise<void> {
  for (const name of await entriesOf(directory)) {
    const path = entryIn(directory, name)
    const stat = await lstat(path)
    if (stat.isDirectory())
      await withOpen(path, DIRECTORY | NO_LINK, async (below) => {
        const { uid } = await below.stat()
        if (uid !== from && uid !== to.uid) return
        await giveEntries(below, from, to)
        await below.chown(to.uid, to.gid)
      })
    // Skip everything else: only an open file is certain to be the one that was checked, and the owner of a link does not matter.
    else if (stat.isFile()) await withOpen(path, FILE, (file) => giveFile(file, from, to))
  }
}

async function giveFile(file: FileHandle, from: number, to: UserIds): Promise<void> {
  const stat = await file.stat()
  if (stat.isFile() && stat.uid === from && stat.nlink === 1) await file.chown(to.uid, to.gid)
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
