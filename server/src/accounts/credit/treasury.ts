import type { Config } from '../../config.ts'
import { lightningIdOf, type Network, newMaterial, sealSecrets } from '../../nodes/material.ts'
import { newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import type { MasterKey } from '../../platform/secrets.ts'
import { insertTreasuryAccount, lockTreasury, markTreasury } from '../../store/credit/treasury.ts'
import type { Database } from '../../store/db.ts'
import { insertNode } from '../../store/nodes/nodes.ts'

export type TreasuryParts = {
  sql: Database
  config: Config
  master: MasterKey
  network: Network
  host: string
  versions: string[]
  wake: () => void
  log: Logger
}

const ACTOR = 'first run'
const NO_LIMITS = { perAccount: 1, perHost: Number.MAX_SAFE_INTEGER, priceMsatPerDay: 0 }

/**
 * Who takes payments for credit. Where money is real the operator names a node of an account made for it. In the sandbox both are made,
 * once: nobody has a key of that account, and so nobody else sees its node.
 */
export async function openTreasury({
  sql: database,
  config,
  master,
  network,
  host,
  versions,
  wake,
  log,
}: TreasuryParts): Promise<void> {
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
    const id = newId('node')
    const material = newMaterial()
    const made = await insertNode(
      sql,
      {
        id,
        accountId,
        host,
        lightningId: lightningIdOf(material.seed, network),
        name: 'Treasury',
        autoLiquidity: '2m',
        // Enough to make invoices and to be asked about them: nothing in the service can spend what is in it.
        accessMode: 'limited',
        version: versions.at(-1) ?? '',
        secrets: sealSecrets(master, accountId, id, material, 'limited'),
        actor: ACTOR,
      },
      NO_LIMITS,
    )
    if (typeof made === 'string' || 'missingMsat' in made) throw new Error('the treasury’s node was refused')
    return true
  })
  if (isMade) wake()
}
