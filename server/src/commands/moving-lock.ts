import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { holdLock } from '../platform/linux.ts'
import { StartFault } from '../platform/start-fault.ts'

/** One wallet is adopted or released at a time on this machine. A second command is refused before it changes anything. */
export async function withMovingLock<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  const directory = join(dataDir, 'adopting')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const lock = holdLock(join(directory, 'lock'))
  if (!lock) throw new StartFault(75, 'another process is moving a wallet now; try again when it has finished')
  try {
    return await work()
  } finally {
    lock.release()
  }
}
