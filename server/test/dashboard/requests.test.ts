import { beforeAll, expect, test } from 'vitest'
import { Allowance } from '../../src/accounts/requests/allowance.ts'
import { RequestLog } from '../../src/accounts/requests/request-log.ts'
import { createLogger } from '../../src/platform/log.ts'
import { requestLogProbe } from '../../src/platform/probes.ts'
import { recordRequests } from '../../src/store/api-requests.ts'
import { CHORES } from '../../src/store/housekeeping.ts'
import { SlowReads } from '../../src/store/slow-reads.ts'
import { signUp, type Visitor } from '../support/dashboard.ts'
import { eventually, type Key, type Server, startServer } from '../support/server.ts'

let server: Server
let ann: Visitor
let key: Key

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  ann = await signUp(server)
  key = await server.newKey(['nodes:write'], ann.accountId)
})

type Logged = { id: number; requestId: string; route: string; status: number; errorCode: string | null; keyId: string }
const list = async (query = '', as = ann): Promise<{ requests: Logged[]; nextCursor: string | null }> =>
  as.want(200, 'GET', `/requests${query}`)
const call = (method: string, path: string, id: string, token = key.key) =>
  server.send(method, path, { token, headers: { 'x-request-id': id, 'x-forwarded-for': '10.3.0.1' } })
const untilLogged = (requestId: string): Promise<Logged> =>
  eventually(async () => (await list(`?requestId=${requestId}`)).requests[0], `${requestId} to be logged`)

test('C85: a request is in the log with its pattern, status, error and id, and without its path, query or key', async () => {
  await call('GET', '/v1/nodes/node_00000000000000000000', 'missing-node')
  await call('GET', '/v1/events?types=secret', 'no-scope')
  await call('GET', '/v1/api-key', 'fine')
  expect(await untilLogged('fine')).toEqual({
    id: expect.any(Number),
    at: expect.any(Number),
    keyId: key.id,
    keyName: 'test',
    method: 'GET',
    route: '/v1/api-key',
    status: 200,
    errorCode: null,
    errorMeaning: null,
    durationMs: expect.any(Number),
    requestId: 'fine',
  })
  expect(await untilLogged('missing-node')).toMatchObject({
    route: '/v1/nodes/{nodeId}',
    status: 404,
    errorCode: 'node_not_found',
    errorMeaning: expect.stringContaining('no node'),
  })
  expect(await untilLogged('no-scope')).toMatchObject({ route: '/v1/events', status: 401, errorCode: 'unauthorized' })
  const rows = JSON.stringify(await server.sql()`SELECT * FROM api_requests WHERE account_id = ${ann.accountId}`)
  for (const hidden of ['node_00000000000000000000', 'types=', key.key.slice(8)]) expect(rows).not.toContain(hidden)
})

test('C85: filters, pages and other accounts', async () => {
  for (let index = 0; index < 55; index++) await call('GET', '/v1/api-key', `page-${index}`)
  await untilLogged('page-54')
  const first = await list(`?keyId=${key.id}`)
  expect(first.requests).toHaveLength(50)
  expect(first.requests[0]?.requestId).toBe('page-54')
  const second = await list(`?keyId=${key.id}&cursor=${first.nextCursor}`)
  expect(second.nextCursor).toBe(null)
  const ids = [...first.requests, ...second.requests].map(({ id }) => id)
  expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => b - a))
  expect((await list('?statusClass=4')).requests.map(({ requestId }) => requestId)).toEqual(['no-scope', 'missing-node'])
  expect((await list('?statusClass=5')).requests).toEqual([])
  expect((await list('?route=/v1/nodes/{nodeId}')).requests.map(({ requestId }) => requestId)).toEqual(['missing-node'])
  expect((await list('?keyId=nonsense%00')).requests).toEqual([])
  for (const query of ['?cursor=x', '?statusClass=9', '?statusClass=3', '?requestId=%20', '?route=', '?unknown=1'])
    expect((await ann.send('GET', `/requests${query}`)).status, query).toBe(400)
  const bob = await signUp(server)
  expect((await list(`?keyId=${key.id}`, bob)).requests).toEqual([])
  expect((await list('?requestId=fine', bob)).requests).toEqual([])
})

test('C85: a search that takes too long is ended, and does not keep its connection', async () => {
  await server.sql().begin(async (tx) => {
    await tx`LOCK TABLE api_requests`
    const answer = await ann.send('GET', '/requests?statusClass=5')
    expect([answer.status, answer.json().error.message]).toEqual([
      503,
      'The query took too long. Choose another filter, or fewer filters.',
    ])
  })
  expect((await list('?statusClass=5')).requests).toEqual([])
})

test('C85: searches are limited by address', async () => {
  const headers = { 'x-forwarded-for': '10.3.0.9' }
  const statuses: number[] = []
  for (let index = 0; index < 181; index++) statuses.push((await ann.send('GET', '/key-usage', { headers })).status)
  expect([statuses.filter((status) => status === 200).length, statuses.at(-1)]).toEqual([180, 429])
})

test('C85: usage is counted per key and UTC day, errors apart, and stays when the log is removed after 7 days', async () => {
  const usage = async () => (await ann.want(200, 'GET', '/key-usage')).days.filter((day: Logged) => day.keyId === key.id)
  const [counted] = await usage()
  expect(counted).toMatchObject({ keyId: key.id, requests: 58, errors: 2 })
  const sql = server.sql()
  const counts = async () => Number((await sql`SELECT count(*) FROM api_requests WHERE account_id = ${ann.accountId}`)[0]?.count)
  const chore = CHORES['API requests']
  await chore?.(sql, { isStopping: () => false, eventRetentionDays: 1 })
  expect(await counts()).toBe(58)
  await sql`UPDATE api_requests SET at = now() - interval '7 days 1 minute' WHERE account_id = ${ann.accountId} AND status < 400`
  await chore?.(sql, { isStopping: () => false, eventRetentionDays: 1 })
  expect(await counts()).toBe(2)
  expect((await usage())[0].requests).toBe(58)
})

test('C85: one newer row among the oldest, or a clock that is ahead, does not stop the removal of old ones', async () => {
  const sql = server.sql()
  const row = { accountId: 'acct_old', keyId: 'key_old', method: 'GET', route: '/x', status: 200, errorCode: null, durationMs: 1 }
  await recordRequests(sql, [{ ...row, atMs: Date.now() + 86_400_000, requestId: 'ahead' }], [])
  const [{ isAhead = true } = {}] = await sql`SELECT at > now() AS "isAhead" FROM api_requests WHERE request_id = 'ahead'`
  expect(isAhead).toBe(false)
  await sql`
    INSERT INTO api_requests (account_id, key_id, at, method, route, status, duration_ms, request_id)
    SELECT 'acct_old', 'key_old', now() - interval '8 days', 'GET', '/x', 200, 1, 'old' FROM generate_series(1, 1500)`
  await CHORES['API requests']?.(sql, { isStopping: () => false, eventRetentionDays: 1 })
  expect(await sql`SELECT request_id FROM api_requests WHERE account_id = 'acct_old'`).toEqual([{ request_id: 'ahead' }])
})

test('C85: counts that are older than the table, as after a restore, move the first day back', async () => {
  await server.sql()`INSERT INTO api_key_usage VALUES (${key.id}, (now() AT TIME ZONE 'UTC')::date - 9, 4, 0)`
  const { since, today } = await ann.want(200, 'GET', '/key-usage')
  expect(Date.parse(today) - Date.parse(since)).toBe(9 * 86_400_000)
})

test('C85: a flood is counted in full and logged in part; errors have a separate allowance; what is left out is measured', async () => {
  let dropped = 0
  const endWatch = requestLogProbe.watch((report) => {
    dropped += report.dropped
  })
  const sql = server.sql()
  const log = new RequestLog({ sql, slowReads: new SlowReads(sql), log: await createLogger('silent') }, 1_000_000)
  const entry = { accountId: ann.accountId, keyId: 'key_flood', method: 'GET', route: '/x', durationMs: 1, requestId: 'r' }
  for (let index = 0; index < 3_000; index++) log.record({ ...entry, status: 200, errorCode: null })
  log.record({ ...entry, status: 500, errorCode: 'internal_error' })
  await log.close()
  endWatch()
  const [{ rows = 0, errors = 0 } = {}] = await sql<{ rows: number; errors: number }[]>`
    SELECT count(*)::int AS rows, count(*) FILTER (WHERE status = 500)::int AS errors FROM api_requests WHERE key_id = 'key_flood'`
  expect([rows + dropped, errors]).toEqual([3_001, 1])
  expect(rows).toBeGreaterThanOrEqual(601)
  expect(rows).toBeLessThan(1_500)
  const [use] =
    await sql`SELECT sum(requests)::int AS requests, sum(errors)::int AS errors FROM api_key_usage WHERE key_id = 'key_flood'`
  expect(use).toEqual({ requests: 3_001, errors: 1 })
})

test('C85: the allowance refills with time, for each account separately', () => {
  const allowance = new Allowance()
  const take = (count: number, account: string, atMs: number): number =>
    Array.from({ length: count }, () => allowance.take(account, false, atMs)).filter(Boolean).length
  expect([take(1_000, 'a', 0), take(1_000, 'b', 0)]).toEqual([600, 600])
  expect([take(100, 'a', 1_000), take(100, 'a', 1_000)]).toEqual([10, 0])
  // A clock that is set back must not stop the log.
  expect(take(100, 'a', -10_000)).toBe(0)
  expect(take(1_000, 'a', 120_000)).toBe(600)
})

test('C85: while the store fails, counts are kept and written later, and only log entries are lost', async () => {
  const sql = server.sql()
  let isDown = true
  const failing = Object.assign(
    ((...given: never) => (sql as (...args: never) => unknown)(...given)) as unknown as typeof sql,
    sql,
    {
      begin: (work: never) => (isDown ? Promise.reject(new Error('down')) : sql.begin(work)),
    },
  )
  const log = new RequestLog({ sql: failing, slowReads: new SlowReads(sql), log: await createLogger('silent') }, 10)
  const entry = { accountId: ann.accountId, keyId: 'key_down', method: 'GET', route: '/x', durationMs: 1, requestId: 'r' }
  log.record({ ...entry, status: 200, errorCode: null })
  await new Promise((resolve) => setTimeout(resolve, 100))
  log.record({ ...entry, status: 404, errorCode: 'not_found' })
  isDown = false
  await log.close()
  const [use] =
    await sql`SELECT sum(requests)::int AS requests, sum(errors)::int AS errors FROM api_key_usage WHERE key_id = 'key_down'`
  expect(use).toEqual({ requests: 2, errors: 1 })
})
