import { createHash, randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { headerBeginningOf, issueMpp, mppReceipt } from '../../../protocol/src/mpp.ts'
import { deliveryOutcome, paymentOutcome } from '../../src/gateway/outcomes.ts'
import { ProtocolKeys } from '../../src/gateway/protocol-keys.ts'
import { Validation, type ValidationDeps } from '../../src/gateway/validation.ts'
import { newId } from '../../src/platform/ids.ts'
import { primitives } from '../../src/platform/primitives.ts'
import { statementProbe } from '../../src/platform/probes.ts'
import { masterKeyOf } from '../../src/platform/secrets.ts'
import { isStoreDown } from '../../src/platform/store-down.ts'
import { Problem } from '../../src/problems.ts'
import type { Database } from '../../src/store/db.ts'
import { claimDelivery, type ExpectedTerms } from '../../src/store/payments/deliveries.ts'
import { PaidBatches } from '../../src/store/payments/paid-batches.ts'
import { markPaidByProof, type PaidRow, type Proof } from '../../src/store/payments/payments.ts'
import { newAccount } from '../support/credit.ts'
import { lockingTransaction, newDatabase } from '../support/database.ts'
import { credentialOf, parametersOf } from '../support/gateway.ts'
import { eventually } from '../support/server.ts'

/**
 * A single statement serves credentials that were issued with the current protocol key. For an older key, the payment is read first, and
 * the outcome tables decide. Every state of a payment is tested both ways, with two instances on one store that have different
 * current keys.
 */
let sql: Database
let call: { accountId: string; actor: string }
const nodeId = newId('node')
let keys: ProtocolKeys
let fast: Validation
let slow: Validation

beforeAll(async () => {
  ;({ sql } = await newDatabase())
  call = { accountId: await newAccount(sql), actor: 'key_of_the_test' }
  const master = masterKeyOf(randomBytes(32))
  keys = await ProtocolKeys.open(sql, master, undefined)
  const later = await ProtocolKeys.open(sql, masterKeyOf(randomBytes(32)), master)
  // The node is unreachable: what is not settled in the store stays unknown.
  const deps = {
    sql,
    accessTo: async () => undefined,
    settlements: undefined as never,
    noteChange: () => undefined,
  } satisfies Partial<ValidationDeps>
  fast = new Validation({ ...deps, protocolKeys: keys })
  slow = new Validation({ ...deps, protocolKeys: later })
})

const ME = 'this-request'
const OTHER = 'another-request'
const LONG_AGO = 1_600_000_000

const CLAIMS = {
  unpaid: undefined,
  paid: { redeemed: false, by: null, held: null },
  'held by me': { redeemed: true, by: ME, held: '1 hour' },
  'held by another': { redeemed: true, by: OTHER, held: '1 hour' },
  'lapsed, mine': { redeemed: true, by: ME, held: '-1 hour' },
  'lapsed, another’s': { redeemed: true, by: OTHER, held: '-1 hour' },
  'done by me': { redeemed: true, by: ME, held: null },
  'done by another': { redeemed: true, by: OTHER, held: null },
  'done by a request without an id': { redeemed: true, by: null, held: null },
} as const
type ClaimName = keyof typeof CLAIMS

const TERMS: Record<string, ExpectedTerms | undefined> = {
  'no terms': undefined,
  'its terms': { resource: 'GET /report', minAmountSat: 100 },
  'other terms': { resource: 'GET /report', minAmountSat: 101 },
}

type State = { isSettled: boolean; claim: ClaimName; released: string[] }
type Made = { id: string; credential: string; proof: Proof }

async function made({ isSettled, claim, released }: State): Promise<Made> {
  const [id, preimage] = [newId('pay'), randomBytes(32)]
  const paymentHash = createHash('sha256').update(preimage).digest()
  const terms = { amountSat: 100, description: 'A report', paymentId: id, invoice: 'lnbcrt1test', network: 'regtest' as const }
  const challenge = issueMpp(
    primitives,
    keys.current.mpp,
    'shop.example',
    { ...terms, paymentHash: paymentHash.toString('hex') },
    2e9,
  )
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, resource, challenge, payment_hash,
                                  protocol_key_id, created_at, expires_at, settled_at, receipt)
    VALUES (${id}, ${call.accountId}, ${nodeId}, 'mpp', 100, 'A report', 'GET /report', ${challenge}, ${paymentHash}, ${keys.current.id},
            now(), to_timestamp(2000000000), ${isSettled ? sql`to_timestamp(${LONG_AGO})` : null},
            ${isSettled ? mppReceipt(challenge, paymentHash, LONG_AGO * 1000) : null})`
  const taken = CLAIMS[claim]
  if (taken)
    await sql`
      INSERT INTO paid_payments (account_id, id, actor, redeemed_at, redeem_request_id, held_until, released_request_ids)
      VALUES (${call.accountId}, ${id}, 'earlier', ${taken.redeemed ? sql`to_timestamp(${LONG_AGO})` : null}, ${taken.by},
              ${taken.held === null ? null : sql`now() + ${taken.held}::interval`}, ${released.length === 0 ? null : released})`
  const credential = credentialOf({ protocol: 'mpp', challenge }, preimage.toString('hex'))
  return { id, credential, proof: { challengeBeginning: headerBeginningOf(parametersOf(challenge).id ?? ''), paymentHash } }
}

/** What the caller gets, and what is stored afterwards, without values that differ between payments. */
async function seen({ id }: Made, answer: Promise<{ id: string; receipt?: string; redeemedAt?: number }>): Promise<unknown> {
  const got = await answer.then(
    ({ id: named, receipt, redeemedAt, ...more }) => [named === id, typeof receipt, redeemedAt === LONG_AGO, more],
    (error: unknown) => {
      if (!(error instanceof Problem)) throw error
      return [error.code, error.message, error.details]
    },
  )
  const rows = await sql`
    SELECT actor = 'earlier' AS earlier, redeemed_at = to_timestamp(${LONG_AGO}) AS "sinceLongAgo", redeem_request_id AS holder,
           held_until > now() AS held, released_request_ids AS released
    FROM paid_payments WHERE id = ${id}`
  return [got, rows.map((row) => ({ ...row }))]
}

const CLAIM_NAMES = Object.keys(CLAIMS) as ClaimName[]
const STATES: State[] = CLAIM_NAMES.flatMap((claim) =>
  (claim === 'unpaid' ? [[]] : [[], [ME], [OTHER]]).flatMap((released) =>
    // A payment that was paid or redeemed has always been settled.
    (claim === 'unpaid' ? [true, false] : [true]).map((isSettled) => ({ isSettled, claim, released })),
  ),
)

describe('C38, C45: the fast statement and the outcome tables agree', () => {
  test.each(STATES)('redeem: $claim, settled $isSettled, released by $released', async (state) => {
    for (const expected of Object.values(TERMS))
      for (const requestId of [ME, undefined])
        for (const holdSeconds of requestId === undefined ? [undefined] : [undefined, 60]) {
          const params = (credential: string) => ({
            credential,
            ...(requestId === undefined ? {} : { requestId }),
            ...(holdSeconds === undefined ? {} : { holdSeconds }),
            ...(expected ? { expect: expected } : {}),
          })
          const [one, other, third] = [await made(state), await made(state), await made(state)]
          const quick = await seen(one, fast.redeem(call, one.id, params(one.credential)))
          expect(await seen(other, slow.redeem(call, other.id, params(other.credential)))).toEqual(quick)

          const taken = CLAIMS[state.claim]
          const isLapsed = state.claim.startsWith('lapsed')
          const payment = paymentOutcome({
            credential: 'right',
            settlement: state.isSettled ? 'settled' : 'unknown',
            challenge: 'open',
            terms: expected?.minAmountSat === 101 ? 'other' : 'expected',
          })
          const delivery = deliveryOutcome({
            use: 'single',
            delivery: !taken?.redeemed || isLapsed ? 'none' : taken.held === null ? 'done' : 'held',
            holder: requestId !== undefined && taken?.by === requestId ? 'this request' : 'another',
            hasReleased: requestId !== undefined && state.released.includes(requestId),
          })
          const claim = { requestId: requestId ?? null, holdSeconds: holdSeconds ?? null }
          const served = await claimDelivery(sql, call, third.id, claim, expected, third.proof)
          expect(served !== undefined).toBe(payment === 'granted' && delivery === 'claim')
        }
  })

  test.each(STATES)('validate: $claim, settled $isSettled, released by $released', async (state) => {
    const [one, other, third] = [await made(state), await made(state), await made(state)]
    const quick = await seen(one, fast.validate(call, one.id, one))
    expect(await seen(other, slow.validate(call, other.id, other))).toEqual(quick)
    const served = await markPaidByProof(sql, call, third.id, third.proof)
    expect(served !== undefined).toBe(state.isSettled && state.claim === 'unpaid')
  })
})

describe('C38: many validations at once', () => {
  const SETTLED: State = { isSettled: true, claim: 'unpaid', released: [] }
  const callerOf = (actor: string) => ({ ...call, actor })
  const paidBy = async (ids: string[]): Promise<Map<string, string>> => {
    const rows = await sql<{ id: string; actor: string }[]>`SELECT id, actor FROM paid_payments WHERE id = ANY (${ids})`
    return new Map(rows.map(({ id, actor }) => [id, actor]))
  }

  test('they share statements, and each gets its own receipt or nothing', async () => {
    const states: State[] = [
      SETTLED,
      { ...SETTLED, isSettled: false },
      { ...SETTLED, claim: 'paid' },
      { ...SETTLED, claim: 'done by another' },
    ]
    const payments = await Promise.all(Array.from({ length: 40 }, (_, index) => made(states[index % states.length] as State)))
    const stranger = { accountId: await newAccount(sql), actor: 'stranger' }
    const batches = new PaidBatches(sql)
    const texts: string[] = []
    const unwatch = statementProbe.watch(({ text }) => texts.push(text))
    const results = await Promise.all(
      payments.flatMap(({ id, proof }, index) => [
        batches.mark(stranger, id, proof),
        batches.mark(call, id, { ...proof, paymentHash: randomBytes(32) }),
        batches.mark(call, id, {
          ...proof,
          challengeBeginning: payments[(index + 1) % payments.length]?.proof.challengeBeginning ?? '',
        }),
        batches.mark(call, id, proof),
      ]),
    )
    unwatch()
    expect(texts.filter((text) => text.includes('paid_payments')).length).toBeLessThan(payments.length)
    const receipts = await sql<
      { id: string; receipt: string }[]
    >`SELECT id, receipt FROM gateway_payments WHERE receipt IS NOT NULL`
    const receiptOf = new Map(receipts.map(({ id, receipt }) => [id, receipt]))
    for (const [index, { id }] of payments.entries()) {
      const isGranted = index % states.length === 0
      const expected = isGranted ? { id, protocol: 'mpp', receipt: receiptOf.get(id) } : undefined
      expect(results.slice(index * 4, index * 4 + 4)).toEqual([undefined, undefined, undefined, expected])
    }
    expect(new Set(results.flatMap((result) => result?.receipt ?? [])).size).toBe(payments.length / states.length)
  })

  test('of many callers that mark one payment as paid, only the one that is recorded gets the payment', async () => {
    const payments = await Promise.all(Array.from({ length: 10 }, () => made(SETTLED)))
    // Two batchers, as in two processes, that mark the payments in opposite orders.
    const processes = [new PaidBatches(sql), new PaidBatches(sql)]
    const calls = processes.flatMap((batches, index) =>
      Array.from({ length: 5 }, (_, turn) =>
        (index === 0 ? payments : [...payments].reverse()).map(({ id, proof }) => ({
          batches,
          id,
          proof,
          actor: `${index} ${turn}`,
        })),
      ).flat(),
    )
    const results = await Promise.all(
      calls.map(async ({ batches, id, proof, actor }) => ({ id, actor, paid: await batches.mark(callerOf(actor), id, proof) })),
    )
    const told = results.filter(({ paid }) => paid !== undefined)
    expect(told.length).toBe(payments.length)
    expect(new Map(told.map(({ id, actor }) => [id, actor]))).toEqual(await paidBy(payments.map(({ id }) => id)))
  })

  test('two processes that mark the same payments in opposite orders do not deadlock', async () => {
    const payments = (await Promise.all(Array.from({ length: 3 }, () => made(SETTLED)))).sort((one, other) =>
      one.id < other.id ? -1 : 1,
    )
    const unknown = await Promise.all(Array.from({ length: 3 }, () => made({ ...SETTLED, isSettled: false })))
    const results: Promise<PaidRow | undefined>[] = []
    const rollback = new Error('rolled back')
    const transaction = lockingTransaction(sql, async (other) => {
      // Any statement that reaches the second payment waits for this transaction.
      await other`INSERT INTO paid_payments (account_id, id, actor) VALUES (${call.accountId}, ${payments[1]?.id ?? ''}, 'other')`
      for (const order of [payments, [...payments].reverse()]) {
        const batches = new PaidBatches(sql)
        // The first calls have separate statements; the following ones share one.
        results.push(...[...unknown, ...order].map(({ id, proof }) => batches.mark(call, id, proof)))
      }
      await eventually(async () => {
        const waiting =
          await other`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
        return waiting.length === 2
      }, 'both to wait')
      throw rollback
    })
    await expect(transaction).rejects.toBe(rollback)
    const paid = (await Promise.all(results)).flatMap((result) => result?.id ?? [])
    expect(paid.sort()).toEqual(payments.map(({ id }) => id))
  })

  test('if the store is down, every caller gets the error, and later calls are tried again', async () => {
    const { sql: gone } = await newDatabase(1)
    const batches = new PaidBatches(gone)
    await gone.end()
    const payments = await Promise.all(Array.from({ length: 20 }, () => made(SETTLED)))
    const outcomes = (): Promise<PromiseSettledResult<unknown>[]> =>
      Promise.allSettled(payments.map(({ id, proof }) => batches.mark(call, id, proof)))
    for (let turn = 0; turn < 2; turn++)
      expect((await outcomes()).every((one) => one.status === 'rejected' && isStoreDown(one.reason))).toBe(true)
    expect((await paidBy(payments.map(({ id }) => id))).size).toBe(0)
  })
})
