import type { Config } from '../../config.ts'
import { newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import { insertTreasuryAccount, lockTreasury, markTreasury } from '../../store/credit/treasury.ts'
import type { Database, Sql } from '../../store/db.ts'

type TreasuryNodeParams = { accountId: string; actor: string; name: string; accessMode: 'limited' }

export type TreasuryDeps = {
  sql: Database
  config: Pick<Config, 'treasury' | 'nodePriceSatPerDay' | 'role'>
  /** Runs in the given transaction. */
  createNode: (sql: Sql, params: TreasuryNodeParams) => Promise<unknown>
  wake: () => void
  log: Logger
}

const ACTOR = 'first run'

/**
 * Sets up the node that receives payments for credit. With phoenixd, the operator names a node of a dedicated account. In the sandbox, an
 * account and its node are created once; that account has no key, so no one else can see its node.
 */
export async function openTreasury({ sql: database, config, createNode, wake, log }: TreasuryDeps): Promise<void> {
  const { treasury } = config
  if (treasury === 'none') return
  if (treasury.nodeId !== undefined) {
    if (!(await markTreasury(database, treasury.nodeId)))
      log.warn('TREASURY_NODE_ID is not a node of an account named "treasury": credit cannot be bought')
    return
  }
  // If nodes are free, no credit is needed; and a process with ROLE=api cannot run a node.
  if (config.nodePriceSatPerDay === 0 || config.role !== 'all') return
  const isMade = await database.begin(async (sql) => {
    await lockTreasury(sql)
    const accountId = newId('acct')
    if (!(await insertTreasuryAccount(sql, accountId, ACTOR))) return false
    // Limited access is enough to create and query invoices. Nothing in the service can spend the node's balance.
    await createNode(sql, { accountId, actor: ACTOR, name: 'Treasury', accessMode: 'limited' })
    return true
  })
  if (isMade) wake()
}
