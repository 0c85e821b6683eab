import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { lightningIdOf } from '../../server/src/nodes/lightning-id.ts'
import { newMaterial, sealSecrets } from '../../server/src/nodes/material.ts'
import type { NodeSpec } from '../../server/src/nodes/runtime.ts'
import { newId } from '../../server/src/platform/ids.ts'
import type { MasterKey } from '../../server/src/platform/secrets.ts'
import { PORT } from '../../server/src/runtimes/kubernetes/objects.ts'
import type { Database } from '../../server/src/store/db.ts'

export const VERSION = '0.8.0'
/** What every node has, according to the process that answers for it. */
const BALANCE_SAT = 1_000
const PER_ACCOUNT = 1_000
const INSERTED_AT_ONCE = 1_000
/** Depends on the process id, so that two runs at the same time rarely use the same addresses. */
const NETWORK = `127.${200 + (process.pid % 50)}.${process.pid % 256}`
/** Several addresses, because the client's port of a closed connection stays reserved for a minute, per address. */
const ADDRESSES = Array.from({ length: 250 }, (_, index) => `${NETWORK}.${index + 1}`)

export type FleetNode = { id: string; index: number }

export const addressOf = ({ index }: FleetNode): string => ADDRESSES[index % ADDRESSES.length] ?? ''

/** All nodes share one seed, so that one process can stand in for all of them. */
const material = newMaterial()
const lightningId = lightningIdOf(material.seed, 'regtest')

const desired = { state: 'running' as const, version: VERSION, run: 1 }
const history = () => ({
  wantedSinceMs: Date.now(),
  exitsMs: [],
  startedAtMs: Date.now(),
  run: 1,
  version: VERSION,
  reached: true,
  previousVersion: null,
})

/** The specification with which the reconciler would have started the node. */
export const specOf = ({ id }: FleetNode): NodeSpec => ({
  id,
  lightningId,
  autoLiquidity: 'off',
  desired,
  hasOperation: false,
  history: history(),
  epoch: 1,
  nowMs: Date.now(),
})

/** The process that answers for all nodes. */
export async function startResponder(): Promise<{ stop: () => void }> {
  const path = fileURLToPath(new URL('responder.ts', import.meta.url))
  const child = fork(path, [ADDRESSES.join(','), String(PORT), lightningId, VERSION, String(BALANCE_SAT)])
  await once(child, 'message')
  return { stop: () => void child.kill() }
}

export type Fleet = { sql: Database; master: MasterKey; installation: string; firstAccountId: string }

/** Running nodes with sealed secrets, a thousand per account. The first account is the one whose key the bench has. */
export async function insertNodes(
  { sql, master, installation, firstAccountId }: Fleet,
  from: number,
  to: number,
): Promise<FleetNode[]> {
  const nodes: FleetNode[] = []
  for (let first = from; first < to; first += PER_ACCOUNT) {
    const accountId = first === 0 ? firstAccountId : newId('acct')
    if (first > 0) await sql`INSERT INTO accounts (id, name) VALUES (${accountId}, ${`fleet ${first}`})`
    await sql`
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${accountId}, 1000000000000, 'operator', 'bench')`
    const some = Array.from({ length: Math.min(to - first, INSERTED_AT_ONCE) }, (_, index) => ({
      id: newId('node'),
      index: first + index,
    }))
    await insertSome({ sql, master, installation }, accountId, some)
    nodes.push(...some)
  }
  await sql`ANALYZE`
  return nodes
}

async function insertSome(
  { sql, master, installation }: Omit<Fleet, 'firstAccountId'>,
  accountId: string,
  nodes: FleetNode[],
): Promise<void> {
  const ids = nodes.map(({ id }) => id)
  const sealed = ids.map((id) => sealSecrets(master, accountId, id, material, 'limited'))
  const hex = (name: 'dashboardAccess' | 'webhookSecret' | 'material'): string[] =>
    sealed.map((secrets) => secrets[name].toString('hex'))
  await sql.begin(async (transaction) => {
    await transaction`
      INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, status, desired_state, desired_version,
                         desired_run, history, phase, version, has_funds, balance_sat, lease_epoch, next_at)
      SELECT id, ${accountId}, ${installation}, ${lightningId}, 'Fleet', 'off', 'limited', 'ready', 'running', ${VERSION}, 1,
             ${transaction.json(history())}, 'running', ${VERSION}, true, ${BALANCE_SAT}, 1, now() + interval '1 hour'
      FROM unnest(${ids}::text[]) AS new (id)`
    // As in a fleet that has run for a while: each node has listed what it received, at some time of the last hour.
    await transaction`
      INSERT INTO node_receipt_lists (node_id, listed_until, listed_at, begun_at, next_at, balance_sat)
      SELECT id, now(), now(), now(), now() + random() * interval '1 hour', ${BALANCE_SAT} FROM unnest(${ids}::text[]) AS new (id)`
    await transaction`
      INSERT INTO node_secrets (node_id, key_id, dashboard_access, webhook_secret, material)
      SELECT id, ${master.id}, decode(dashboard, 'hex'), decode(webhook, 'hex'), decode(material, 'hex')
      FROM unnest(${ids}::text[], ${hex('dashboardAccess')}::text[], ${hex('webhookSecret')}::text[], ${hex('material')}::text[])
        AS new (id, dashboard, webhook, material)`
  })
}
