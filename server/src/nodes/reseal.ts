import { derivedKey, type MasterKey, open, seal } from '../platform/secrets.ts'
import { StartFault } from '../platform/start-fault.ts'
import type { Sql } from '../store/db.ts'
import { replaceSecrets, sealingKeyIds, secretsUnder } from '../store/nodes/secrets.ts'
import { dashboardContext, materialContext, webhookContext } from './material.ts'

const BATCH = 100

/**
 * Fails at startup if any row needs a master key we do not have. Otherwise, the first sign would be a node that cannot start,
 * perhaps weeks later.
 */
export async function requireSealingKeys(sql: Sql, keys: MasterKey[]): Promise<void> {
  const needed = await sealingKeyIds(sql)
  const missing = needed.filter(({ keyId }) => !keys.some(({ id }) => id === keyId))
  if (missing.length === 0) return
  const rows = missing.reduce((sum, one) => sum + one.rows, 0)
  throw new StartFault(78, `MASTER_KEY_PREVIOUS: ${rows} sealed rows still need a master key that was not given`)
}

/** Reseals node secrets that are still sealed with the previous master key. Can be interrupted at any row and run again. */
export async function reseal(sql: Sql, master: MasterKey, previous: MasterKey): Promise<number> {
  let count = 0
  for (;;) {
    const rows = await secretsUnder(sql, previous.id, BATCH)
    for (const { nodeId, accountId, dashboardAccess, webhookSecret, material } of rows) {
      const again = (purpose: string, context: string, sealed: Buffer): Buffer =>
        seal(derivedKey(master, purpose), context, open(derivedKey(previous, purpose), context, Buffer.from(sealed)))
      await replaceSecrets(sql, nodeId, previous.id, {
        keyId: master.id,
        dashboardAccess: again('dashboard access', dashboardContext(accountId, nodeId), dashboardAccess),
        webhookSecret: webhookSecret && again('webhook secret', webhookContext(accountId, nodeId), webhookSecret),
        material: again('node material', materialContext(accountId, nodeId), material),
      })
      count++
    }
    if (rows.length < BATCH) return count
  }
}
