import { createHash } from 'node:crypto'
import { newId } from '../../server/src/platform/ids.ts'
import { addUpUsageDay } from '../../server/src/store/credit/usage-sums.ts'
import type { Database } from '../../server/src/store/db.ts'

export const PAYMENTS = 100_000
export const NODES = 200
export const KEYS = 50
const DAYS = 60
/** Days of usage. The ledger has one entry for each node and hour of them. */
const USED_DAYS = 30
const REQUESTS = 20_000
const BATCH = 5_000

/** The wares of the shop. There are several, so that a search finds only a part of the payments. */
const WARES = ['Weather report for Lisbon', 'Photo in full size', 'One hour of API access', 'Episode 41', 'Translation of a page']

export type BusyAccount = { nodeIds: string[]; keyIds: string[]; paymentId: string; from: number; to: number }

/**
 * Fills an account like that of a shop after two months. The rows are inserted directly, because paying 100,000 invoices would take an
 * hour. The nodes belong to another host, so that this one starts none of them.
 */
export async function fillAccount(sql: Database, accountId: string): Promise<BusyAccount> {
  const now = Math.floor(Date.now() / 1000)
  const start = now - DAYS * 86_400
  const nodeIds = Array.from({ length: NODES }, (_, at) => newId('node', (start - NODES + at) * 1000))
  const keyIds = Array.from({ length: KEYS }, (_, at) => newId('key', (start - KEYS + at) * 1000))
  await sql`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history, desired_state, status,
                       balance_sat, balance_at, created_at)
    SELECT id, ${accountId}, 'elsewhere', '', 'Shop ' || n, '2m', 'limited', '', '{}', 'stopped', 'stopped', n * 1000, now(), to_timestamp(${start})
    FROM unnest(${nodeIds}::text[]) WITH ORDINALITY AS made (id, n)`
  await sql`
    INSERT INTO api_keys (id, account_id, name, prefix, hash, scopes, created_at)
    SELECT id, ${accountId}, 'Server ' || n, 'by_' || n, sha256(id::bytea), '{nodes:read,gateway:write}', to_timestamp(${start})
    FROM unnest(${keyIds}::text[]) WITH ORDINALITY AS made (id, n)`
  let paymentId = ''
  for (let first = 0; first < PAYMENTS; first += BATCH) {
    const rows = Array.from({ length: BATCH }, (_, at) => paymentAt(first + at, start, nodeIds, keyIds))
    paymentId = rows.findLast(({ isPaid }) => isPaid)?.id ?? paymentId
    await insertPayments(sql, accountId, rows)
  }
  await fillLedger(sql, accountId, nodeIds, now)
  await sql`
    INSERT INTO api_requests (account_id, key_id, at, method, route, status, error_code, duration_ms, request_id)
    SELECT ${accountId}, (${keyIds}::text[])[1 + n % ${KEYS}], now() - (${REQUESTS} - n) * interval '30 seconds', 'POST', '/v1/gateway/payments',
           CASE WHEN n % 50 = 0 THEN 404 ELSE 201 END, CASE WHEN n % 50 = 0 THEN 'node_not_found' END, 5, 'req_' || n
    FROM generate_series(1, ${REQUESTS}) n`
  await sql`
    INSERT INTO activity (account_id, actor, action, target, at)
    SELECT ${accountId}, 'operator', 'key.created', id, to_timestamp(${start}) FROM unnest(${keyIds}::text[]) AS made (id)`
  // In a real database, autovacuum would have done this long ago.
  for (const table of ['gateway_payments', 'paid_payments', 'activity', 'credit_entries', 'api_requests', 'nodes'])
    await sql.unsafe(`VACUUM ANALYZE ${table}`)
  return { nodeIds, keyIds, paymentId, from: start + 20 * 86_400, to: start + 27 * 86_400 }
}

type Row = {
  id: string
  nodeId: string
  keyId: string
  protocol: 'mpp' | 'l402'
  amountSat: number
  description: string
  hash: string
  createdAt: number
  isSettled: boolean
  isPaid: boolean
}

/** A third is never settled. Of the others, about one in 50 is settled but never validated or delivered. */
function paymentAt(at: number, start: number, nodeIds: string[], keyIds: string[]): Row {
  const createdAt = start + Math.floor((at * DAYS * 86_400) / PAYMENTS)
  const id = newId('pay', createdAt * 1000)
  const isSettled = at % 3 !== 0
  return {
    id,
    nodeId: nodeIds[(at * 7) % NODES] ?? '',
    keyId: keyIds[(at * 3) % KEYS] ?? '',
    protocol: at % 2 === 0 ? 'mpp' : 'l402',
    amountSat: 10 + (at % 997),
    description: WARES[at % WARES.length] ?? '',
    hash: createHash('sha256').update(id).digest('hex'),
    createdAt,
    isSettled,
    isPaid: isSettled && at % 50 !== 1,
  }
}

async function insertPayments(sql: Database, accountId: string, rows: Row[]): Promise<void> {
  // As long as a real challenge, because wide rows take longer to read.
  const challenge = `Payment ${'x'.repeat(900)}`
  const column = <T>(read: (row: Row) => T): T[] => rows.map(read)
  await sql`
    WITH made AS (
      SELECT * FROM unnest(${column(({ id }) => id)}::text[], ${column(({ nodeId }) => nodeId)}::text[], ${column(({ keyId }) => keyId)}::text[],
        ${column(({ protocol }) => protocol)}::text[], ${column(({ amountSat }) => amountSat)}::bigint[],
        ${column(({ description }) => description)}::text[], ${column(({ hash }) => hash)}::text[],
        ${column(({ createdAt }) => createdAt)}::bigint[], ${column(({ isSettled }) => isSettled)}::boolean[],
        ${column(({ isPaid }) => isPaid)}::boolean[])
        AS made (id, node_id, key_id, protocol, amount_sat, description, hash, created, is_settled, is_paid)
    ), paid AS (
      INSERT INTO paid_payments (account_id, id, paid_at, actor, redeemed_at)
      SELECT ${accountId}, id, to_timestamp(created + 20), key_id, to_timestamp(created + 20) FROM made WHERE is_paid
    ), logged AS (
      INSERT INTO activity (account_id, actor, action, target, at)
      SELECT ${accountId}, node_id, 'payment.settled', id, to_timestamp(created + 15) FROM made WHERE is_settled ORDER BY id
    )
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, resource, challenge, payment_hash, protocol_key_id,
                                  token_id, created_at, expires_at, settled_at, receipt, created_by)
    SELECT id, ${accountId}, node_id, protocol, amount_sat, description, 'GET /report', ${challenge}, decode(hash, 'hex'), 'bench',
           CASE WHEN protocol = 'l402' THEN decode(hash, 'hex') END, to_timestamp(created), to_timestamp(created + 300),
           CASE WHEN is_settled THEN to_timestamp(created + 15) END, CASE WHEN is_settled AND protocol = 'mpp' THEN 'receipt' END, key_id
    FROM made`
}

async function fillLedger(sql: Database, accountId: string, nodeIds: string[], now: number): Promise<void> {
  await sql`
    WITH used AS (
      SELECT node, to_timestamp(${now - (now % 3600) - USED_DAYS * 86_400}) + hour * interval '1 hour' AS at
      FROM unnest(${nodeIds}::text[]) AS made (node), generate_series(0, ${USED_DAYS * 24 - 2}) hour
    ), intervals AS (
      INSERT INTO usage_intervals (node_id, account_id, started_at, ended_at, posted_at)
      SELECT node, ${accountId}, at, at + interval '1 hour', at + interval '1 hour' FROM used
    )
    INSERT INTO credit_entries (account_id, amount_msat, kind, reason, reference, created_at)
    SELECT ${accountId}, -4167, 'usage', 'Usage', node || ' ' || unix_minute(at), at + interval '1 hour' FROM used ORDER BY at`
  while (await addUpUsageDay(sql));
}
