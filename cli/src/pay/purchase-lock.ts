import { createHash } from 'node:crypto'
import { mkdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileStore } from '../../../sdk/src/buy/store/file-store.ts'
import { acquireLock, type Lock } from '../../../sdk/src/buy/store/lock.ts'
import type { PurchaseStore } from '../../../sdk/src/buy/store/store.ts'
import { Failure, usage } from '../failure.ts'
import { isSystemError, reasonOf, statePath } from '../files.ts'
import { sanitize } from '../terminal.ts'

/** Waits until no other run uses the credential file: two of them could each pay, and one would replace what the other has bought. */
export async function lockPurchase(path: string, signal: AbortSignal): Promise<Lock> {
  try {
    const key = createHash('sha256').update(placeOf(path)).digest('hex')
    return await acquireLock(lockStore(path), key, signal)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usage(`${sanitize(path)} cannot be locked: ${reasonOf(error)}. Nothing was paid.`)
  }
}

/** The same for two names of one file. If there is no such directory, the run fails when it creates the file. */
function placeOf(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path))
  } catch {
    return resolve(path)
  }
}

/** Who has no writable state directory names a credential file in one that is writable. */
function lockStore(path: string): PurchaseStore {
  const directory = statePath('locks')
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    return fileStore(directory)
  } catch {
    return fileStore(`${resolve(path)}.lock`)
  }
}

/** Another run may have taken this one for dead, for example after a suspension. The file is then that one's, and stays. */
export async function requireHeld(lock: Lock | undefined): Promise<void> {
  if (!lock || (await lock.isHeld())) return
  throw new Failure('conflict', 'purchase_in_progress', 'Another run uses the same credential file now. This run paid nothing.')
}
