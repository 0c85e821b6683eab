import type { Config } from '../../config.ts'
import { newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import { insertTreasuryAccount, lockTreasury, markTreasury } from '../../store/credit/treasury.ts'
import type { Database, Sql } from '../../store/db.ts'

type TreasuryNodeParams = { accountId: string; actor: string; name: string; accessMode: 'limited' }

export type TreasuryDeps = {
  sql: Database
  config: Pick<Config, 'treasury' | 'nodePriceSatPerDay' | 'role'>
  /** In the transaction that it is given. */
  createNode: (sql: Sql, params: TreasuryNodeParams) => Promise<unknown>
  wake: () => void
  log: Logger
}

const ACTOR = 'first run'

/**
 * Who takes payments for credit. Where money is real the operator names a node of an account made for it. In the sandbox both are made,
 * once: nobody has a key of that account, and so nobody else sees its node.
 */
export async function openTreasury({ sql: database, config, createNode, wake, log }: TreasuryDeps): Promise<void> {
  const { treasury } = config
  if (treasury === 'none') return
  if (treasury.nodeId !== undefined) {
    if (!(await markTreasury(database, treasury.nodeId)))
      log.warn('TREASURY_NODE_ID names no node of an account "treasury": credit cannot be bought')
    return
  }
  // What costs nothing needs no credit; and a process that only serves has nowhere to put a node.
  if (config.nodePriceSatPerDay === 0 || config.role !== 'all') return
  const isMade = await database.begin(async (sql) => {
    await lockTreasury(sql)
    const accountId = newId('acct')
    if (!(await insertTreasuryAccount(sql, accountId, ACTOR))) return false
    // Limited: enough to make invoices and to be asked about them. Nothing in the service can spend what is in it.
    await createNode(sql, { accountId, actor: ACTOR, name: 'Treasury', accessMode: 'limited' })
    return true
  })
  if (isMade) wake()
}
