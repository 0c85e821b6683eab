import { beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { Owner } from '../support/nodes.ts'
import { type Answer, eventually, freePort, PROCESS, type Server, send, startServer } from '../support/server.ts'

const TOKEN = 'token-of-the-metrics'

let server: Server
let owner: Owner
let metricsPort: number

beforeAll(async () => {
  metricsPort = await freePort()
  server = await startServer({
    command: PROCESS,
    env: { METRICS_PORT: String(metricsPort), METRICS_TOKEN: TOKEN, TRUST_PROXY: '1' },
  })
  owner = new Owner(server, await server.newKey(['nodes:write', 'gateway:write']))
})

const scrape = (port = metricsPort, token = TOKEN): Promise<Answer> =>
  send(port, 'GET', '/metrics', token === '' ? {} : { token })

type Sample = { name: string; labels: Record<string, string>; value: number }

function samplesIn(text: string): Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text = '']) => [label, text])
      return { name, labels: Object.fromEntries(pairs), value: Number(value) }
    })
}

/** The sum over all series that have these labels; undefined if there is none. */
async function valueFor(name: string, labels: Record<string, string> = {}): Promise<number | undefined> {
  const found = samplesIn((await scrape()).text).filter(
    (one) => one.name === `boltyard_${name}` && Object.entries(labels).every(([label, value]) => one.labels[label] === value),
  )
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
}

describe('the listener', () => {
  test('there is none unless METRICS_PORT is set', () => {
    expect(readConfig({ METRICS_HOST: '0.0.0.0', METRICS_TOKEN: TOKEN }).metrics).toBeUndefined()
    expect(readConfig({ METRICS_PORT: '9464' }).metrics).toEqual({ host: '127.0.0.1', port: 9464, token: undefined })
  })

  test('beyond loopback without a token it is served with a warning', () => {
    const warned = (env: Record<string, string>): boolean =>
      readConfig({ METRICS_PORT: '9464', ...env }).warnings.some((line) => line.includes('METRICS_TOKEN'))
    expect(warned({ METRICS_HOST: '0.0.0.0' })).toBe(true)
    expect(warned({ METRICS_HOST: '0.0.0.0', METRICS_TOKEN: TOKEN })).toBe(false)
    expect(warned({})).toBe(false)
  })

  test('if a token is set, nothing can be read without it', async () => {
    const statuses = await Promise.all([scrape(metricsPort, ''), scrape(metricsPort, 'x'), scrape(metricsPort, `${TOKEN}x`)])
    expect(statuses.map(({ status, text }) => [status, text])).toEqual([401, 401, 401].map((status) => [status, '']))
    expect((await scrape()).status).toBe(200)
  })

  test('it serves only GET /metrics, and the service’s own port has no metrics', async () => {
    const asked = (method: string, path: string) => send(metricsPort, method, path, { token: TOKEN })
    expect((await asked('GET', '/')).status).toBe(404)
    expect((await asked('GET', '/anything')).status).toBe(404)
    expect((await asked('POST', '/metrics')).status).toBe(405)
    expect((await server.send('GET', '/metrics', { token: TOKEN })).status).toBe(404)
  })

  test('C51: on loopback without a token, another host name is refused', async () => {
    const port = await freePort()
    const open = await startServer({ command: PROCESS, env: { METRICS_PORT: String(port) } })
    const asked = (host: string) => send(port, 'GET', '/metrics', { headers: { host } })
    expect((await asked('attacker.example')).status).toBe(421)
    expect((await asked(`localhost:${port}`)).status).toBe(200)
    await open.stop()
  })
})

describe('what is measured', () => {
  const requests = (labels: Record<string, string>) => valueFor('http_request_duration_seconds_count', labels)

  test('requests are counted by route, method and status class', async () => {
    const route = '/v1/nodes/:nodeId'
    expect(await requests({ route })).toBeUndefined()
    await owner.send('GET', '/nodes/node_00000000000000000000')
    await owner.send('GET', '/nodes/node_00000000000000000001')
    await eventually(async () => (await requests({ route, method: 'GET', status: '4xx' })) === 2, 'both requests to be counted')
    expect(await requests({ route, status: '2xx' })).toBeUndefined()
  })

  test('unknown paths and methods share one series', async () => {
    const before = (await requests({ route: '(none)' })) ?? 0
    for (const path of ['/first-unknown', '/second-unknown']) await server.send('GET', path)
    await server.send('PROPFIND', '/third-unknown')
    await eventually(async () => (await requests({ route: '(none)', status: '4xx' })) === before + 3, 'all to be counted')
    expect((await requests({ route: '(none)', method: 'other' })) ?? 0).toBe(1)
  })

  test('nodes, calls to them, reconciler steps, the ledger and connections', async () => {
    const { node } = await owner.createReady()
    await server.send('GET', `/n/${node.id}/getinfo`)
    await eventually(
      async () => (await valueFor('nodes', { status: 'ready', phase: 'running' })) === 2,
      'this and the treasury’s',
    )
    expect(await requests({ route: '(node)', status: '4xx' })).toBe(1)
    expect(await valueFor('node_call_duration_seconds_count', { call: 'getinfo', result: '2xx' })).toBeGreaterThan(0)
    expect(await valueFor('reconciler_step_duration_seconds_count', { result: 'recorded' })).toBeGreaterThan(1)
    expect(await valueFor('reconciler_step_duration_seconds_count', { result: 'lease_lost' })).toBe(0)
    // On a busy machine, the reconciler may be late, or a query may not finish within the time limit of a scrape.
    await eventually(async () => ((await valueFor('reconcile_lag_seconds')) ?? 99) < 30, 'all nodes to be looked at in time')
    await eventually(async () => (await valueFor('store_up')) === 1, 'the store to be reported')
    expect(await valueFor('store_connections')).toBeGreaterThan(0)
    expect(await valueFor('store_connections_max')).toBe(10)
    const [row] = await server.sql()<{ sat: number }[]>`SELECT (sum(amount_msat) / 1000)::float8 AS sat FROM credit_entries`
    expect(row?.sat).toBeGreaterThan(0)
    await eventually(async () => (await valueFor('ledger_sat')) === row?.sat, 'the ledger to be reported')
  })

  test('C57: deliveries that wait are counted, with the age of the oldest', async () => {
    await eventually(async () => (await valueFor('webhook_deliveries_waiting')) === 0, 'no deliveries')
    expect(await valueFor('webhook_delivery_age_seconds')).toBe(0)
    const sql = server.sql()
    await sql`
      INSERT INTO webhooks (id, account_id, url, key_id, secret, enabled)
      VALUES ('on', ${owner.accountId}, '', '', '', true), ('off', ${owner.accountId}, '', '', '', false)`
    await sql`
      INSERT INTO webhook_deliveries (webhook_id, seq, created_at, next_at, status)
      VALUES ('on', 101, now() - interval '1 hour', now() + interval '1 day', 'pending'), ('on', 102, now(), now() + interval '1 day', 'pending'),
        ('on', 103, now() - interval '1 day', NULL, 'delivered'), ('off', 104, now() - interval '1 day', now(), 'pending')`
    await eventually(async () => (await valueFor('webhook_deliveries_waiting')) === 2, 'two deliveries')
    const age = (await valueFor('webhook_delivery_age_seconds')) ?? 0
    expect(age).toBeGreaterThanOrEqual(3_600)
    expect(age).toBeLessThan(7_200)
    await sql`DELETE FROM webhook_deliveries`
    await sql`DELETE FROM webhooks`
    await sql.end()
  })

  test('Reliability 21: no label holds an id, a path, a secret or anything else that a client chose', async () => {
    const { node } = await owner.createReady()
    const payment = await owner.send('POST', '/gateway/payments', {
      json: { nodeId: node.id, amountSat: 1, description: 'a-description', protocol: 'l402' },
    })
    expect(payment.status).toBe(201)
    await owner.send('POST', `/gateway/payments/${payment.json().id}/validate`, { json: { credential: 'a-credential' } })
    await server.send('GET', `/n/${node.id}/payments/incoming/${'ab'.repeat(32)}`)
    const { text } = await scrape()
    expect(text).toContain('/v1/gateway/payments/:id/validate')
    const secrets = [owner.key.key, server.operatorToken, server.masterKey, TOKEN]
    for (const value of [...secrets, 'a-credential', 'a-description', 'first-unknown']) expect(text).not.toContain(value)
    expect(text).not.toMatch(/\b(node|acct|pay|key|req)_[0-9a-z]{10}/)
    expect(text).not.toMatch(/[0-9a-f]{32}/)
  })
})

test('while PostgreSQL is down, the process still reports its metrics, without those from the store', async () => {
  const port = await freePort()
  const lonely = await startServer({ command: PROCESS, store: 'embedded', env: { METRICS_PORT: String(port) } })
  const textOf = async (): Promise<string> => (await scrape(port, '')).text
  const isReported = async (pattern: RegExp): Promise<boolean> => pattern.test(await textOf())
  await eventually(() => isReported(/^boltyard_store_up 1$/m), 'the store to be reported up')
  await eventually(() => isReported(/^boltyard_nodes\{/m), 'the nodes to be reported')
  const { giveBack } = await lonely.takeStoreAway()
  const down = await eventually(async () => {
    const text = await textOf()
    return /^boltyard_store_up 0$/m.test(text) && text
  }, 'the store to be reported down')
  expect(down).not.toMatch(/^boltyard_(nodes|ledger_sat|reconcile_lag_seconds)\b/m)
  expect(down).toMatch(/^process_resident_memory_bytes \d/m)
  giveBack()
  await eventually(() => isReported(/^boltyard_store_up 1$/m), 'the store to be back')
})
