import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Metering } from '../../src/accounts/credit/metering.ts'
import { createLogger } from '../../src/platform/log.ts'
import { insertCredit } from '../../src/store/credit/credit.ts'
import type { Database } from '../../src/store/db.ts'
import {
  type Clock,
  costOf,
  entriesOf,
  forgetNodes,
  freshDatabase,
  minutes,
  NOON,
  newAccount,
  newNode,
  PRICE_MSAT,
  PRICE_SAT,
  setNode,
  sumOf,
} from '../support/credit.ts'

const NOW = Math.floor(NOON / 60)
const HOUR = 3_600
const DAY = 86_400

let sql: Database
let clock: Clock
let account: string

beforeAll(async () => {
  ;({ sql, clock } = await freshDatabase())
})

beforeEach(async () => {
  // Otherwise, intervals that another test left open would be closed and posted together with the intervals of this test.
  await forgetNodes(sql)
  await clock.set(NOON)
  account = await newAccount(sql)
})

const used = async (id = account): Promise<number> => 0 - sumOf(await entriesOf(sql, id, 'usage'))

describe('C33: warnings, grace, stop', () => {
  const GRACE_HOURS = 48
  let stops: { accountId: string; nodeId: string }[]
  let metering: Metering

  beforeAll(async () => {
    const log = await createLogger('silent')
    const stopNode = async (accountId: string, nodeId: string): Promise<void> => void stops.push({ accountId, nodeId })
    metering = new Metering({ sql, config: { nodePriceSatPerDay: PRICE_SAT, creditGraceHours: GRACE_HOURS }, stopNode, log })
  })

  beforeEach(async () => {
    stops = []
    await sql`DELETE FROM credit_warnings`
  })

  const credit = (sat: number): Promise<unknown> =>
    insertCredit(sql, { accountId: account, amountMsat: sat * 1000, kind: 'operator', reason: 'x', actor: 'x' })
  const warnings = async (): Promise<string[]> =>
    (
      await sql<{ level: string }[]>`
        SELECT detail->>'level' AS level FROM activity WHERE account_id = ${account} AND action = 'credit.warning' ORDER BY id`
    ).map(({ level }) => level)
  /** Moves the clock forward hour by hour, with one metering pass after each. */
  const live = async (hours: number): Promise<void> => {
    for (let hour = 0; hour < hours; hour++) {
      await clock.move(HOUR)
      await metering.pass()
    }
  }

  test('C33: each warning (seven days, one day, nothing left) is sent once; after two days of grace, every node is stopped', async () => {
    await credit(8 * PRICE_SAT)
    const running = await newNode(sql, account)
    await metering.pass()
    expect(await warnings()).toEqual([])
    await live(25)
    expect(await warnings()).toEqual(['week'])
    await live(24 * 6)
    expect(await warnings()).toEqual(['week', 'day'])
    await live(24)
    expect(await warnings()).toEqual(['week', 'day', 'empty'])
    expect(stops).toEqual([])
    await live(GRACE_HOURS - 2)
    expect(stops).toEqual([])
    expect(sumOf(await entriesOf(sql, account))).toBeLessThan(0)
    await live(2)
    expect(stops[0]).toEqual({ accountId: account, nodeId: running })
    expect(await warnings()).toEqual(['week', 'day', 'empty'])
    const log =
      await sql`SELECT actor, detail FROM activity WHERE account_id = ${account} AND action = 'credit.warning' ORDER BY id LIMIT 1`
    expect(log[0]).toEqual({ actor: 'credit', detail: { level: 'week', runwaySeconds: expect.any(Number) } })
  })

  test('C33: stopping and starting does not repeat a warning; after new credit, crossing a threshold again warns again', async () => {
    await credit(2 * PRICE_SAT)
    const running = await newNode(sql, account)
    await metering.pass()
    for (const status of ['stopped', 'ready', 'stopped', 'ready']) {
      await setNode(sql, running, { status })
      await metering.pass()
    }
    expect(await warnings()).toEqual(['week'])
    await credit(1)
    await metering.pass()
    expect(await warnings()).toEqual(['week'])
    await credit(10 * PRICE_SAT)
    await metering.pass()
    await live(24 * 6)
    expect(await warnings()).toEqual(['week', 'week'])
  })

  test('C33: credit within the grace period keeps the nodes running, and the next grace period has its full length', async () => {
    await credit(PRICE_SAT)
    await newNode(sql, account)
    await live(24 + GRACE_HOURS - 4)
    expect(await warnings()).toEqual(['day', 'empty'])
    // The account owed the price of 44 hours, so three days of new credit (72 hours) last for 28 more hours.
    await credit(3 * PRICE_SAT)
    await live(28 + GRACE_HOURS - 2)
    expect(await warnings()).toEqual(['day', 'empty', 'day', 'empty'])
    expect(stops).toEqual([])
    await live(4)
    expect(stops.length).toBeGreaterThan(0)
  })

  test('C33: credit that does not raise the balance above zero does not extend the grace period', async () => {
    await credit(PRICE_SAT)
    await newNode(sql, account)
    for (let hour = 0; hour < 24 + GRACE_HOURS + 2; hour++) {
      await live(1)
      if (hour % 12 === 0 && hour > 30) await credit(1)
    }
    expect(stops.length).toBeGreaterThan(0)
  })

  test('C33: an account without running nodes gets no warning; a failed node that should run is stopped too', async () => {
    await live(3)
    expect(await warnings()).toEqual([])
    await credit(1)
    const fails = await newNode(sql, account)
    await live(1)
    await setNode(sql, fails, { status: 'failed' })
    await live(GRACE_HOURS + 2)
    expect(stops.map(({ nodeId }) => nodeId)).toContain(fails)
  })

  test('C33: a node that is starting or busy is left until it can be stopped; the treasury is never stopped', async () => {
    await credit(1)
    const [coming, busy] = [await newNode(sql, account, { status: 'provisioning' }), await newNode(sql, account)]
    await sql`UPDATE nodes SET operation = 'restart' WHERE id = ${busy}`
    await live(GRACE_HOURS + 3)
    expect(stops).toEqual([])
    await setNode(sql, coming, { status: 'ready' })
    await sql`UPDATE nodes SET operation = NULL WHERE id = ${busy}`
    await metering.pass()
    expect(stops.map(({ nodeId }) => nodeId).sort()).toEqual([coming, busy].sort())
    await sql`UPDATE accounts SET is_treasury = true WHERE id = ${account}`
    stops = []
    await metering.pass()
    expect(stops).toEqual([])
    await sql`UPDATE accounts SET is_treasury = false WHERE id = ${account}`
  })

  test('C33: of many processes that see the same threshold crossed, one warns', async () => {
    await credit(PRICE_SAT)
    await newNode(sql, account)
    await Promise.all(Array.from({ length: 8 }, () => metering.pass()))
    expect(await warnings()).toEqual(['day'])
    await clock.move(2 * DAY)
    await Promise.all(Array.from({ length: 8 }, () => metering.pass()))
    expect(await warnings()).toEqual(['day', 'empty'])
    expect(await used()).toBe(costOf(PRICE_MSAT, minutes(NOW, NOW + 2 * 1440)))
  })

  test('C33: after a long downtime, the grace period begins with the warning', async () => {
    await credit(PRICE_SAT)
    await newNode(sql, account)
    await clock.move(20 * DAY)
    await metering.pass()
    expect([await warnings(), stops]).toEqual([['empty'], []])
    await live(GRACE_HOURS - 1)
    expect(stops).toEqual([])
    await live(1)
    expect(stops).toHaveLength(1)
  })
})
