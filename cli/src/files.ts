import { randomUUID } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { devNull, homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { usage } from './failure.ts'
import { sanitize } from './terminal.ts'

/** Keys, passwords and credentials are read from files and stdin, never from arguments, and written to files only their owner can read. */

const LARGEST_SECRET = 65_536
/** Windows reports every file as world-readable, uses ACLs instead of modes, and cannot open a directory to sync it. */
const IS_POSIX = process.platform !== 'win32'

/** Where this program keeps its files. */
export const statePath = (...names: string[]): string =>
  join(process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'boltyard', ...names)

export function readSecret(path: string, what: string): string {
  try {
    return checked(readFileSync(path, 'utf8'), sanitize(path), what)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usage(`Cannot read ${what} from ${sanitize(path)}: ${reasonOf(error)}.`)
  }
}

/** "-" means standard input, which is read asynchronously so that the user can interrupt it. */
export async function readSecretOrInput(path: string, what: string, signal: AbortSignal): Promise<string> {
  if (path !== '-') return readSecret(path, what)
  if (process.stdin.isTTY)
    throw usage(`Expected ${what} on standard input, but standard input is a terminal.`, 'Pipe it in, or name a file.')
  const interrupted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return checked(await Promise.race([readInput(), interrupted]), 'Standard input', what)
}

/** Lets the JSON output of one command be piped into the next: returns the named member, or the text itself if there is none. */
export function memberOf(text: string, name: string): string {
  const value = objectIn(text)?.[name]
  return typeof value === 'string' ? value : text
}

/** The JSON object in a text, or undefined if it contains anything else. */
export function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
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
  if (text.length > LARGEST_SECRET) throw usage(`${from} is too large to contain ${what}.`)
  if (text.trim() === '') throw usage(`${from} is empty, but should contain ${what}.`)
  return text.trim()
}

/**
 * A file for secrets, created before the secrets exist: if it cannot be written, that is found before anything is lost. It never overwrites
 * an existing file, which may hold the only copy of someone's seed.
 */
export class SecretFile {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  /** An empty file is used: an earlier run was killed right after creating it. */
  static create(path: string, what: string, document: object): SecretFile {
    try {
      if (statSync(path, { throwIfNoEntry: false })?.size === 0) return SecretFile.reopen(path).#written(document)
      closeSync(openSync(path, 'wx', 0o600))
    } catch (error) {
      if (!isSystemError(error)) throw error
      if (error.code === 'EEXIST')
        throw usage(`${sanitize(path)} already exists and will not be overwritten.`, `Name another file for ${what}.`)
      throw usage(`Cannot create ${sanitize(path)} for ${what}: ${reasonOf(error)}.`)
    }
    const file = new SecretFile(path)
    try {
      return file.#written(document)
    } catch (error) {
      file.remove()
      throw isSystemError(error) ? usage(`Cannot write ${sanitize(path)} for ${what}: ${reasonOf(error)}.`) : error
    }
  }

  #written(document: object): this {
    this.write(document)
    return this
  }

  /** Opens the file of an earlier run. Refuses one that other users can read. */
  static reopen(path: string): SecretFile {
    if (IS_POSIX && (statSync(path).mode & 0o077) !== 0) {
      throw usage(`${sanitize(path)} can be read by other users on this machine.`, `chmod 600 ${sanitize(path)}`)
    }
    return new SecretFile(path)
  }

  /** Writes a new file, syncs it and renames it over the old one, so a full disk cannot destroy the old content. */
  write(document: object): void {
    const beside = this.#writeBeside(document)
    this.#rename(beside)
  }

  /** Like `write`, but calls `mayReplace` right before the rename, and gives up if it throws. */
  async replace(document: object, mayReplace: () => unknown): Promise<void> {
    const beside = this.#writeBeside(document)
    try {
      await mayReplace()
    } catch (error) {
      unlinkSync(beside)
      throw error
    }
    this.#rename(beside)
  }

  #writeBeside(document: object): string {
    // Not the process id: in a container it is always the same, and a run that was killed may have left its file.
    const beside = `${this.path}.${randomUUID()}.tmp`
    const descriptor = openSync(beside, 'wx', 0o600)
    try {
      writeFileSync(descriptor, `${JSON.stringify(document, null, 2)}\n`)
      fsyncSync(descriptor)
    } catch (error) {
      unlinkSync(beside)
      throw error
    } finally {
      closeSync(descriptor)
    }
    return beside
  }

  #rename(beside: string): void {
    try {
      renameSync(beside, this.path)
    } catch (error) {
      unlinkSync(beside)
      throw error
    }
    syncDirectory(this.path)
  }

  remove(): void {
    rmSync(this.path, { force: true })
  }
}

/** Syncs the directory. Otherwise the file's content may survive a power cut while its name does not. */
function syncDirectory(path: string): void {
  if (!IS_POSIX) return
  const descriptor = openSync(dirname(path), 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** The JSON document an earlier run left, or undefined if the file does not exist or is empty. */
export function readDocument(path: string): Record<string, unknown> | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (isSystemError(error) && error.code === 'ENOENT') return undefined
    throw usage(`Cannot read ${sanitize(path)}: ${isSystemError(error) ? reasonOf(error) : 'it is not text'}.`)
  }
  if (text === '') return undefined
  const document = objectIn(text)
  if (document) return document
  throw usage(`${sanitize(path)} already exists and was not written by boltyard. It will not be overwritten.`)
}

export function isNullDevice(descriptor: number): boolean {
  const { rdev } = fstatSync(descriptor)
  return rdev !== 0 && rdev === statSync(devNull, { throwIfNoEntry: false })?.rdev
}

export const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'code' in error && 'syscall' in error

const REASONS: Record<string, string> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'part of the path is not a directory',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
  EADDRINUSE: 'the port is already in use',
  EADDRNOTAVAIL: 'this machine does not have the address',
}
export const reasonOf = ({ code = '' }: NodeJS.ErrnoException): string => REASONS[code] ?? code
