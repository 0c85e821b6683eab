import { beforeAll, describe, expect, test } from 'vitest'
import { Credit } from '../../src/accounts/credit/credit.ts'
import { usageOf } from '../../src/accounts/credit/ledger.ts'
import { readConfig } from '../../src/config.ts'
import type { LedgerFilter } from '../../src/store/credit/ledger.ts'
import { closeHours, postUsage } from '../../src/store/credit/usage.ts'
import { addUpUsageDay } from '../../src/store/credit/usage-sums.ts'
import type { Database } from '../../src/store/db.ts'
import { SlowReads } from '../../src/store/slow-reads.ts'
import {
  type Clock,
  forgetNodes,
  freshDatabase,
  NOON,
  newAccount,
  newNode,
  PRICE_MSAT,
  PRICE_SAT,
  setNode,
} from '../support/credit.ts'

let sql: Database
let clock: Clock
let credit: Credit

beforeAll(async () => {
  ;({ sql, clock } = await freshDatabase())
  credit = new Credit({
    sql,
    slowReads: new SlowReads(sql),
    config: { ...readConfig({}), nodePriceSatPerDay: PRICE_SAT, creditGraceHours: 36 },
    masterKeys: [],
  })
})

const sum = (amounts: number[]): number => amounts.reduce((total, amount) => total + amount, 0)
const csvOf = async (id: string, filter: LedgerFilter = {}): Promise<string[]> => {
  let text = ''
  for await (const part of credit.csv(id, filter)) text += part
  return text.split('\r\n')
}

/** Two nodes that ran for three hours. One of them ran for another 20 minutes, which are not posted. */
async function usedAccount(): Promise<{ id: string; nodes: [string, string] }> {
  await forgetNodes(sql)
  await clock.set(NOON)
  const id = await newAccount(sql, 10 * PRICE_MSAT)
  const nodes: [string, string] = [await newNode(sql, id), await newNode(sql, id)]
  for (let hour = 0; hour < 3; hour++) {
    await clock.move(3_600)
    await closeHours(sql)
    await postUsage(sql, PRICE_MSAT, 100)
  }
  await setNode(sql, nodes[1], { status: 'stopped' })
  await postUsage(sql, PRICE_MSAT, 100)
  await clock.move(20 * 60)
  return { id, nodes }
}

describe('C31: the ledger adds up', () => {
  test('C31: the entries and what is not posted yet are the balance, and every entry has the balance after it', async () => {
    const { id, nodes } = await usedAccount()
    const { summary, entries, unposted, matching } = await credit.ledger(id, undefined, 100)
    expect(entries).toHaveLength(8)
    expect(sum(entries.map(({ amountMsat }) => amountMsat)) - summary.unpostedMsat).toBe(summary.balanceMsat)
    expect(unposted).toEqual([
      {
        nodeId: nodes[0],
        nodeName: 'x',
        since: expect.any(Number),
        minutes: 20,
        amountMsat: summary.unpostedMsat,
        isRunning: true,
      },
    ])
    expect(summary.unpostedMsat).toBeGreaterThan(0)
    expect([matching, summary.graceHours]).toEqual([null, 36])
    entries.forEach(({ balanceAfterMsat }, place) => {
      expect(balanceAfterMsat).toBe(sum(entries.slice(place).map(({ amountMsat }) => amountMsat)))
    })
  })

  test('a filtered entry has the balance of the whole ledger after it, and the sum is of all that match', async () => {
    const { id } = await usedAccount()
    await credit.add(id, 7, 'Goodwill', 'operator')
    const { entries: all } = await credit.ledger(id, undefined, 100)
    const usage = all.filter(({ kind }) => kind === 'usage')
    const found = await credit.ledger(id, undefined, 3, { kind: 'usage' })
    expect(found.entries).toEqual(usage.slice(0, 3))
    expect(found.matching).toEqual({ count: usage.length, amountMsat: sum(usage.map(({ amountMsat }) => amountMsat)) })
    const next = await credit.ledger(id, found.entries.at(-1)?.id, 100, { kind: 'usage' })
    expect(next.entries).toEqual(usage.slice(3))
    // Only the first page has the sum, because it would be as slow to calculate for every further page.
    expect(next.matching).toBeNull()
    const early = await credit.ledger(id, undefined, 100, { from: NOON, to: NOON + 3_601 })
    expect(early.entries).toEqual(all.filter(({ createdAt }) => createdAt >= NOON && createdAt < NOON + 3_601))
    expect(early.entries).toHaveLength(3)
  })

  test('what nodes cost in a period is what the ledger charged and what is not posted yet; deleted nodes keep their name', async () => {
    const { id, nodes } = await usedAccount()
    await setNode(sql, nodes[1], { isDeleted: true })
    const { summary, entries } = await credit.ledger(id, undefined, 100)
    const chargedFor = (node: string) => -sum(entries.filter(({ nodeId }) => nodeId === node).map(({ amountMsat }) => amountMsat))
    const all = await credit.usage(id, NOON)
    expect(all.nodes).toEqual([
      {
        nodeId: nodes[0],
        nodeName: 'x',
        isDeleted: false,
        amountMsat: chargedFor(nodes[0]) + summary.unpostedMsat,
        minutes: 200,
      },
      { nodeId: nodes[1], nodeName: 'x', isDeleted: true, amountMsat: chargedFor(nodes[1]), minutes: 181 },
    ])
    expect(sum(all.quarterHours.map(({ amountMsat }) => amountMsat))).toBe(sum(all.nodes.map(({ amountMsat }) => amountMsat)))
    // Posted usage counts at the time of its ledger entry. This period has the third hour of each node, the minute in which one
    // node stopped, and the 20 minutes of the other that are not posted.
    const lastHour = await credit.usage(id, NOON + 2 * 3_600 + 900)
    expect(lastHour.nodes.map(({ minutes }) => minutes)).toEqual([80, 61])
    expect(await credit.usage(await newAccount(sql), NOON)).toEqual({ nodes: [], quarterHours: [] })
    const exported = all.nodes.map(({ nodeId, isDeleted, minutes, amountMsat }) =>
      [nodeId, 'x', isDeleted ? 'yes' : 'no', minutes, amountMsat].join(','),
    )
    expect(await credit.usageCsv(id, NOON)).toBe(
      ['node_id,node_name,deleted,charged_minutes,amount_msat', ...exported, ''].join('\r\n'),
    )
  })
})

describe('what nodes cost, with days that are added up', () => {
  const DAY = 86_400
  /** Inserts ten days of usage of two nodes, in intervals of one hour, and sets the clock to the end of them. */
  async function longUse(): Promise<{ id: string; end: number; addUp: () => Promise<number> }> {
    await forgetNodes(sql)
    await sql`TRUNCATE usage_days, usage_quarter_hours, usage_days_added_up`
    const id = await newAccount(sql, 1)
    const end = NOON + 60 * DAY
    await sql`
      WITH used AS (
        SELECT ${id} || '_' || node AS node, to_timestamp(${NOON - (NOON % 60) + 50 * DAY}) + hour * interval '1 hour' AS at
        FROM generate_series(0, 10 * 24 - 2) hour, generate_series(1, 2) node
      ), intervals AS (
        INSERT INTO usage_intervals (node_id, account_id, started_at, ended_at, posted_at)
        SELECT node, ${id}, at, at + interval '1 hour', at + interval '1 hour' FROM used
      )
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason, reference, created_at)
      SELECT ${id}, -right(node, 1)::int * 1000, 'usage', 'x', node || ' ' || unix_minute(at), at + interval '1 hour' FROM used`
    await clock.set(end)
    const addUp = async (): Promise<number> => {
      let days = 0
      while (await addUpUsageDay(sql)) days++
      return days
    }
    return { id, end, addUp }
  }

  test('the sums are the same before and after, from any time on, and nothing is added up twice', async () => {
    const { id, end, addUp } = await longUse()
    const all = async () => {
      const answers = []
      for (let from = end - 12 * DAY; from < end; from += 5 * 3_600) answers.push(await credit.usage(id, from))
      return answers
    }
    const before = await all()
    expect(before[0]?.nodes.map(({ amountMsat, minutes }) => [amountMsat, minutes])).toEqual([
      [2_000 * 239, 239 * 60],
      [1_000 * 239, 239 * 60],
    ])
    expect(await addUp()).toBeGreaterThan(5)
    expect(await all()).toEqual(before)
    expect(await addUp()).toBe(0)
    expect((await Promise.all([addUpUsageDay(sql), addUpUsageDay(sql)])).filter(Boolean)).toEqual([])
    await clock.move(DAY)
    expect((await Promise.all([addUpUsageDay(sql), addUpUsageDay(sql)])).filter(Boolean)).toEqual([true])
    expect(await all()).toEqual(before)
  })

  test('C83: the entries of days that are added up are not read again', async () => {
    const { id, end, addUp } = await longUse()
    await addUp()
    await sql`ANALYZE`
    const read = await sql.begin(async (store) => {
      await store`SET LOCAL enable_seqscan = off`
      // These statistics also count what the connection read before, if that was less than a second ago.
      const count = async (): Promise<number> =>
        (
          await store<{ read: number }[]>`
            SELECT sum(idx_tup_fetch)::int AS read FROM pg_stat_xact_user_tables WHERE relname IN ('credit_entries', 'usage_intervals')`
        )[0]?.read ?? Number.NaN
      const before = await count()
      await usageOf(store, id, end - 11 * DAY, PRICE_MSAT)
      return (await count()) - before
    })
    // Only the last day and part of another are not added up: about 80 entries, read twice, and as many intervals. To read
    // everything would be 1,400 rows.
    expect(read).toBeLessThan(400)
  })

  test('a time more than 92 days back is refused', async () => {
    await clock.set(NOON)
    const id = await newAccount(sql)
    await expect(credit.usage(id, NOON - 93 * DAY)).rejects.toMatchObject({ code: 'bad_request' })
  })
})

describe('the exported ledger', () => {
  test('has every entry, and its balances add up over more rows than are read at once', async () => {
    const id = await newAccount(sql, 5)
    await sql`
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason) SELECT ${id}, n, 'operator', 'n' FROM generate_series(1, 2000) n`
    const lines = await csvOf(id)
    expect(lines[0]).toBe('id,created_at,kind,amount_msat,balance_after_msat,reason,node_id,reference')
    const rows = lines.slice(1, -1).map((line) => line.split(','))
    expect(rows).toHaveLength(2001)
    let balance = 0
    for (const [, , , amount, after] of rows) {
      balance += Number(amount)
      expect(Number(after)).toBe(balance)
    }
    const { summary } = await credit.ledger(id, undefined, 1)
    expect(balance).toBe(summary.balanceMsat)
  })

  test('with a filter, it has only what matches, each with the balance of the whole ledger after it', async () => {
    const { id } = await usedAccount()
    await credit.add(id, 7, 'Goodwill', 'operator')
    await sql`
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason, created_at)
      SELECT ${id}, n, CASE WHEN n % 2 = 0 THEN 'operator' ELSE 'top_up' END, 'n', to_timestamp(${NOON - 3_600})
      FROM generate_series(1, 2500) n`
    const [header, ...all] = await csvOf(id)
    for (const kind of ['usage', 'operator', 'top_up'])
      expect(await csvOf(id, { kind })).toEqual([header, ...all.filter((line) => line === '' || line.split(',')[2] === kind)])
    const since = all.filter((line) => line === '' || Date.parse(line.split(',')[1] ?? '') >= NOON * 1000)
    expect(since.length).toBeGreaterThan(8)
    expect(await csvOf(id, { from: NOON })).toEqual([header, ...since])
    expect(await csvOf(id, { to: 1 })).toEqual([header, ''])
  })

  test('contains no formula, whatever an operator wrote, and quotes what would break a line', async () => {
    const id = await newAccount(sql)
    await credit.add(id, 5, '=HYPERLINK("http://evil.example")', 'operator')
    await credit.add(id, 5, 'one, "two"\r\nthree', 'operator')
    const text = (await csvOf(id)).join('\r\n')
    expect(text).toContain(`,"'=HYPERLINK(""http://evil.example"")",`)
    expect(text).toContain(',"one, ""two""\r\nthree",')
    expect(text).not.toContain(',=')
  })
})
