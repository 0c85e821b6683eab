import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { holdLock } from './linux.ts'
import { StartFault } from './start-fault.ts'

/** All local state. Nobody else may list it; as root other users' processes (PostgreSQL, nodes) may pass through to their own part. */
export function openDataDir(path: string, use: 'exclusive' | 'shared'): void {
  try {
    mkdirSync(path, { recursive: true })
    chmodSync(path, process.getuid?.() === 0 ? 0o711 : 0o700)
    // A process that only serves looks on while another one has it.
    if (use === 'shared' || holdLock(join(path, 'lock'))) return
  } catch (error) {
    throw new StartFault(1, `DATA_DIR: cannot use ${path}: ${(error as Error).message}`)
  }
  throw new StartFault(75, `another instance holds ${path}`)
}

/** Complete or absent, also after a power cut; readable by its owner only. */
export function writeSecretFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600, flush: true })
  renameSync(`${path}.new`, path)
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
