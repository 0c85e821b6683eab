import type { Logger } from '../../platform/log.ts'
import type { Database } from '../../store/db.ts'
import { withMovesLocked } from '../../store/nodes/moving.ts'

const EVERY_MS = 60_000

export type IdleVolumesDeps = {
  sql: Database
  /** Volumes of nodes that a move has opened. */
  volumes: { list: () => Promise<string[]>; close: (nodeId: string) => Promise<void> }
  log: Logger
}

/**
 * Closes the volumes that an interrupted `adopt` or `release` has left open. The command might not be run again, and an open volume can be
 * neither used nor removed.
 */
export class IdleVolumes {
  readonly #deps: IdleVolumesDeps
  readonly #timer: NodeJS.Timeout
  #pass: Promise<void> | undefined

  constructor(deps: IdleVolumesDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => {
      this.#pass ??= this.pass()
        .catch((error: unknown) => deps.log.warn({ err: error }, 'cannot look for volumes that a move has left open; will retry'))
        .finally(() => {
          this.#pass = undefined
        })
    }, EVERY_MS)
  }

  async pass(): Promise<void> {
    const { sql, volumes, log } = this.#deps
    // Look without the lock first: a command that begins while we hold the lock fails.
    if ((await volumes.list()).length === 0) return
    await withMovesLocked(sql, async () => {
      for (const nodeId of await volumes.list()) {
        await volumes.close(nodeId)
        log.info({ nodeId }, 'closed a volume that an interrupted move had left open')
      }
    })
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#pass
  }
}
