import type { Logger } from '../platform/log.ts'
import type { Sql } from '../store/db.ts'
import { unknownNodes } from '../store/nodes/nodes.ts'

const EVERY_MS = 3_600_000
/** Leaves the runtime time to list the cluster's objects before the first pass. */
const FIRST_MS = 60_000
/** A younger object may belong to a node that is being created or purged right now. */
const MIN_AGE_MS = 3_600_000
const MAX_LOGGED = 20

export type OrphansDeps = {
  sql: Sql
  /** Nodes that have objects older than this; undefined if the runtime does not know all of them. */
  nodesSeen: (minAgeMs: number) => string[] | undefined
  log: Logger
}

/**
 * Reports nodes that the cluster has but the database does not, as after the restore of an older backup. It only reports them, because they
 * may hold money, so a person must decide what happens to them.
 */
export class Orphans {
  readonly #deps: OrphansDeps
  #timer: NodeJS.Timeout
  #pass: Promise<void> = Promise.resolve()
  #count: number | undefined

  constructor(deps: OrphansDeps) {
    this.#deps = deps
    this.#timer = this.#passIn(FIRST_MS)
  }

  /** Undefined: not known yet. */
  get count(): number | undefined {
    return this.#count
  }

  async pass(): Promise<void> {
    const { sql, nodesSeen, log } = this.#deps
    const seen = nodesSeen(MIN_AGE_MS)
    if (!seen) return
    const orphans = await unknownNodes(sql, seen)
    this.#count = orphans.length
    if (orphans.length > 0)
      log.warn(
        { nodeIds: orphans.slice(0, MAX_LOGGED), count: orphans.length },
        'the cluster has nodes that are not in the database; nothing stops or removes them',
      )
  }

  #passIn(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#pass = this.pass()
        .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'cannot look for orphaned nodes; will retry'))
        .finally(() => {
          this.#timer = this.#passIn(EVERY_MS)
        })
    }, milliseconds)
  }

  async close(): Promise<void> {
    await this.#pass
    clearTimeout(this.#timer)
  }
}
