import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileStore } from '../../../sdk/src/buy/store/file-store.ts'
import { acquireLock, type Lock } from '../../../sdk/src/buy/store/lock.ts'
import { Failure, usage } from '../failure.ts'
import { isSystemError, reasonOf, statePath } from '../files.ts'
import { sanitize } from '../terminal.ts'
import type { SavedPurchase } from './saved-purchase.ts'

/** Waits until no other run uses the credential file: two of them could each pay, and one would replace what the other has bought. */
export async function lockPurchase(path: string, signal: AbortSignal): Promise<Lock> {
  try {
    const key = createHash('sha256').update(placeOf(path)).digest('hex')
    return await acquireLock(fileStore(statePath('locks')), key, signal).catch((error) => {
      if (!isUnusable(error)) throw error
      return acquireLock(fileStore(`${resolve(path)}.lock`), key, signal)
    })
  } catch (error) {
    if (!isSystemError(error) && !(error instanceof TypeError)) throw error
    const reason = isSystemError(error) ? `${reasonOf(error)}.` : sanitize(error.message)
    throw usage(`${sanitize(path)} cannot be locked: ${reason} Nothing was paid.`)
  }
}

const UNUSABLE = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST', 'ENOENT', 'ELOOP'])

/**
 * Whether no run of this user can keep locks in the state directory. Only then is the lock placed next to the credential file:
 * after any other failure, such as a full disk, another run may hold a lock in the state directory.
 */
const isUnusable = (error: unknown): boolean =>
  isSystemError(error) ? UNUSABLE.has(error.code ?? '') : error instanceof TypeError

/** Resolves links to the directory, so that two paths of one file share a lock. A missing directory fails later, with the file. */
function placeOf(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path))
  } catch {
    return resolve(path)
  }
}

/** Another run may have assumed that this one is dead, for example after a suspension. The file then belongs to that run, and stays. */
export async function requireHeld(lock: Lock | undefined): Promise<void> {
  const isHeld = await lock?.isHeld().catch((error: unknown) => {
    if (!isSystemError(error)) throw error
    const reason = reasonOf(error)
    throw new Failure('other', 'system', `The lock of the credential file cannot be read: ${reason}. This run paid nothing.`)
  })
  if (!lock || isHeld) return
  throw new Failure(
    'conflict',
    'purchase_in_progress',
    'Another run has taken over this credential file. This run paid nothing.',
    {
      next: 'Wait for the other run to finish. To make a separate purchase, use a different credential file.',
    },
  )
}

/** Removes the file of a purchase that was certainly not paid. If the file may belong to another run by now, it stays. */
export async function removeUnpaid(kept: SavedPurchase, lock: Lock | undefined): Promise<void> {
  if (!lock || (await lock.isHeld().catch(() => false))) kept.remove()
}
