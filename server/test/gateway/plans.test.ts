import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import type { Database, Sql } from '../../src/store/db.ts'
import { claimDelivery, confirmDeliveries, releaseDelivery } from '../../src/store/payments/deliveries.ts'
import { hurryInvoice, isOpenInvoice, PAYMENT_INVOICES } from '../../src/store/payments/invoices.ts'
import { PaidBatches } from '../../src/store/payments/paid-batches.ts'
import {
  findIdByInvoice,
  findPayment,
  findShownPayment,
  findUnsettled,
  markPaidByProof,
} from '../../src/store/payments/payments.ts'
import { newDatabase } from '../support/database.ts'

/** Statements about one payment read only its rows, even if the planner has no statistics or outdated ones. */

const call = { accountId: newId('acct'), actor: newId('key') }
const nodeId = newId('node')
/** So many payments in one account that a plan that reads them all is obvious. */
const MANY = 4_000
/** So few that the planner, without statistics, assumes that an account has one payment. */
const FEW = 150
/** PostgreSQL keeps a generic plan from the sixth execution on. */
const UNTIL_KEPT = 8
const BATCH = 10

let sql: Database

beforeAll(async () => {
  // A single connection, because PostgreSQL keeps plans per connection.
  ;({ sql } = await newDatabase(1))
  for (const table of ['gateway_payments', 'paid_payments'])
    await sql.unsafe(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
  await sql`INSERT INTO accounts (id, name) VALUES (${call.accountId}, 'test')`
  await sql`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history)
    VALUES (${nodeId}, ${call.accountId}, 'nowhere', '', 'x', '2m', 'limited', '', '{}')`
})

type Kind = 'open' | 'x402' | 'settled' | 'held'
const hashOf = (id: string): Buffer => createHash('sha256').update(id).digest()

async function insert(kind: Kind, count: number, accountOf = (): string => call.accountId): Promise<string[]> {
  const rows = Array.from({ length: count }, () => ({ id: newId('pay'), account: accountOf() }))
  const [ids, accounts] = [rows.map(({ id }) => id), rows.map(({ account }) => account)]
  const isOpen = kind === 'open' || kind === 'x402'
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id,
                                  created_at, expires_at, settled_at, receipt, ask_at)
    SELECT id, account, ${nodeId}, ${kind === 'x402' ? 'x402' : 'mpp'}, 10, 'test', repeat(md5(id), 30), sha256(id::bytea), 'test', now(), now() + interval '5 minutes',
           CASE WHEN ${!isOpen} THEN now() END, CASE WHEN ${!isOpen} THEN 'receipt' END,
           CASE WHEN ${isOpen} THEN now() + interval '5 minutes' END
    FROM unnest(${ids}::text[], ${accounts}::text[]) AS new (id, account)`
  if (kind === 'held')
    await sql`
      INSERT INTO paid_payments (account_id, id, actor, redeemed_at, redeem_request_id, held_until)
      SELECT account, id, 'test', now(), id, now() + interval '5 minutes' FROM unnest(${ids}::text[], ${accounts}::text[]) AS new (id, account)`
  return ids
}

const expected = { nodeId, resource: 'test', minAmountSat: 9 }
const proofOf = (id: string) => ({ challengeBeginning: '', paymentHash: hashOf(id) })

const statements: { name: string; of: Kind; run: (store: Sql, id: string, ids: string[]) => Promise<unknown> }[] = [
  {
    name: 'a redemption with its proof',
    of: 'settled',
    run: (store, id) => claimDelivery(store, call, id, { requestId: id, holdSeconds: 60 }, expected, proofOf(id)),
  },
  { name: 'a first validation', of: 'settled', run: (store, id) => markPaidByProof(store, call, id, proofOf(id)) },
  {
    name: 'first validations that share statements',
    of: 'settled',
    run: async (store, _id, ids) => {
      const batches = new PaidBatches(store)
      const paid = await Promise.all(ids.map((one) => batches.mark(call, one, proofOf(one))))
      return !paid.includes(undefined)
    },
  },
  {
    name: 'a payment with everything that is known about it',
    of: 'held',
    run: (store, id) => findPayment(store, call.accountId, id),
  },
  {
    name: 'an x402 payment by its invoice',
    of: 'x402',
    run: (store, id) => findIdByInvoice(store, call.accountId, hashOf(id)),
  },
  { name: 'a payment as it is shown', of: 'held', run: (store, id) => findShownPayment(store, call.accountId, id) },
  {
    name: 'the confirmation of a batch',
    of: 'held',
    run: async (store, _id, ids) => {
      const confirmed = await confirmDeliveries(
        store,
        call.accountId,
        ids.map((one) => ({ id: one, requestId: one })),
      )
      return confirmed.length === ids.length
    },
  },
  {
    name: 'a release',
    of: 'held',
    run: (store, id) => releaseDelivery(store, call, { id, requestId: id }, undefined),
  },
  { name: 'an invoice that its node reports', of: 'open', run: (store, id) => findUnsettled(store, nodeId, hashOf(id)) },
  {
    name: 'an invoice that an event of its node names',
    of: 'open',
    run: (store, id) => isOpenInvoice(store, PAYMENT_INVOICES, { nodeId, paymentHash: hashOf(id) }),
  },
  {
    name: 'an invoice to ask about next',
    of: 'open',
    run: async (store, id) => (await hurryInvoice(store, PAYMENT_INVOICES, { nodeId, paymentHash: hashOf(id) })) ?? true,
  },
]

/** How many rows of the two tables the work reads, by any scan. */
async function rowsRead(work: (store: Sql) => Promise<unknown>): Promise<number> {
  return sql.begin(async (store) => {
    // The counts may include earlier transactions, because a connection reports and resets them at most once a second.
    const readSoFar = async (): Promise<number> => {
      const [row] = await store<{ read: number }[]>`
        SELECT sum(seq_tup_read + idx_tup_fetch)::int AS read FROM pg_stat_xact_user_tables
        WHERE relname IN ('gateway_payments', 'paid_payments')`
      return row?.read ?? Number.NaN
    }
    const before = await readSoFar()
    if (!(await work(store))) throw new Error('it did nothing')
    return (await readSoFar()) - before
  })
}

/** A plan that PostgreSQL made when there were few payments must not read them all when there are many. */
async function expectLookups({ of, run }: (typeof statements)[number]): Promise<void> {
  const early = await insert(of, FEW)
  for (let time = 0; time < UNTIL_KEPT; time++) {
    const ids = early.splice(0, BATCH)
    await run(sql, ids[0] ?? '', ids)
  }
  await insert(of, MANY)
  const ids = await insert(of, BATCH)
  // A payment may be read more than once: to find it, to write it, and to find it again for the write.
  expect(await rowsRead((store) => run(store, ids[0] ?? '', ids))).toBeLessThanOrEqual(4 * BATCH)
}

describe('speed: one payment is looked up by its key', () => {
  describe('before there are statistics', () => {
    test.each(statements)('$name', async (statement) => {
      // This also resets the statistics of the tables. Those of their columns would stay, but do not exist yet.
      await sql`TRUNCATE gateway_payments, paid_payments`
      await expectLookups(statement)
    })
  })

  describe('with statistics from when every account had one payment', () => {
    test.each(statements)('$name', async (statement) => {
      await sql`TRUNCATE gateway_payments, paid_payments`
      for (const kind of ['open', 'x402', 'settled', 'held'] as const) await insert(kind, 1_000, () => newId('acct'))
      await sql`ANALYZE gateway_payments, paid_payments`
      await expectLookups(statement)
    })
  })
})
