import { beforeAll, describe, expect, test } from 'vitest'
import { Credit, type CreditSummary, levelOf, runwaySeconds } from '../../src/accounts/credit/credit.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { closeHours, postUsage } from '../../src/store/credit/usage.ts'
import type { Database } from '../../src/store/db.ts'
import { SlowReads } from '../../src/store/slow-reads.ts'
import {
  type Clock,
  costOf,
  forgetNodes,
  freshDatabase,
  NOON,
  newAccount,
  newNode,
  PRICE_MSAT,
  PRICE_SAT,
  setNode,
} from '../support/credit.ts'
import { newOwner, type Owner } from '../support/nodes.ts'
import { eventually, PROCESS, type Server, startServer } from '../support/server.ts'

const DAY = 86_400
let server: Server

beforeAll(async () => {
  server = await startServer({ command: PROCESS, env: { TRUST_PROXY: '1', LOG_LEVEL: 'warn', CREDIT_GRACE_HOURS: '1' } })
})

const creditOf = async (id: string): Promise<number> => (await server.operator('GET', `/accounts/${id}`)).json().creditSat
const give = (id: string, amountSat: number) =>
  server.operator('POST', `/accounts/${id}/credit`, { json: { amountSat, reason: 'because' } })

describe('C31 C33: the operator adds and deducts credit', () => {
  test('C33: a deduction below zero is a 400 that states the balance, and nothing is written', async () => {
    const { id } = await server.newAccount({ creditSat: 100 })
    const refused = await give(id, -101)
    expect([refused.status, refused.json().error.code]).toEqual([400, 'bad_request'])
    expect(refused.json().error.message).toBe('The account’s balance is 100 sat, so 101 sat cannot be deducted.')
    expect(await creditOf(id)).toBe(100)
    const { activity } = (await server.operator('GET', `/accounts/${id}/activity`)).json()
    expect(activity.map(({ action }: { action: string }) => action)).toEqual(['account.created'])
    expect([(await give(id, -100)).status, await creditOf(id)]).toEqual([201, 0])
  })

  test('C33: of fifty concurrent deductions, only as many succeed as the balance covers', async () => {
    const { id } = await server.newAccount({ creditSat: 70 })
    const answers = await Promise.all(Array.from({ length: 50 }, () => give(id, -10)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(7)
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(43)
    expect(await creditOf(id)).toBe(0)
  })

  test('C33: a balance that metering took below zero can be raised, even by less than is owed, but not lowered', async () => {
    const { id } = await server.newAccount({ creditSat: 0 })
    await server.sql()`INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${id}, -50500, 'usage', 'x')`
    expect((await give(id, 10)).status).toBe(201)
    expect(await creditOf(id)).toBe(-41)
    const refused = await give(id, -1)
    expect([refused.status, refused.json().error.message]).toEqual([400, expect.stringContaining('balance is -41 sat')])
  })

  test('credit for an unknown account is refused', async () => {
    for (const id of ['acct_00000000000000000000', 'nonsense']) {
      const answer = await give(id, 5)
      expect([answer.status, answer.json().error.code]).toEqual([404, 'not_found'])
    }
  })
})

describe('C31 C33: what an account is shown', () => {
  let sql: Database
  let clock: Clock
  const config: Config = { ...readConfig({}), nodePriceSatPerDay: PRICE_SAT, creditGraceHours: 48 }
  let credit: Credit
  const summary = (id: string): Promise<CreditSummary> => credit.summary(id)

  beforeAll(async () => {
    ;({ sql, clock } = await freshDatabase())
    credit = new Credit({ sql, slowReads: new SlowReads(sql), config, masterKeys: [] })
  })

  test('the balance excludes unposted usage and is rounded down; the runway covers all charged nodes', async () => {
    await forgetNodes(sql)
    const id = await newAccount(sql, 10 * PRICE_MSAT)
    const idle = {
      balanceSat: 1_000,
      balanceMsat: 1_000_000,
      unpostedMsat: 0,
      nodesThatCost: 0,
      runwaySeconds: null,
      warning: 'none',
      stopsAt: null,
      graceHours: 48,
      canTopUp: false,
    }
    expect(await summary(id)).toEqual(idle)
    const nodes = [await newNode(sql, id), await newNode(sql, id)]
    expect(await summary(id)).toEqual({ ...idle, nodesThatCost: 2, runwaySeconds: 5 * DAY, warning: 'week' })
    await clock.move(60)
    const { unpostedMsat, balanceSat } = await summary(id)
    expect([unpostedMsat, balanceSat]).toEqual([2 * costOf(PRICE_MSAT, [Math.floor(NOON / 60)]), 999])
    for (const node of nodes) await setNode(sql, node, { status: 'stopped' })
    expect(await summary(id)).toMatchObject({ nodesThatCost: 0, runwaySeconds: null, warning: 'none', balanceSat: 999 })
  })

  test('the time when nodes will be stopped is shown as soon as credit runs out, and not before', async () => {
    await forgetNodes(sql)
    await clock.set(NOON)
    const id = await newAccount(sql, PRICE_MSAT)
    await newNode(sql, id)
    expect((await summary(id)).stopsAt).toBeNull()
    await clock.move(DAY + 60)
    expect(await summary(id)).toMatchObject({
      warning: 'empty',
      balanceSat: -1,
      runwaySeconds: 0,
      stopsAt: NOON + DAY + 60 + 2 * DAY,
    })
    await sql`INSERT INTO credit_warnings (account_id, level, empty_since) VALUES (${id}, 'empty', to_timestamp(${NOON + DAY}))`
    expect((await summary(id)).stopsAt).toBe(NOON + 3 * DAY)
    await credit.add(id, 5, 'x', 'x')
    expect((await summary(id)).stopsAt).toBeNull()
  })

  test('at price 0, nothing is charged and credit never runs out', async () => {
    const id = await newAccount(sql)
    await newNode(sql, id)
    expect(
      await new Credit({
        sql,
        slowReads: new SlowReads(sql),
        config: { ...config, nodePriceSatPerDay: 0 },
        masterKeys: [],
      }).summary(id),
    ).toMatchObject({
      nodesThatCost: 0,
      runwaySeconds: null,
      warning: 'none',
      stopsAt: null,
    })
  })

  test.each([
    { leftMsat: 0, costMsatPerDay: 0, seconds: null, level: 'none' },
    { leftMsat: -1, costMsatPerDay: 0, seconds: null, level: 'empty' },
    { leftMsat: 0, costMsatPerDay: 1, seconds: 0, level: 'empty' },
    { leftMsat: 1, costMsatPerDay: 1_000_000, seconds: 0, level: 'day' },
    { leftMsat: 100, costMsatPerDay: 100, seconds: DAY, level: 'day' },
    { leftMsat: 101, costMsatPerDay: 100, seconds: 87_264, level: 'week' },
    { leftMsat: 700, costMsatPerDay: 100, seconds: 7 * DAY, level: 'week' },
    { leftMsat: 701, costMsatPerDay: 100, seconds: 605_664, level: 'none' },
  ])('C33: $leftMsat msat at $costMsatPerDay a day: $level', ({ seconds, level, ...means }) => {
    expect([runwaySeconds(means), levelOf(means)]).toEqual([seconds, level])
  })

  test('C31: the ledger is read in pages, newest first, and every entry has a reason and a reference', async () => {
    const id = await newAccount(sql, 1_000)
    const other = await newAccount(sql, 1_000)
    for (let one = 1; one <= 4; one++) await credit.add(id, one, `number ${one}`, 'x')
    const entries = async (account: string, before: number | undefined, limit: number) =>
      (await credit.ledger(account, before, limit)).entries
    const all = await entries(id, undefined, 10)
    expect(all.map(({ amountMsat, kind, reason, reference }) => [amountMsat, kind, reason, reference])).toEqual([
      ...[4, 3, 2, 1].map((one) => [one * 1000, 'operator', `number ${one}`, null]),
      [1_000, 'signup', 'test', id],
    ])
    const first = await entries(id, undefined, 2)
    expect([...first, ...(await entries(id, first[1]?.id, 10))]).toEqual(all)
    expect(await entries(other, undefined, 10)).toHaveLength(1)
    expect(all.map(({ balanceAfterMsat }) => balanceAfterMsat)).toEqual([11_000, 7_000, 4_000, 2_000, 1_000])
  })

  test('dashboard: the ledger adds up: the newest entry’s balance minus unposted usage is the balance, even while usage is being posted', async () => {
    await forgetNodes(sql)
    await clock.set(NOON)
    const id = await newAccount(sql, 10_000_000)
    await newNode(sql, id)
    await clock.move(9 * 60)
    const isBooking = { now: true }
    const booking = (async () => {
      // Fewer entries than the page of 500 that is read below, so that the page is the whole ledger.
      for (let hour = 0; isBooking.now && hour < 400; hour++) {
        await clock.move(3_600)
        await closeHours(sql)
        await postUsage(sql, PRICE_MSAT, 100)
      }
    })()
    for (let look = 0; look < 40; look++) {
      const { summary: now, entries } = await credit.ledger(id, undefined, 500)
      expect((entries[0]?.balanceAfterMsat ?? 0) - now.unpostedMsat).toBe(now.balanceMsat)
      expect(entries.reduce((sum, { amountMsat }) => sum + amountMsat, 0)).toBe(entries[0]?.balanceAfterMsat)
      expect(Math.floor(now.balanceMsat / 1000)).toBe(now.balanceSat)
    }
    isBooking.now = false
    await booking
  })

  test('C31: the balance and a page of the ledger are read from an index, however long the ledger is', async () => {
    await sql`INSERT INTO accounts (id, name) SELECT 'many ' || n, 'x' FROM generate_series(1, 100) n`
    await sql`
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason)
      SELECT 'many ' || 1 + n % 100, -1, 'usage', 'x' FROM generate_series(1, 50000) n`
    await sql`VACUUM ANALYZE credit_entries`
    const plan = async (query: string): Promise<string> => JSON.stringify(await sql.unsafe(`EXPLAIN ${query}`))
    const page = `SELECT * FROM credit_entries WHERE account_id = 'many 7' AND id < 40000 ORDER BY id DESC LIMIT 20`
    expect(await plan(page)).toMatch(/Index Scan Backward using credit_of_account/)
    expect(await plan(page)).not.toMatch(/Sort/)
    expect(await plan(`SELECT sum(amount_msat) FROM credit_entries WHERE account_id = 'many 7'`)).toMatch(
      /Index Only Scan using credit_/,
    )
  })
})

describe('C33: out of credit, with real nodes', () => {
  const log = async ({ accountId }: Owner): Promise<{ actor: string; action: string; target: string | null; detail: any }[]> =>
    (await server.operator('GET', `/accounts/${accountId}/activity`)).json().activity
  const actions = async (owner: Owner): Promise<string[]> => (await log(owner)).map(({ action }) => action)

  test('C33: first a warning, then a grace period in which everything works, then an ordinary stop; nodes are never deleted or started automatically, and new credit lets them start again', async () => {
    const owner = await newOwner(server, { creditSat: 250 })
    const [first, second] = [await owner.createReady(), await owner.createReady()]
    const sql = server.sql()
    const spend = (msat: number) =>
      sql`INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${owner.accountId}, ${-msat}, 'usage', 'test')`
    await spend(260_000)
    await server.restart()
    await eventually(async () => (await actions(owner)).includes('credit.warning'), 'the warning')
    expect((await log(owner))[0]).toMatchObject({ actor: 'credit', detail: { level: 'empty', runwaySeconds: 0 } })
    expect((await owner.get(first.node.id)).status).toBe('ready')
    expect((await owner.act(first.node.id, 'restart')).status).toBe('ready')

    await sql`UPDATE credit_warnings SET empty_since = empty_since - interval '1 hour' WHERE account_id = ${owner.accountId}`
    await server.restart('SIGKILL')
    for (const { node } of [first, second]) await owner.until(node.id, 'stopped')
    const stops = (await log(owner)).filter(({ action }) => action === 'node.stop')
    expect(stops.map(({ actor, target }) => [actor, target]).sort()).toEqual(
      [first, second].map(({ node }) => ['credit', node.id]).sort(),
    )
    const warnings = (await actions(owner)).filter((action) => action === 'credit.warning')
    expect(warnings).toHaveLength(1)

    expect(await owner.refusal('POST', `/nodes/${first.node.id}/start`)).toEqual([402, 'insufficient_credit'])
    await give(owner.accountId, 200)
    await server.restart()
    for (const { node } of [first, second]) expect((await owner.get(node.id)).status).toBe('stopped')
    expect((await owner.act(first.node.id, 'start')).status).toBe('ready')
    expect(await owner.refusal('POST', `/nodes/${second.node.id}/start`)).toEqual([402, 'insufficient_credit'])
    for (const { node } of [first, second]) await owner.delete(node.id)
  })

  test('C33: credit that arrives between the decision to stop a node and the stop keeps the node running', async () => {
    const owner = await newOwner(server, { creditSat: 150 })
    const { node } = await owner.createReady()
    const sql = server.sql()
    // As if another process had recorded nine hours ago that the account ran out of credit. By now it has credit again.
    await sql`
      INSERT INTO credit_warnings (account_id, level, empty_since) VALUES (${owner.accountId}, 'empty', now() - interval '9 hours')`
    await server.restart()
    await eventually(
      async () => (await sql`SELECT 1 FROM credit_warnings WHERE account_id = ${owner.accountId} AND empty_since IS NULL`).length,
      'the account to be seen with its credit',
    )
    // The restart waits until this process has finished its work, which would include the stop.
    await server.restart()
    expect([(await owner.get(node.id)).status, await actions(owner)]).toEqual([
      'ready',
      expect.not.arrayContaining(['node.stop']),
    ])
    await owner.delete(node.id)
  })
})
