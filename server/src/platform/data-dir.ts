import { randomBytes, randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { holdLock, type UserIds } from './linux.ts'
import { StartFault } from './start-fault.ts'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/**
 * The directory holds all local state. Other users cannot list it. If the service runs as root, the users of PostgreSQL and of nodes can
 * pass through it to their own part.
 */
export function openDataDir(path: string, use: 'exclusive' | 'shared'): { release: () => void } {
  try {
    mkdirSync(path, { recursive: true })
    chmodSync(path, process.getuid?.() === 0 ? 0o711 : 0o700)
    mkdirSync(serviceDirectory(path), { recursive: true, mode: 0o700 })
    // A process with ROLE=api shares the directory with the process that holds the lock.
    const lock = use === 'shared' ? { release: () => undefined } : holdLock(join(path, 'lock'))
    if (lock) return lock
  } catch (error) {
    throw new StartFault(1, `DATA_DIR: cannot use ${path}: ${(error as Error).message}`)
  }
  throw new StartFault(75, `DATA_DIR: another instance is already using ${path}`)
}

/** State the service relies on while it runs. The users of nodes and of PostgreSQL cannot enter it. */
export const serviceDirectory = (dataDir: string): string => join(dataDir, 'run')

/**
 * The file is complete or absent, even after a power failure, and readable only by its owner. In another user's directory, a file planted
 * by that user is never written to or given away: the file is always newly created, and its owner is changed through its descriptor.
 */
export function writeSecretFile(path: string, text: string, owner?: UserIds): void {
  rmSync(`${path}.new`, { force: true })
  const descriptor = openSync(`${path}.new`, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    if (owner) fchownSync(descriptor, owner.uid, owner.gid)
    writeFileSync(descriptor, text, { flush: true })
  } finally {
    closeSync(descriptor)
  }
  renameSync(`${path}.new`, path)
  syncDirectory(dirname(path))
}

/** The creation or removal of a file survives a power failure only after its directory was synced. */
export function syncDirectory(path: string): void {
  const descriptor = openSync(path, O_RDONLY | O_DIRECTORY)
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/** The files we read from other users are small; anything larger is not one of them. */
const MAX_FOREIGN_BYTES = 65_536

/**
 * Reads a file in another user's directory; undefined unless it is a regular file owned by one of these users. A link could point to a file
 * that only we may read, and reading a pipe would never end.
 */
export function readForeignFile(path: string, ...owners: number[]): string | undefined {
  let descriptor: number
  try {
    descriptor = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch {
    // missing, a link or a socket
    return undefined
  }
  try {
    const stat = fstatSync(descriptor)
    const isPlain = stat.isFile() && stat.nlink === 1 && stat.size <= MAX_FOREIGN_BYTES && owners.includes(stat.uid)
    return isPlain ? readFileSync(descriptor, 'utf8') : undefined
  } finally {
    closeSync(descriptor)
  }
}

const SECRET_BYTES = 32

/** Generates a secret once, if none was configured, and keeps it. */
export function generatedSecret(path: string): string {
  let secret: string | undefined
  try {
    secret = readFileSync(path, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new StartFault(1, `cannot read ${path}: ${(error as Error).message}`)
  }
  if (secret !== undefined) {
    // A truncated file must not become an empty secret, which anyone could guess.
    if (Buffer.from(secret, 'base64').length < SECRET_BYTES)
      throw new StartFault(78, `${path} does not contain a complete secret; restore the file from a backup`)
    return secret
  }
  secret = randomBytes(SECRET_BYTES).toString('base64')
  writeSecretFile(path, secret)
  return secret
}

/** Written once: nodes belong to the host that created them. */
export function hostIdOf(dataDir: string): string {
  const path = join(dataDir, 'host.id')
  if (!existsSync(path)) writeSecretFile(path, randomUUID())
  return readFileSync(path, 'utf8').trim()
}
