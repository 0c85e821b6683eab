import type { Logger } from '../platform/log.ts'
import type { Sql } from '../store/db.ts'
import type { NodeRow } from '../store/nodes/nodes.ts'
import { beginPurges, finishPurge } from '../store/nodes/purges.ts'
import { claimDueNodes } from '../store/nodes/steps.ts'
import { specOf } from './node-spec.ts'
import type { NodeSpec } from './runtime.ts'

const EVERY_MS = 60_000
const AT_ONCE = 8

export type ReaperDeps = {
  sql: Sql
  /** Permanently removes everything that belongs to the node. */
  remove: (node: NodeSpec) => Promise<void>
  host: string
  retentionDays: number
  log: Logger
}

/**
 * Removes deleted nodes past their retention period, for a runtime where only a process with special rights may do that. The reconcilers
 * have already stopped these nodes.
 */
export class Reaper {
  readonly #deps: ReaperDeps
  readonly #owner = crypto.randomUUID()
  readonly #timer: NodeJS.Timeout
  #pass: Promise<void> | undefined

  constructor(deps: ReaperDeps) {
    this.#deps = deps
    const look = (): void => {
      this.#pass ??= this.#look().finally(() => {
        this.#pass = undefined
      })
    }
    look()
    this.#timer = setInterval(look, EVERY_MS)
  }

  async #look(): Promise<void> {
    const { sql, host, retentionDays, log } = this.#deps
    try {
      await beginPurges(sql, host, retentionDays)
      const nodes = await claimDueNodes(sql, host, { owner: this.#owner, busyWith: [], which: 'purging' }, AT_ONCE)
      for (const node of nodes) await this.#remove(node)
    } catch (error) {
      log.warn({ err: error }, 'cannot query deleted nodes past their retention period')
    }
  }

  async #remove(node: NodeRow): Promise<void> {
    const { sql, remove, log } = this.#deps
    try {
      await remove(specOf(node))
      await finishPurge(sql, node)
      log.info({ nodeId: node.id }, 'purged a deleted node')
    } catch (error) {
      log.warn({ err: error, nodeId: node.id }, 'cannot remove a deleted node; will retry')
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#pass
  }
}
