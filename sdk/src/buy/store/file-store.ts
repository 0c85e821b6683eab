import { builtin, codeOf, hasLastingFiles, nodeProcess } from './node.ts'
import type { PurchaseStore } from './store.ts'

const NAME = /^[a-z0-9][a-z0-9.-]{0,199}$/
const ENDING = '.json'

/** Keeps each entry in a file of this directory that only its owner can read. Any number of processes may share the directory. */
export function fileStore(directory: string): PurchaseStore {
  const { promises: fs } = required('node:fs')
  const path = required('node:path')
  const root = path.resolve(directory)
  // Windows cannot open a directory to sync it.
  const isPosix = nodeProcess?.platform !== 'win32'

  const pathOf = (name: string): string => {
    if (!NAME.test(name))
      throw new TypeError(
        'Not a valid entry name. Use at most 200 lowercase letters, digits, dots and hyphens, beginning with a letter or digit.',
      )
    return path.join(root, name + ENDING)
  }

  let isTrusted = false
  /**
   * False if the directory does not exist yet. Throws if another user can write to it: they could make the buyer pay again, or
   * send its credentials elsewhere.
   */
  async function isThere(): Promise<boolean> {
    if (isTrusted) return true
    const found = await fs.lstat(root).catch(ifMissing(undefined))
    if (!found) return false
    const isOnlyOurs = !isPosix || (found.uid === nodeProcess?.getuid?.() && (found.mode & 0o022) === 0)
    if (!found.isDirectory() || !isOnlyOurs)
      throw new TypeError(
        `${root} must be a directory that this user owns and nobody else can write to. If it is yours, run chmod 700 on it; otherwise, use another path.`,
      )
    isTrusted = true
    return true
  }

  /** Otherwise the file's content may survive a power cut while its name does not. */
  async function syncDirectory(): Promise<void> {
    if (!isPosix) return
    const handle = await fs.open(root, 'r')
    await handle.sync().finally(() => handle.close())
  }

  /** Writes a new file and gives it its name when it is complete, so that a crash or a full disk never leaves half a file. */
  async function write<T>(name: string, text: string, publish: (beside: string, target: string) => Promise<T>): Promise<T> {
    const target = pathOf(name)
    if (!(await isThere())) {
      await fs.mkdir(root, { recursive: true, mode: 0o700 })
      await isThere()
    }
    const beside = path.join(root, `${crypto.randomUUID()}.tmp`)
    try {
      const handle = await fs.open(beside, 'wx', 0o600)
      await handle
        .writeFile(text)
        .then(() => handle.sync())
        .finally(() => handle.close())
      const result = await publish(beside, target)
      await syncDirectory()
      return result
    } finally {
      await fs.rm(beside, { force: true })
    }
  }

  return {
    get: async (name) => ((await isThere()) ? fs.readFile(pathOf(name), 'utf8').catch(ifMissing(undefined)) : undefined),
    set: (name, text, mayReplace) =>
      write(name, text, async (beside, target) => {
        await mayReplace?.()
        await fs.rename(beside, target)
      }),
    add: (name, text) =>
      write(name, text, async (beside, target) => {
        try {
          // A link never replaces a file, and the file has its content from the first moment.
          await fs.link(beside, target)
          return true
        } catch (error) {
          if (codeOf(error) === 'EEXIST') return false
          throw error
        }
      }),
    delete: async (name) => {
      if (await isThere()) await fs.rm(pathOf(name), { force: true })
    },
    list: async (prefix) => {
      const files = (await isThere()) ? await fs.readdir(root).catch(ifMissing<string[]>([])) : []
      return files.flatMap((file) => (file.startsWith(prefix) && file.endsWith(ENDING) ? [file.slice(0, -ENDING.length)] : []))
    },
  }
}

function required<N extends 'node:fs' | 'node:path'>(name: N): NonNullable<ReturnType<typeof builtin<N>>> {
  const found = builtin(name)
  if (!found) throw new TypeError('fileStore needs Node. Pass `memoryStore()`, or a store of your own.')
  return found
}

const ifMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (codeOf(error) === 'ENOENT') return value
    throw error
  }

/** Below the user's state directory. Undefined where files do not last. */
export function defaultDirectory(): string | undefined {
  const [path, os] = [builtin('node:path'), builtin('node:os')]
  if (!path || !os || !builtin('node:fs') || !nodeProcess || !hasLastingFiles()) return undefined
  return path.join(nodeProcess.env.XDG_STATE_HOME || path.join(os.homedir(), '.local', 'state'), 'boltyard', 'purchases')
}
