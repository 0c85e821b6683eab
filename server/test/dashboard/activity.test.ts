import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import { searchActivity } from '../../src/store/activity-search.ts'
import type { Database } from '../../src/store/db.ts'
import { signUp, type Visitor } from '../support/dashboard.ts'
import { type Server, startServer } from '../support/server.ts'

let server: Server
let sql: Database

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  sql = server.sql()
})

type Entry = {
  id: number
  at: number
  action: string
  target: string | null
  actor: string
  actorName: string | null
  targetName: string | null
  isTargetGone: boolean
  nodeId: string | null
  nodeName: string | null
  fold: { payments: number; entries: number; received: number; validated: number; from: number; to: number } | null
}
const pageOf = (visitor: Visitor, query = ''): Promise<{ activity: Entry[]; nextCursor: string | null }> =>
  visitor.want(200, 'GET', `/activity${query}`)
const actions = ({ activity }: { activity: Entry[] }): string[] => activity.map(({ action }) => action)

/** 2026-11-14 10:00 UTC. */
const TEN = 1_794_650_400

/** Only a row in the database: the node has no process. */
async function newNode(accountId: string, name: string): Promise<string> {
  const id = newId('node')
  await sql`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history, status, desired_state)
    VALUES (${id}, ${accountId}, 'nowhere', '', ${name}, '2m', 'limited', '', '{}', 'stopped', 'stopped')`
  return id
}

/** Payments that were received and validated with the key, one every `everySeconds`. */
async function addPayments(accountId: string, nodeId: string, keyId: string, count: number, at: number, everySeconds: number) {
  const prefix = newId('pay').slice(0, 14)
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id,
      created_at, expires_at, settled_at, receipt)
    SELECT ${prefix} || lpad(n::text, 10, '0'), ${accountId}, ${nodeId}, 'mpp', 1, 'x', '', sha256((${prefix} || n)::bytea), '', now(), now(), now(), ''
    FROM generate_series(1, ${count}) n`
  await sql`
    WITH numbered AS (
      SELECT n, ${prefix} || lpad(n::text, 10, '0') AS id, to_timestamp(${at} + n * ${everySeconds}) AS at,
             nextval('activity_id_seq') AS one, nextval('activity_id_seq') AS two FROM generate_series(1, ${count}) n
    ), received AS (
      INSERT INTO activity (id, account_id, at, actor, action, target) OVERRIDING SYSTEM VALUE
      SELECT one, ${accountId}, at, ${nodeId}, 'payment.settled', id FROM numbered
    )
    INSERT INTO paid_payments (account_id, id, log_id, paid_at, actor) SELECT ${accountId}, id, two, at, ${keyId} FROM numbered`
}

describe('C47: the activity log as people read it', () => {
  test('C47: who revoked a key is found by its name or first characters, although the key is gone', async () => {
    const ann = await signUp(server)
    const kept = await ann.want(201, 'POST', '/keys', { json: { name: 'Kept', scopes: [] } })
    const gone = await ann.want(201, 'POST', '/keys', { json: { name: 'Shop server', scopes: [] } })
    await ann.want(204, 'DELETE', `/keys/${gone.id}`)
    const { keys, people, nodes } = await ann.want(200, 'GET', '/activity/subjects')
    expect(keys).toEqual([
      { id: gone.id, name: 'Shop server', isGone: true, prefix: gone.key.slice(0, 8) },
      { id: kept.id, name: 'Kept', isGone: false, prefix: kept.key.slice(0, 8) },
    ])
    expect([people, nodes]).toEqual([[{ id: ann.userId, name: ann.email, isGone: false }], []])
    const page = await pageOf(ann, `?folded=true&keyId=${gone.id}`)
    expect(page.activity).toMatchObject([
      { action: 'key.revoked', target: gone.id, targetName: 'Shop server', isTargetGone: true, actorName: ann.email },
      { action: 'key.created', targetName: 'Shop server' },
    ])
    expect(page.nextCursor).toBeNull()
  })

  test('filters by kind, person, operator and date are combined', async () => {
    const bob = await signUp(server)
    await bob.want(201, 'POST', '/keys', { json: { name: 'k', scopes: [] } })
    await server.operator('POST', `/accounts/${bob.accountId}/credit`, { json: { amountSat: 5, reason: 'x' } })
    expect(actions(await pageOf(bob, '?kind=keys'))).toEqual(['key.created'])
    expect(actions(await pageOf(bob, '?kind=credit'))).toEqual(['credit.added'])
    expect(actions(await pageOf(bob, '?actor=operator'))).toEqual(['credit.added'])
    expect(actions(await pageOf(bob, `?actor=${bob.userId}&kind=keys`))).toEqual(['key.created'])
    expect(actions(await pageOf(bob, '?actor=operator&kind=keys'))).toEqual([])
    expect(actions(await pageOf(bob, '?kind=people'))).toContain('account.created')
    const now = Math.floor(Date.now() / 1000)
    expect(actions(await pageOf(bob, `?to=${now - 3_600}`))).toEqual([])
    expect(actions(await pageOf(bob, `?from=${now - 3_600}`)).length).toBeGreaterThan(2)
    for (const query of ['?kind=x', '?from=yesterday', '?actor=%00', '?keyId=', '?folded=1', '?hourStartMinute=7'])
      expect([query, (await bob.refusal('GET', `/activity${query}`))[1]]).toEqual([query, 'bad_request'])
  })

  test('payments of one node within an hour are one entry, among the others, and can be read one by one', async () => {
    const cay = await signUp(server)
    const key = await cay.want(201, 'POST', '/keys', { json: { name: 'till', scopes: [] } })
    const [shop, bar] = [await newNode(cay.accountId, 'shop'), await newNode(cay.accountId, 'bar')]
    await addPayments(cay.accountId, shop, key.id, 6, TEN + 300, 60)
    await sql`INSERT INTO activity (account_id, at, actor, action) VALUES (${cay.accountId}, to_timestamp(${TEN + 900}), 'operator', 'test.between')`
    await addPayments(cay.accountId, bar, key.id, 1, TEN + 900, 60)
    await addPayments(cay.accountId, shop, key.id, 6, TEN + 1_800, 60)
    await addPayments(cay.accountId, shop, key.id, 2, TEN + 3_600, 60)
    const { activity, nextCursor } = await pageOf(cay, `?folded=true&from=${TEN}&to=${TEN + 7_200}`)
    expect(activity.map(({ action, nodeName, fold }) => [action, nodeName, fold?.payments])).toEqual([
      ['payments', 'shop', 2],
      ['payments', 'shop', 12],
      ['payments', 'bar', 1],
      ['test.between', null, undefined],
    ])
    expect(activity[1]).toMatchObject({
      target: null,
      actor: key.id,
      actorName: 'till',
      fold: { entries: 24, received: 12, validated: 12, from: TEN + 360, to: TEN + 2_160 },
    })
    expect(activity[2]?.target).toMatch(/^pay_/)
    expect(nextCursor).toBeNull()
    const { from, to } = activity[1]?.fold ?? { from: 0, to: 0 }
    const single = await pageOf(
      cay,
      `?kind=payments&nodeId=${shop}&from=${from}&to=${to + 1}&cursor=${(activity[1]?.id ?? 0) + 1}`,
    )
    expect(single.activity).toHaveLength(24)
    expect(new Set(single.activity.map(({ nodeId, fold }) => [nodeId, fold].join()))).toEqual(new Set([`${shop},`]))
    expect(actions(await pageOf(cay, `?folded=true&nodeId=${bar}`))).toEqual(['payments'])
    expect((await pageOf(cay, `?keyId=${key.id}&kind=payments`)).activity).toHaveLength(15)
    await sql`UPDATE nodes SET name = 'kiosk', deleted_at = now(), desired_state = 'deleted' WHERE id = ${bar}`
    expect((await pageOf(cay, `?folded=true&nodeId=${bar}`)).activity[0]?.nodeName).toBe('kiosk')
  })

  test('dashboard: payments are folded by the hours of the reader, so that none stands below the wrong day', async () => {
    const eli = await signUp(server)
    const key = await eli.want(201, 'POST', '/keys', { json: { name: 'till', scopes: [] } })
    const shop = await newNode(eli.accountId, 'shop')
    // 18:30 UTC is midnight in India.
    const midnight = TEN + 8.5 * 3_600
    await addPayments(eli.accountId, shop, key.id, 4, midnight - 150, 60)
    const folds = async (query: string) =>
      (await pageOf(eli, `?folded=true&kind=payments${query}`)).activity.map(({ fold }) => [fold?.payments, fold?.from, fold?.to])
    expect(await folds('')).toEqual([[4, midnight - 90, midnight + 90]])
    expect(await folds('&hourStartMinute=30')).toEqual([
      [2, midnight + 30, midnight + 90],
      [2, midnight - 90, midnight - 30],
    ])
  })

  test('pages of folded entries repeat nothing and skip nothing', async () => {
    const dan = await signUp(server)
    const shop = await newNode(dan.accountId, 'shop')
    await addPayments(dan.accountId, shop, 'key_x', 800, TEN, 600)
    const seen: Entry[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof pageOf>> = await pageOf(
        dan,
        `?folded=true&kind=payments${cursor && `&cursor=${cursor}`}`,
      )
      expect(page.activity.length).toBeLessThanOrEqual(50)
      seen.push(...page.activity)
      cursor = page.nextCursor
    }
    expect(seen.reduce((count, { fold }) => count + (fold?.entries ?? 1), 0)).toBe(1600)
    expect(seen).toHaveLength(134)
  })

  test('C9: nothing of another account is found, nor its names', async () => {
    const [eve, fay] = [await signUp(server), await signUp(server)]
    const key = await fay.want(201, 'POST', '/keys', { json: { name: 'secret name', scopes: [] } })
    const node = await newNode(fay.accountId, 'hidden name')
    await addPayments(fay.accountId, node, key.id, 2, TEN, 60)
    await sql`INSERT INTO activity (account_id, actor, action, target) VALUES (${eve.accountId}, ${node}, 'test.of_another', ${key.id})`
    const found = await eve.send('GET', '/activity?folded=true')
    expect(found.text).toContain('test.of_another')
    expect(found.text).not.toMatch(/secret name|hidden name/)
    for (const query of [`?nodeId=${node}&kind=payments`, `?keyId=${key.id}&kind=keys`, `?actor=${fay.userId}`])
      expect(actions(await pageOf(eve, query))).toEqual([])
  })
})

test('entries that are not about payments are found by a separate index, however many payments there are', async () => {
  const gus = await signUp(server)
  await sql`
    INSERT INTO activity (account_id, actor, action, target)
    SELECT ${gus.accountId}, 'node_x', 'payment.settled', 'pay_' || n FROM generate_series(1, 20000) n`
  await sql`ANALYZE activity`
  // Puts EXPLAIN in front of the service's own statement, because a copy of it in the test could become out of date.
  const explaining = new Proxy(sql, {
    apply: (target, that, [strings, ...values]) => {
      const isWhole = /^\s*SELECT found\.id/.test(String(strings[0]))
      const asked = Object.assign([`EXPLAIN (ANALYZE, FORMAT TEXT) ${strings[0]}`, ...strings.slice(1)], { raw: strings })
      return Reflect.apply(target as never, that, [isWhole ? asked : strings, ...values])
    },
  })
  const plan = (await searchActivity(explaining, gus.accountId, { kind: 'keys' }, undefined, 51)) as unknown as Record<
    string,
    string
  >[]
  const text = plan.map((row) => Object.values(row)[0]).join('\n')
  expect(text).toContain('activity_without_payments')
  expect(text).not.toMatch(/Rows Removed by Filter: \d{3}/)
})
