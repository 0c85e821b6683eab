import { closeSync, fstatSync, fsyncSync, openSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname } from 'node:path'
import { usage } from './failure.ts'
import { harmless } from './terminal.ts'

/** Keys, passwords and credentials: read from files and stdin, never from arguments; kept where only their owner can read them. */

const LARGEST_SECRET = 65_536
/** Windows reports every file as readable by all, has rights of another kind, and does not open a directory to sync it. */
const IS_POSIX = process.platform !== 'win32'

export function readSecret(path: string, what: string): string {
  try {
    return checked(readFileSync(path, 'utf8'), harmless(path), what)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usage(`${what} cannot be read from ${harmless(path)}: ${reasonOf(error)}.`)
  }
}

/** "-" is the standard input, as everywhere. Not by a read that blocks: nobody could interrupt it. */
export async function readSecretOrInput(path: string, what: string, signal: AbortSignal): Promise<string> {
  if (path !== '-') return readSecret(path, what)
  if (process.stdin.isTTY)
    throw usage(`${what} is expected on standard input, and that is a terminal.`, 'Pipe it in, or name a file.')
  const interrupted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return checked(await Promise.race([readInput(), interrupted]), 'Standard input', what)
}

/** What one command prints as JSON can be piped into the next: the member that it needs, or the text itself if it is not JSON. */
export function memberOf(text: string, name: string): string {
  if (!text.startsWith('{')) return text
  try {
    const value: unknown = JSON.parse(text)[name]
    return typeof value === 'string' ? value : text
  } catch {
    // Not JSON after all: whoever reads the text says what is wrong with it.
    return text
  }
}

async function readInput(): Promise<string> {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin) {
    text += chunk
    if (text.length > LARGEST_SECRET) break
  }
  return text
}

function checked(text: string, from: string, what: string): string {
  if (text.length > LARGEST_SECRET) throw usage(`${from} is too large to hold ${what}.`)
  if (text.trim() === '') throw usage(`${from} is empty; it should hold ${what}.`)
  return text.trim()
}

/**
 * A file of secrets that is there before the secrets are: whatever would keep us from writing them shows while nothing is lost yet. Only
 * ever a new file: what an older one holds may be the only copy of somebody's money.
 */
export class SecretFile {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  static create(path: string, what: string): SecretFile {
    try {
      closeSync(openSync(path, 'wx', 0o600))
      syncDirectory(path)
      return new SecretFile(path)
    } catch (error) {
      if (!isSystemError(error)) throw error
      if (error.code === 'EEXIST')
        throw usage(`${harmless(path)} exists already, and is not overwritten.`, `Name another file for ${what}.`)
      throw usage(`${harmless(path)} cannot be made for ${what}: ${reasonOf(error)}.`)
    }
  }

  /** One that an earlier run has left, to be completed. */
  static reopen(path: string): SecretFile {
    if (IS_POSIX && (statSync(path).mode & 0o077) !== 0) {
      throw usage(`${harmless(path)} can be read by others on this machine.`, `chmod 600 ${harmless(path)}`)
    }
    return new SecretFile(path)
  }

  /** On the disk when this returns, and beside the old content until then: on a full disk that is still there. */
  write(document: object): void {
    const beside = `${this.path}.${process.pid}.tmp`
    const descriptor = openSync(beside, 'wx', 0o600)
    try {
      writeFileSync(descriptor, `${JSON.stringify(document, null, 2)}\n`)
      fsyncSync(descriptor)
      renameSync(beside, this.path)
    } catch (error) {
      unlinkSync(beside)
      throw error
    } finally {
      closeSync(descriptor)
    }
    syncDirectory(this.path)
  }

  remove(): void {
    unlinkSync(this.path)
  }
}

/** Without it the file may be on the disk and its name not. */
function syncDirectory(path: string): void {
  if (!IS_POSIX) return
  const descriptor = openSync(dirname(path), 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** What an earlier run has left; undefined: nothing. */
export function readDocument(path: string): Record<string, unknown> | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (isSystemError(error) && error.code === 'ENOENT') return undefined
    throw usage(`${harmless(path)} cannot be read: ${isSystemError(error) ? reasonOf(error) : 'it is not text'}.`)
  }
  try {
    const document: unknown = JSON.parse(text)
    if (typeof document === 'object' && document !== null && !Array.isArray(document)) return document as Record<string, unknown>
  } catch {
    // said below
  }
  throw usage(`${harmless(path)} exists already, and is not a file that boltyard wrote. It is not overwritten.`)
}

export function isNullDevice(descriptor: number): boolean {
  const { rdev } = fstatSync(descriptor)
  return rdev !== 0 && rdev === statSync(devNull, { throwIfNoEntry: false })?.rdev
}

export const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'code' in error && 'syscall' in error

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is not a directory',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
}
export const reasonOf = ({ code = '' }: NodeJS.ErrnoException): string => REASONS[code] ?? code
