import { createHash, hkdfSync } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { buildApp } from '../../src/http/app.ts'
import type { AppDeps } from '../../src/http/deps.ts'
import { createLogger } from '../../src/platform/log.ts'
import { derivedKey, masterKeyOf, open } from '../../src/platform/secrets.ts'
import type { Database } from '../../src/store/db.ts'
import { registeredRoutes } from '../support/app.ts'
import { newRepeatKey, signUp, type Visitor } from '../support/dashboard.ts'
import { credentialOf, invoiceIn } from '../support/gateway.ts'
import { eventually, type Server, startServer } from '../support/server.ts'

let server: Server
let ann: Visitor
let bob: Visitor
let sql: Database
/** Every route of the dashboard that needs a person's session: all in the router except /me and those for signing in and out. */
let routes: { method: string; url: string }[]

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', MAX_KEYS_PER_ACCOUNT: '5' } })
  sql = server.sql()
  ;[ann, bob, routes] = await Promise.all([signUp(server), signUp(server), routesOfTheRouter()])
})

async function routesOfTheRouter(): Promise<{ method: string; url: string }[]> {
  return (await registeredRoutes()).filter(
    ({ url }) => url.startsWith('/dashboard/api/') && !/^\/dashboard\/api\/(auth|link|operator)\/|\/me$/.test(url),
  )
}

const NODE = 'node_00000000000000000000'
const PAYMENT = 'pay_00000000000000000000'
const KEY = 'key_00000000000000000000'
const HASH = 'ab'.repeat(32)
const WEBHOOK = 'hook_00000000000000000000'
/** Path parameters that identify a resource, and the values to put in their place. */
const named = (node: string, payment: string, key: string, hash: string, webhook: string) =>
  ({
    ':nodeId': node,
    ':webhookId': webhook,
    ':deliveryId': 'dlv_1',
    ':paymentHash': hash,
    'sandbox/nodes/:id': `sandbox/nodes/${node}`,
    'payments/:id': `payments/${payment}`,
    'keys/:id': `keys/${key}`,
  }) as const
const filled = (url: string, names: Record<string, string>): string =>
  Object.entries(names)
    .reduce((path, [name, value]) => path.replace(name, value), url)
    .replace('/dashboard/api', '')
/** Valid bodies, so that a missing resource is the only error. */
const BODIES: Record<string, unknown> = {
  'PATCH /nodes/:nodeId': { name: 'x' },
  'POST /nodes/:nodeId/invoices': { description: 'x' },
  'POST /nodes/:nodeId/pay': { invoice: 'lnbcrt1' },
  'POST /payments': { nodeId: NODE, amountSat: 1, description: 'x' },
  'POST /payments/:id/validate': { credential: 'Payment x' },
  'POST /payments/:id/redeem': { credential: 'Payment x' },
  'PATCH /keys/:id': { disabled: true },
  'POST /keys': { name: 'x', scopes: [] },
  'POST /sandbox/nodes/:id/fund': { amountSat: 1 },
  'POST /sandbox/pay': { invoice: 'x' },
  'POST /credit/top-ups': { amountSat: 1 },
  'POST /webhooks': { url: 'https://shop.example/hook' },
  'PATCH /webhooks/:webhookId': { enabled: true },
  'POST /webhooks/:webhookId/replay': { from: 0, to: 1 },
  'POST /security/email': { email: 'x' },
  'POST /security/two-factor/confirm': { code: 'x' },
  'POST /security/two-factor/off': { code: 'x' },
  'POST /security/recovery-codes': { code: 'x' },
  'PATCH /account': { name: 'x' },
  'POST /account/deletion': { name: 'x' },
}
/** What a query must have, so that the unknown parameter is the only error. */
const FROM = `from=${Math.floor(Date.now() / 1000)}&`
const QUERIES: Record<string, string> = {
  '/dashboard/api/received': 'days=1&',
  '/dashboard/api/credit/usage': FROM,
  '/dashboard/api/credit/usage.csv': FROM,
}

test('the tests below use the routes that the service registers', () => {
  expect(routes.length).toBeGreaterThan(40)
  expect(routes.map(({ method, url }) => `${method} ${url}`)).toEqual(
    expect.arrayContaining([
      'GET /dashboard/api/nodes/:nodeId/payments',
      'POST /dashboard/api/sandbox/nodes/:id/fund',
      'GET /dashboard/api/events',
    ]),
  )
})

test('without a session, every route is 401 in the usual shape before anything else is checked, and is not cached', async () => {
  const wrong: unknown[] = []
  for (const { method, url } of routes) {
    for (const cookie of ['', 'boltyard.session_token=forged.forged', ann.cookie.replace(/.(?=;|$)/, '~')]) {
      const path = filled(url, named(NODE, PAYMENT, KEY, HASH, WEBHOOK))
      const answer = await ann.send(method, path, { headers: { cookie } })
      const code = method === 'HEAD' ? 'unauthorized' : answer.json().error?.code
      const good =
        answer.status === 401 &&
        code === 'unauthorized' &&
        answer.headers['cache-control'] === 'no-store' &&
        answer.headers['x-request-id']
      if (!good) wrong.push([method, path, cookie, answer.status, answer.text, answer.headers])
    }
  }
  expect(wrong).toEqual([])
})

test('a page of another origin can change nothing, although its visitor is signed in', async () => {
  const wrong: unknown[] = []
  const foreign: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `${server.url}.evil.example` },
    // Our own host names, on ports that belong to other programs.
    { origin: 'http://127.0.0.1' },
    { origin: `http://localhost:${server.port + 1}` },
    { origin: server.url.replace('http:', 'https:') },
    { origin: '' },
  ]
  for (const { method, url } of routes.filter((route) => !['GET', 'HEAD'].includes(route.method))) {
    const path = filled(url, named(NODE, PAYMENT, KEY, HASH, WEBHOOK))
    for (const headers of foreign) {
      const { status } = await ann.send(method, path, { headers: { ...headers, 'idempotency-key': newRepeatKey() }, json: {} })
      if (status !== 401) wrong.push([method, path, headers, status])
    }
    const form = await ann.send(method, path, { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=b' })
    if (form.status !== 401) wrong.push([method, path, 'form', form.status])
  }
  expect(wrong).toEqual([])
  expect(await ann.want(200, 'GET', '/nodes')).toEqual({ nodes: [] })
})

describe('an account with data of every kind', () => {
  let node: Awaited<ReturnType<Visitor['createReady']>>
  let payment: { id: string; challenge: string; protocol: 'mpp' | 'l402' }
  let key: { id: string; key: string }
  let invoice: { paymentHash: string; invoice: string }
  let topUp: { paymentHash: string }
  let webhook: { id: string; secret: string }

  beforeAll(async () => {
    node = await ann.createReady({ accessMode: 'full' })
    payment = await ann.want(201, 'POST', '/payments', { json: { nodeId: node.node.id, amountSat: 21, description: 'tea' } })
    key = await ann.want(201, 'POST', '/keys', { json: { name: 'mine', scopes: [] } })
    invoice = await ann.want(201, 'POST', `/nodes/${node.node.id}/invoices`, { json: { description: 'x' } })
    webhook = await ann.want(201, 'POST', '/webhooks', { json: { url: 'https://shop.example/hook', types: ['credit.low'] } })
    // The treasury is created when the service starts.
    topUp = await eventually(() => ann.want(201, 'POST', '/credit/top-ups', { json: { amountSat: 50 } }), 'the treasury')
  })

  test('C9: resources of another account get the same answer as unknown ones, on every route', async () => {
    const wrong: unknown[] = []
    const naming = routes.filter(({ method, url }) => url.includes(':') && method !== 'HEAD')
    expect(naming.length).toBeGreaterThan(15)
    for (const { method, url } of naming) {
      const json = BODIES[`${method} ${url.replace('/dashboard/api', '')}`]
      const options = method === 'GET' ? {} : { json: json ?? {} }
      const hash = url.includes('top-ups') ? topUp.paymentHash : invoice.paymentHash
      const theirs = await bob.refusal(method, filled(url, named(node.node.id, payment.id, key.id, hash, webhook.id)), options)
      const nobodys = await bob.refusal(method, filled(url, named(NODE, PAYMENT, KEY, HASH, WEBHOOK)), options)
      const junk = await bob.refusal(method, filled(url, named('%00', '%00', '%00', '%00', '%00')), options)
      if (theirs[0] !== 404 || String(theirs) !== String(nobodys) || String(junk) !== String(nobodys))
        wrong.push([method, url, theirs, nobodys, junk])
    }
    expect(wrong).toEqual([])
    const charge = { nodeId: node.node.id, amountSat: 1, description: 'x' }
    expect(await bob.refusal('POST', '/payments', { json: charge })).toEqual(
      await bob.refusal('POST', '/payments', { json: { ...charge, nodeId: NODE } }),
    )
    expect(await bob.want(200, 'GET', `/payments?nodeId=${node.node.id}`)).toEqual({
      payments: [],
      nextCursor: null,
      previousCursor: null,
    })
    // Ann’s node and key are unchanged.
    expect(await ann.want(200, 'GET', `/nodes/${node.node.id}`)).toMatchObject({ status: 'ready', name: 'Node 1' })
    expect((await ann.want(200, 'GET', '/keys')).keys).toHaveLength(1)
  })

  // `want` checks each response against the contract, field by field.
  test('every route responds, and matches the contract', async () => {
    const { id } = node.node
    const overview = await ann.want(200, 'GET', '/overview')
    expect(overview).toMatchObject({
      nodes: { ready: 1, silent: 0, total: 1 },
      funnel: { issued: 1, settled: 0, paid: 0 },
      checklist: { hasNode: true, hasKey: true, hasChallenge: true, hasPaidRequest: false },
      credit: { canTopUp: true, nodesThatCost: 1 },
    })
    expect(await ann.want(200, 'GET', '/credit')).toMatchObject({ entries: [{ kind: 'signup' }], nextCursor: null })
    expect(await ann.want(200, 'GET', `/credit/top-ups/${topUp.paymentHash}`)).toMatchObject({
      amountSat: 50,
      settledAt: null,
    })
    const { nodes } = await ann.want(200, 'GET', '/nodes')
    expect(await ann.want(200, 'GET', `/nodes/${id}`)).toEqual(nodes[0])
    expect(await ann.want(200, 'PATCH', `/nodes/${id}`, { json: { name: ' Kiosk ' } })).toMatchObject({
      name: 'Kiosk',
    })
    expect(await ann.want(200, 'GET', `/nodes/${id}/live`)).toMatchObject({ isReachable: true })
    expect(await ann.want(200, 'GET', `/nodes/${id}/updates`)).toMatchObject({ updateAvailable: false })
    const { payments } = await ann.want(200, 'GET', `/nodes/${id}/payments`)
    expect(payments).toHaveLength(2)
    expect(await ann.want(201, 'POST', `/nodes/${id}/invoices`, { json: { amountSat: 5, description: '' } })).toBeDefined()
    expect(await ann.want(200, 'GET', `/nodes/${id}/invoices/${invoice.paymentHash}`)).toEqual({ isPaid: false, receivedSat: 0 })
    const { keys } = await ann.want(200, 'GET', '/keys')
    expect(keys).toHaveLength(1)
    const { webhooks } = await ann.want(200, 'GET', '/webhooks')
    expect(await ann.want(200, 'GET', `/webhooks/${webhook.id}`)).toEqual(webhooks[0])
    expect(JSON.stringify(webhooks)).not.toContain(webhook.secret)
    const list = await ann.want(200, 'GET', '/payments')
    expect(list.payments).toHaveLength(1)
    expect(await ann.want(200, 'GET', `/payments/${payment.id}`)).toEqual({
      ...list.payments[0],
      challenge: payment.challenge,
      createdBy: { id: ann.userId, kind: 'person', name: ann.email },
      paymentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      receipt: null,
    })
    const { activity, nextCursor } = await ann.want(200, 'GET', '/activity')
    expect(nextCursor).toBeNull()
    expect(activity.map(({ action, actor }: { action: string; actor: string }) => [action, actor])).toEqual(
      expect.arrayContaining([
        ['node.created', ann.userId],
        ['key.created', ann.userId],
        ['node.renamed', ann.userId],
      ]),
    )
  })

  test('C5: unknown fields of a body or a query are refused by name', async () => {
    const wrong: unknown[] = []
    for (const { method, url } of routes.filter((route) => route.method !== 'HEAD')) {
      const path = filled(url, named(node.node.id, payment.id, key.id, HASH, webhook.id))
      const good = BODIES[`${method} ${url.replace('/dashboard/api', '')}`] as object | undefined
      const query = await ann.send(
        method,
        `${path}?${QUERIES[url] ?? ''}nonsense=1`,
        method === 'GET' ? {} : { json: good ?? {} },
      )
      if (query.status !== 400 || !query.text.includes('nonsense')) wrong.push([method, path, query.status, query.text])
      if (method === 'GET') continue
      const headers = { 'idempotency-key': newRepeatKey() }
      const body = await ann.send(method, path, { json: { ...good, nonsense: 1 }, headers })
      if (body.status !== 400 || !body.text.includes('nonsense')) wrong.push([method, path, body.status, body.text])
      const list = await ann.send(method, path, { json: [], headers })
      if (list.status !== 400) wrong.push([method, path, list.status, list.text])
    }
    expect(wrong).toEqual([])
  })

  test('a complete 402 flow in the try-it panel: charge, pay as a customer, validate, redeem, and see the payment', async () => {
    for (const protocol of ['mpp', 'l402'] as const) {
      const json = { nodeId: node.node.id, amountSat: 1000, description: `try ${protocol}`, protocol }
      const created = await ann.want(201, 'POST', '/payments', { json })
      expect(created).toEqual({ id: created.id, protocol, status: 'payment_required', challenge: expect.any(String) })
      const paid = await ann.want(200, 'POST', '/sandbox/pay', { json: { invoice: invoiceIn(created.challenge) } })
      expect(paid).toEqual({
        paymentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
        preimage: expect.stringMatching(/^[0-9a-f]{64}$/),
      })
      const credential = credentialOf(created, paid.preimage)
      const receipt = protocol === 'mpp' ? { receipt: expect.any(String) } : {}
      expect(await ann.want(200, 'POST', `/payments/${created.id}/validate`, { json: { credential } })).toEqual({
        id: created.id,
        protocol,
        status: 'paid',
        ...receipt,
      })
      expect((await ann.want(200, 'GET', '/payments?status=paid')).payments[0]).toMatchObject({ id: created.id, amountSat: 1000 })
      const undelivered = async (): Promise<string[]> =>
        (await ann.want(200, 'GET', '/payments?state=undelivered')).payments.map(({ id }: { id: string }) => id)
      expect(await undelivered()).toEqual([created.id])
      const redemption = { credential, requestId: 'one', expect: { nodeId: node.node.id, minAmountSat: 1000 } }
      await ann.want(200, 'POST', `/payments/${created.id}/redeem`, { json: redemption })
      expect(await undelivered()).toEqual([])
    }
    expect(await ann.refusal('POST', `/payments/${payment.id}/validate`, { json: {} })).toEqual([
      400,
      'invalid_payment_credential',
      expect.any(String),
    ])
    expect(await ann.want(200, 'GET', '/overview')).toMatchObject({
      funnel: { issued: 3, settled: 2, paid: 2 },
      checklist: { hasPaidRequest: true },
    })
    const { quarterHours } = await ann.want(200, 'GET', '/received?days=1')
    expect(quarterHours.reduce((sum: number, { sat }: { sat: number }) => sum + sat, 0)).toBe(2000)
    const page = await ann.want(200, 'GET', '/payments?limit=2')
    const rest = await ann.want(200, 'GET', `/payments?limit=2&cursor=${page.nextCursor}`)
    expect([...page.payments, ...rest.payments].map(({ id }: { id: string }) => id)).toEqual(
      (await ann.want(200, 'GET', '/payments')).payments.map(({ id }: { id: string }) => id),
    )
  })

  test('the faucet funds one’s own node, which holds funds from then on', async () => {
    const { id } = node.node
    const before = (await ann.want(200, 'GET', `/nodes/${id}/live`)).balanceSat
    await sql`UPDATE nodes SET has_funds = false WHERE id = ${id}`
    expect(await ann.want(200, 'POST', `/sandbox/nodes/${id}/fund`, { json: { amountSat: 5000 } })).toEqual({
      balanceSat: before + 5000,
    })
    const [row] = await sql`SELECT has_funds FROM nodes WHERE id = ${id}`
    expect(row?.has_funds).toBe(true)
    expect(await ann.refusal('DELETE', `/nodes/${id}`)).toEqual([409, 'node_has_funds', expect.any(String)])
  })

  test('a paid top-up becomes credit, and the page finds out by polling', async () => {
    const { balanceSat } = await ann.want(200, 'GET', '/credit')
    const asked = await ann.want(201, 'POST', '/credit/top-ups', { json: { amountSat: 700 } })
    await ann.want(200, 'POST', '/sandbox/pay', { json: { invoice: asked.invoice } })
    await eventually(
      async () => (await ann.want(200, 'GET', `/credit/top-ups/${asked.paymentHash}`)).settledAt !== null,
      'settlement',
    )
    const after = (await ann.want(200, 'GET', '/credit')).balanceSat
    expect(after).toBeLessThanOrEqual(balanceSat + 700)
    // A node is charged for the minutes that have passed meanwhile.
    expect(after).toBeGreaterThan(balanceSat + 650)
    for (const amountSat of [0, -1, 1.5, '5', 1e12])
      expect((await ann.refusal('POST', '/credit/top-ups', { json: { amountSat } })).slice(0, 2)).toEqual([400, 'bad_request'])
  })
})

describe('C41: creating a node from a page', () => {
  let dora: Visitor
  beforeAll(async () => {
    dora = await signUp(server)
  })

  test('two clicks and two tabs with one Idempotency-Key create one node, and get the same credentials each time', async () => {
    const key = newRepeatKey()
    const clicks = await Promise.all(
      Array.from({ length: 5 }, () =>
        dora.send('POST', '/nodes', { json: { name: 'once' }, headers: { 'idempotency-key': key } }),
      ),
    )
    for (const { status } of clicks) expect([202, 409]).toContain(status)
    const again = await eventually(async () => {
      const answer = await dora.send('POST', '/nodes', { json: { name: 'once' }, headers: { 'idempotency-key': key } })
      if (answer.status !== 202) throw new Error(answer.text)
      return answer
    }, 'the answer')
    const answers = [...clicks.filter(({ status }) => status === 202), again].map((answer) => answer.json())
    for (const { node, credentials } of answers) {
      expect(node.id).toBe(answers[0].node.id)
      expect(credentials).toEqual(answers[0].credentials)
    }
    expect(answers[0].credentials.seed.split(' ')).toHaveLength(12)
    expect((await dora.want(200, 'GET', '/nodes')).nodes).toHaveLength(1)
    expect(await dora.refusal('POST', '/nodes', { json: { name: 'other' }, headers: { 'idempotency-key': key } })).toEqual([
      409,
      'idempotency_conflict',
      expect.any(String),
    ])
  })

  test('C17: without the Idempotency-Key, no later response contains the credentials', async () => {
    const { node, credentials } = await dora.create()
    for (const path of ['/nodes', `/nodes/${node.id}`, `/nodes/${node.id}/live`, '/activity', '/overview']) {
      const { text } = await dora.send('GET', path)
      for (const secret of Object.values(credentials)) expect(text).not.toContain(secret)
    }
    expect(server.stderr).not.toContain(credentials.seed)
  })

  test('a guessable or missing key is refused, because it seals the credentials', async () => {
    for (const key of [undefined, '', 'create', '1'.repeat(21), `${'a'.repeat(30)} b`, 'é'.repeat(30)]) {
      const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
      expect([key, ...(await dora.refusal('POST', '/nodes', { json: {}, headers }))].slice(0, 3)).toEqual([
        key,
        400,
        'bad_request',
      ])
    }
  })

  test('another person’s request with the same key is a separate request', async () => {
    const key = newRepeatKey()
    const [hers, his] = [await dora.create({}, key), await bob.create({}, key)]
    expect(hers.node.id).not.toBe(his.node.id)
    expect(hers.credentials.seed).not.toBe(his.credentials.seed)
  })

  test('the database and the master key together cannot open a stored answer: the key itself is not stored', async () => {
    const key = newRepeatKey()
    const { credentials } = await dora.create({}, key)
    const [row] = await sql`SELECT * FROM idempotency_keys WHERE caller_id = ${dora.userId} ORDER BY created_at DESC LIMIT 1`
    const [dump] = await sql`
      SELECT query_to_xml('SELECT * FROM idempotency_keys', true, true, '')::text || query_to_xml('SELECT * FROM people_sessions', true, true, '')::text
        || query_to_xml('SELECT * FROM activity', true, true, '')::text AS text`
    expect(dump?.text).toContain(row?.key)
    expect(dump?.text).not.toContain(key)
    // Neither the contents of the row nor the session can open the answer; the real key can.
    const master = masterKeyOf(Buffer.from(server.masterKey, 'base64'))
    const opens = (secret: string, name: string): string | undefined => {
      const sealing = Buffer.from(
        hkdfSync('sha256', `${secret}${name}`, derivedKey(master, 'idempotent answers'), 'boltyard answer', 32),
      )
      try {
        return open(sealing, `${dora.userId} ${row?.route} ${name}`, Buffer.from(row?.answer)).toString('utf8')
      } catch {
        return undefined
      }
    }
    const sessions =
      await sql`SELECT id, encode(token_hash, 'hex') AS token FROM people_sessions WHERE person_id = ${dora.userId}`
    const stored = [
      '',
      row?.key,
      row?.caller_id,
      row?.attempt,
      row?.route,
      dora.userId,
      dora.accountId,
      ...sessions.flatMap(({ id, token }) => [id, token]),
    ]
    expect(sessions.length).toBeGreaterThan(0)
    for (const secret of stored) expect(opens(String(secret), row?.key)).toBeUndefined()
    expect(opens(key, createHash('sha256').update(key).digest('hex'))).toContain(credentials.seed)
  })

  test('the answer is the same after signing in again, and after the node was deleted', async () => {
    const key = newRepeatKey()
    const { node, credentials } = await dora.create({}, key)
    await dora.signInAgain()
    expect((await dora.create({}, key)).credentials).toEqual(credentials)
    await dora.until(node.id, 'ready')
    await dora.want(204, 'DELETE', `/nodes/${node.id}`, { json: {} })
    expect((await dora.create({}, key)).credentials).toEqual(credentials)
  })
})

test('C42: node operations of the dashboard are counted by address, separately from those of the API', async () => {
  const own = await startServer({ env: { RATE_LIMIT_MAX: '5', TRUST_PROXY: '1' } })
  const eve = await signUp(own)
  const { key } = await eve.want(201, 'POST', '/keys', { json: { name: 'k', scopes: [] } })
  const headers = { 'x-forwarded-for': '192.0.2.1' }
  const page = async (): Promise<number> => (await eve.send('GET', '/nodes', { headers })).status
  const program = async (): Promise<number> => (await own.send('GET', '/v1/nodes', { headers, token: key })).status
  for (let time = 0; time < 5; time++) expect([await page(), await program()]).toEqual([200, 200])
  expect([await page(), await program()]).toEqual([429, 429])
  const { headers: answered } = await eve.send('GET', '/nodes', { headers: { ...headers, cookie: '' } })
  expect(answered).toMatchObject({
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '0',
    'retry-after': expect.stringMatching(/^\d+$/),
  })
  expect((await eve.send('GET', '/keys', { headers })).status).toBe(200)
  expect((await eve.send('GET', '/nodes')).status).toBe(200)
  // Requests of the try-it panel that call nodes count too; reads do not.
  const tries = ['/payments', '/payments/pay_x/validate', '/payments/pay_x/redeem', '/sandbox/nodes/node_x/fund', '/sandbox/pay']
  for (const path of tries) expect([path, ...(await eve.refusal('POST', path, { headers }))].slice(0, 2)).toEqual([path, 429])
  expect((await eve.send('GET', '/payments', { headers })).status).toBe(200)
  const changes = ['', '/hook_x/test', '/hook_x/replay', '/hook_x/rotate-secret', '/hook_x/deliveries/dlv_1/redeliver']
  for (const path of changes) expect([path, (await eve.refusal('POST', `/webhooks${path}`, { headers }))[0]]).toEqual([path, 429])
  for (const method of ['PATCH', 'DELETE']) expect((await eve.refusal(method, '/webhooks/hook_x', { headers }))[0]).toBe(429)
  expect((await eve.send('GET', '/webhooks', { headers })).status).toBe(200)
  for (const path of ['', '/deliveries']) expect((await eve.refusal('GET', `/webhooks/hook_x${path}`, { headers }))[0]).toBe(404)
  const others = { 'x-forwarded-for': '192.0.2.2' }
  for (let time = 0; time < 5; time++) await eve.refusal('POST', '/sandbox/pay', { headers: others })
  expect((await eve.refusal('POST', '/sandbox/pay', { headers: others }))[0]).toBe(429)
})

test('activity is paged by id: nothing is repeated or skipped, even while more is added', async () => {
  const fay = await signUp(server)
  await sql`
    INSERT INTO activity (account_id, actor, action, detail)
    SELECT ${fay.accountId}, 'test', 'test.' || n, jsonb_build_object('n', n) FROM generate_series(1, 120) n`
  const seen: { id: number; action: string }[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { activity: typeof seen; nextCursor: string | null } = await fay.want(
      200,
      'GET',
      `/activity${cursor && `?cursor=${cursor}`}`,
    )
    expect(page.activity.length).toBeLessThanOrEqual(50)
    seen.push(...page.activity)
    cursor = page.nextCursor
    await sql`INSERT INTO activity (account_id, actor, action) VALUES (${fay.accountId}, 'test', 'meanwhile')`
  }
  expect(seen.slice(0, 120).map(({ action }) => action)).toEqual(Array.from({ length: 120 }, (_, n) => `test.${120 - n}`))
  expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length)
  for (const cursor of ['0', '-1', 'x', '1.5', '9'.repeat(20), ''])
    expect([cursor, (await fay.refusal('GET', `/activity?cursor=${cursor}`))[1]]).toEqual([cursor, 'bad_request'])
})

test('the ledger is paged the same way', async () => {
  const gus = await signUp(server)
  await sql`
    INSERT INTO credit_entries (account_id, amount_msat, kind, reason) SELECT ${gus.accountId}, n, 'test', 'n' FROM generate_series(1, 60) n`
  const first = await gus.want(200, 'GET', '/credit')
  const second = await gus.want(200, 'GET', `/credit?cursor=${first.nextCursor}`)
  const amounts = [...first.entries, ...second.entries].map(({ amountMsat }: { amountMsat: number }) => amountMsat)
  expect(amounts.slice(0, 60)).toEqual(Array.from({ length: 60 }, (_, n) => 60 - n))
  expect([first.entries.length, second.nextCursor]).toEqual([50, null])
})

test('without a sandbox there is no faucet and no test wallet', async () => {
  const deps = {
    config: readConfig({}),
    sandbox: undefined,
    appDirectory: '',
    docsDirectory: '/nonexistent/dist',
    isStopping: () => false,
    logger: await createLogger('silent'),
  }
  const app = await buildApp(deps as unknown as AppDeps)
  for (const path of ['/sandbox/pay', `/sandbox/nodes/${NODE}/fund`]) {
    const answer = await app.inject({ method: 'POST', url: `/dashboard/api${path}`, payload: {} })
    expect([answer.statusCode, answer.json().error.code]).toEqual([404, 'not_found'])
  }
  await app.close()
})

test('the public OpenAPI document does not contain the dashboard’s routes', async () => {
  const { paths } = (await server.send('GET', '/openapi.json')).json()
  expect(Object.keys(paths).filter((path) => path.startsWith('/dashboard'))).toEqual([])
  expect(Object.keys(paths).filter((path) => path === '/')).toEqual([])
})

test('an unknown path of the dashboard’s API is 404, a wrong method is 405 with Allow, and neither returns the page', async () => {
  const headers = { origin: server.url }
  const ask = async (method: string, path: string) => {
    const answer = await server.send(method, `/dashboard/api${path}`, { headers })
    return [answer.status, answer.json().error.code, answer.headers.allow]
  }
  expect(await ask('GET', '/nothing')).toEqual([404, 'not_found', undefined])
  expect(await ask('GET', '')).toEqual([404, 'not_found', undefined])
  expect(await ask('POST', '/nothing')).toEqual([404, 'not_found', undefined])
  expect(await ask('GET', `/keys/${KEY}`)).toEqual([405, 'method_not_allowed', 'DELETE, PATCH'])
  expect(await ask('PUT', '/keys')).toEqual([405, 'method_not_allowed', 'GET, HEAD, POST'])
})
