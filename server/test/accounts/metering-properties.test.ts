import fc from 'fast-check'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { findCredit, insertCredit } from '../../src/store/credit/credit.ts'
import { insertTopUp, settleTopUp } from '../../src/store/credit/top-ups.ts'
import { closeHours, postUsage } from '../../src/store/credit/usage.ts'
import type { Database, Sql } from '../../src/store/db.ts'
import {
  type Clock,
  costOf,
  entriesOf,
  forgetNodes,
  freshDatabase,
  intervalsOf,
  minutes,
  NOON,
  newAccount,
  newNode,
  setNode,
  sumOf,
} from '../support/credit.ts'

const NOW = Math.floor(NOON / 60)
const HOUR = 3_600
const DAY = 86_400

let sql: Database
let clock: Clock

beforeAll(async () => {
  ;({ sql, clock } = await freshDatabase())
})

beforeEach(async () => {
  // Otherwise, intervals that another test left open would be closed and posted together with the intervals of this test.
  await forgetNodes(sql)
  await clock.set(NOON)
})

type Step =
  | { do: 'pass'; seconds: number }
  | { do: 'jump'; seconds: number }
  | { do: 'set'; node: number; status: string }
  | { do: 'ask'; node: number; desired: string }
  | { do: 'close' | 'post' | 'post twice at once' | 'die while posting' | 'die while closing' }
  | { do: 'grant' | 'take'; msat: number }
  | { do: 'top up'; sat: number; told: number }

const NODES = 3
const node = fc.nat(NODES - 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.nat(4 * HOUR) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('jump' as const), seconds: fc.integer({ min: -2 * DAY, max: 2 * DAY }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('set' as const),
      node,
      status: fc.constantFrom('provisioning', 'ready', 'stopped', 'failed'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('ask' as const), node, desired: fc.constantFrom('running', 'stopped') }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'close' as const,
        'post' as const,
        'post twice at once' as const,
        'die while posting' as const,
        'die while closing' as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('grant' as const, 'take' as const), msat: fc.integer({ min: 1, max: 300_000 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('top up' as const),
      sat: fc.integer({ min: 1, max: 1_000 }),
      told: fc.integer({ min: 1, max: 3 }),
    }),
  },
)

/** The simplest model of one node's usage: the set of the minutes that are charged. */
class Expected {
  readonly minutes = new Set<number>()
  #from: number | undefined
  #end = 0
  status = 'stopped'
  desired = 'running'

  change(minute: number): void {
    const costs = this.desired === 'running' && (this.status === 'provisioning' || this.status === 'ready')
    if (costs === (this.#from !== undefined)) return
    if (costs) this.#from = Math.max(minute, this.#end)
    else this.#close(minute + 1)
  }

  #close(minute: number): void {
    for (const one of minutes(this.#from ?? minute, minute)) {
      expect(this.minutes.has(one), 'the model itself counts a minute once').toBe(false)
      this.minutes.add(one)
    }
    this.#end = Math.max(this.#end, this.#from === undefined || minute <= this.#from ? 0 : minute)
    this.#from = undefined
  }

  closeHour(minute: number): void {
    if (this.#from === undefined || minute - this.#from < 60) return
    this.#close(minute)
    this.#from = minute
  }

  /** All charged minutes, including those of an interval that is still open at this minute. */
  all(minute: number): number[] {
    return [...this.minutes, ...minutes(this.#from ?? minute, minute)]
  }
}

describe('C31 C32: any events in any order', () => {
  const die = async (work: (store: Sql) => Promise<unknown>): Promise<void> => {
    const dying = sql.begin(async (transaction) => {
      await work(transaction)
      throw new Error('dead')
    })
    await expect(dying).rejects.toThrow('dead')
  }

  test('C31 C32: the balance is the sum of the ledger; no charge is negative; every minute is charged once; every split of a period costs the same; only metering takes a balance below zero', async () => {
    const run = async (price: number, steps: Step[]): Promise<void> => {
      await forgetNodes(sql)
      await clock.set(NOON)
      const id = await newAccount(sql)
      const treasury = await newNode(sql, await newAccount(sql), { status: 'stopped' })
      let now = NOON
      const minute = (): number => Math.floor(now / 60)
      const nodes = await Promise.all(Array.from({ length: NODES }, () => newNode(sql, id, { status: 'stopped' })))
      const expected = nodes.map(() => new Expected())
      let given = 0
      for (const one of steps) {
        switch (one.do) {
          case 'pass':
          case 'jump':
            now += one.seconds
            await clock.set(now)
            break
          case 'set':
          case 'ask': {
            const change = one.do === 'set' ? { status: one.status } : { desired: one.desired }
            await setNode(sql, nodes[one.node] ?? '', change)
            Object.assign(expected[one.node] ?? {}, change)
            expected[one.node]?.change(minute())
            break
          }
          case 'close':
            await closeHours(sql)
            for (const each of expected) each.closeHour(minute())
            break
          case 'post':
            await postUsage(sql, price, 2)
            break
          case 'post twice at once':
            await Promise.all([postUsage(sql, price, 3), postUsage(sql, price, 100)])
            break
          case 'die while posting':
            await die((store) => postUsage(store, price, 100))
            break
          case 'die while closing':
            await die(closeHours)
            break
          case 'grant':
          case 'take': {
            const amountMsat = one.do === 'grant' ? one.msat : -one.msat
            const entry = await insertCredit(sql, { accountId: id, amountMsat, kind: 'operator', reason: 'x', actor: 'x' })
            const balance = sumOf(await entriesOf(sql, id))
            if (typeof entry === 'object') {
              given += amountMsat
              if (one.do === 'take') expect(balance).toBeGreaterThanOrEqual(0)
            } else expect([entry, balance + amountMsat < 0]).toEqual([balance, true])
            break
          }
          case 'top up': {
            const paymentHash = Buffer.alloc(32)
            crypto.getRandomValues(paymentHash)
            const topUp = {
              paymentHash,
              accountId: id,
              nodeId: treasury,
              amountSat: one.sat,
              invoice: 'x',
              expiresAtSeconds: now,
            }
            await insertTopUp(sql, topUp)
            const told = await Promise.all(
              Array.from({ length: one.told }, () => settleTopUp(sql, treasury, paymentHash, undefined)),
            )
            expect(told.filter(Boolean)).toHaveLength(1)
            given += one.sat * 1000
          }
        }
      }
      const wanted = expected.reduce((sum, each) => sum + costOf(price, each.all(minute())), 0)
      const row = await findCredit(sql, id, price)
      const entries = await entriesOf(sql, id)
      const charges = entries.filter(({ kind }) => kind === 'usage')
      for (const { amountMsat } of charges) expect(amountMsat).toBeLessThan(0)
      expect(row?.balanceMsat).toBe(sumOf(entries))
      expect((row?.unpostedMsat ?? 0) - sumOf(charges)).toBe(wanted)
      expect(row?.balanceMsat).toBe(given + sumOf(charges))
      for (const [index, id] of nodes.entries()) {
        const kept = (await intervalsOf(sql, id)).flatMap(({ from, to }) => minutes(from, to ?? minute()))
        expect(kept).toEqual(expected[index]?.all(minute()).sort((a, b) => a - b))
        expect(new Set(kept).size).toBe(kept.length)
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1_000_000_000 }), fc.array(step, { minLength: 5, maxLength: 40 }), run),
      { numRuns: 60, endOnFailure: false },
    )
  })

  test('C32: however a period is split, its charges have the same sum, and a day costs the price of a day', async () => {
    const charge = async (price: number, from: number, to: number): Promise<number> => {
      const [row] = await sql<
        { charge: number }[]
      >`SELECT usage_charge(${price}::bigint, ${from}::bigint, ${to}::bigint) AS charge`
      return row?.charge ?? Number.NaN
    }
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 1_000_000_000 }),
        fc.integer({ min: NOW - 10_000_000, max: NOW + 10_000_000 }),
        fc.array(fc.nat(5_000), { minLength: 1, maxLength: 8 }),
        async (price, from, lengths) => {
          let at = from
          let sum = 0
          for (const length of lengths) {
            const part = await charge(price, at, at + length)
            expect(part).toBeGreaterThanOrEqual(0)
            sum += part
            at += length
          }
          expect(await charge(price, from, at)).toBe(sum)
          expect(await charge(price, from, from + 1440)).toBe(price)
        },
      ),
      { numRuns: 100 },
    )
  })
})
