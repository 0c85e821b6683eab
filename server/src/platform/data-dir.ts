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

/** All local state. Nobody else may list it; as root other users' processes (PostgreSQL, nodes) may pass through to their own part. */
export function openDataDir(path: string, use: 'exclusive' | 'shared'): { release: () => void } {
  try {
    mkdirSync(path, { recursive: true })
    chmodSync(path, process.getuid?.() === 0 ? 0o711 : 0o700)
    mkdirSync(serviceDirectory(path), { recursive: true, mode: 0o700 })
    // A process that only serves looks on while another one has it.
    const lock = use === 'shared' ? { release: () => undefined } : holdLock(join(path, 'lock'))
    if (lock) return lock
  } catch (error) {
    throw new StartFault(1, `DATA_DIR: cannot use ${path}: ${(error as Error).message}`)
  }
  throw new StartFault(75, `another instance holds ${path}`)
}

/** What the service relies on while it runs: no other user, of a node or of PostgreSQL, can get into it. */
export const serviceDirectory = (dataDir: string): string => join(dataDir, 'run')

/**
 * Complete or absent, also after a power cut; readable by its owner only. In a directory of another user nothing that this user puts in
 * the way is written to or given away: the file is made anew, never opened, and changes hands by its descriptor.
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

/** A name that was given or taken away survives a power cut only once its directory was written. */
export function syncDirectory(path: string): void {
  const descriptor = openSync(path, O_RDONLY | O_DIRECTORY)
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/** More is none of the small files that we read from other users. */
const MAX_FOREIGN_BYTES = 65_536

/**
 * A file in a directory of another user: undefined unless it is a plain file of one of these users. A link could lead to what only we may
 * read, and a pipe would never end.
 */
export function readForeignFile(path: string, ...owners: number[]): string | undefined {
  let descriptor: number
  try {
    descriptor = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch {
    // not there, a link, a socket: not such a file
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

/** A secret that nobody chose is made once and kept. */
export function generatedSecret(path: string): string {
  let secret: string | undefined
  try {
    secret = readFileSync(path, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new StartFault(1, `cannot read ${path}: ${(error as Error).message}`)
  }
  if (secret !== undefined) {
    // An emptied file must not become an empty secret, which anybody has.
    if (Buffer.from(secret, 'base64').length < SECRET_BYTES)
      throw new StartFault(78, `${path} does not hold the secret that was written into it`)
    return secret
  }
  secret = randomBytes(SECRET_BYTES).toString('base64')
  writeSecretFile(path, secret)
  return secret
}

/** Written once: nodes belong to the host that made them. */
export function hostIdOf(dataDir: string): string {
  const path = join(dataDir, 'host.id')
  if (!existsSync(path)) writeSecretFile(path, randomUUID())
  return readFileSync(path, 'utf8').trim()
}
