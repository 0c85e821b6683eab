import type { Config } from '../../config.ts'
import { crashpoint } from '../../platform/crashpoint.ts'
import type { Logger } from '../../platform/log.ts'
import { isStoreDown } from '../../platform/store-down.ts'
import { Problem } from '../../problems.ts'
import {
  type CreditRow,
  listStoppableNodes,
  listWatchedCredit,
  recordExhaustion,
  recordWarning,
} from '../../store/credit/credit.ts'
import { closeHours, forgetUsage, postUsage } from '../../store/credit/usage.ts'
import { addUpUsageDay } from '../../store/credit/usage-sums.ts'
import type { Sql } from '../../store/db.ts'
import { meansOf, nextWarning } from './credit.ts'

const EVERY_MS = 30_000
const AT_ONCE = 1_000
const DAYS_AT_ONCE = 10

export type MeteringDeps = {
  sql: Sql
  config: Pick<Config, 'nodePriceSatPerDay' | 'creditGraceHours'>
  /** Begins to stop the node, unless the account has credit again. Does not wait until the node has stopped. */
  stopNode: (accountId: string, nodeId: string) => Promise<void>
  log: Logger
}

/**
 * Turns usage into ledger entries, and low credit into warnings and stops. The database records usage itself, in the transactions that
 * change nodes. So this loop may be late, be killed at any point or run in several processes at once: the total charged stays the same.
 */
export class Metering {
  readonly #deps: MeteringDeps
  #timer: NodeJS.Timeout | undefined
  #passing: Promise<void> | undefined

  constructor(deps: MeteringDeps) {
    this.#deps = deps
  }

  start(): void {
    const pass = (): void => {
      this.#passing ??= this.pass()
        .then(() => this.addUp())
        .catch((error: unknown) => {
          if (!isStoreDown(error)) this.#deps.log.warn({ err: error }, 'cannot post usage; will retry')
        })
        .finally(() => {
          this.#passing = undefined
        })
    }
    pass()
    this.#timer = setInterval(pass, EVERY_MS)
  }

  async pass(): Promise<void> {
    const { sql, config } = this.#deps
    if (config.nodePriceSatPerDay === 0) return forgetUsage(sql)
    const priceMsatPerDay = config.nodePriceSatPerDay * 1000
    while ((await closeHours(sql)) === AT_ONCE);
    crashpoint('metering: hours closed')
    while ((await postUsage(sql, priceMsatPerDay, AT_ONCE)) === AT_ONCE);
    crashpoint('metering: posted')
    const accounts = await listWatchedCredit(sql, priceMsatPerDay)
    for (const account of accounts) {
      const change = nextWarning(account, meansOf(account, priceMsatPerDay))
      if (change) await recordWarning(sql, account, change)
    }
    crashpoint('metering: warned')
    await this.#stopNodes(accounts, priceMsatPerDay)
  }

  /** For the page that shows what nodes cost. The first passes after an update catch up on the days before it. */
  async addUp(): Promise<void> {
    for (let days = 0; days < DAYS_AT_ONCE && (await addUpUsageDay(this.#deps.sql)); days++);
  }

  /** A node that is busy or not up yet is stopped in a later pass. */
  async #stopNodes(accounts: CreditRow[], priceMsatPerDay: number): Promise<void> {
    const { sql, config, stopNode, log } = this.#deps
    const graceSeconds = config.creditGraceHours * 3_600
    const broke = accounts.filter(
      ({ emptyForSeconds, running }) => emptyForSeconds !== null && emptyForSeconds >= graceSeconds && running > 0,
    )
    if (broke.length === 0) return
    for (const { accountId } of broke) await recordExhaustion(sql, accountId, priceMsatPerDay, graceSeconds)
    const nodes = await listStoppableNodes(
      sql,
      broke.map(({ accountId }) => accountId),
    )
    for (const { id, accountId } of nodes) {
      try {
        await stopNode(accountId, id)
        log.info({ nodeId: id }, 'stopping a node: its account has been out of credit for too long')
      } catch (error) {
        if (!(error instanceof Problem)) throw error
      }
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#passing
  }
}
