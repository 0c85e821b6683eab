import { once } from 'node:events'
import { createServer, type Server as HttpServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { payInvoice } from '../../src/lightning/phoenixd/wallet.ts'
import { accessTo } from '../../src/nodes/access.ts'
import { masterKeyOf } from '../../src/platform/secrets.ts'
import { addressIn } from '../../src/runtimes/process/address.ts'
import type { Database } from '../../src/store/db.ts'
import { type CreatedNode, signUp, type Visitor } from '../support/dashboard.ts'
import { callNode, catalogue, fault, redirectNode, runningPidOf } from '../support/nodes.ts'
import { eventually, PATIENCE_MS, type Server, startServer } from '../support/server.ts'

let server: Server
let sql: Database
let ann: Visitor
/** One node of each access mode, and a stranger's node to pay. */
let full: CreatedNode
let limited: CreatedNode
let shop: CreatedNode

beforeAll(async () => {
  const NODE_VERSIONS = catalogue([{ version: '0.8.0' }, { version: '0.9.0' }])
  const [older = ''] = NODE_VERSIONS.split(',')
  server = await startServer({ env: { TRUST_PROXY: '1', NODE_VERSIONS: older, SIGNUP_CREDIT_SAT: '100000' } })
  sql = server.sql()
  ann = await signUp(server)
  const stranger = await signUp(server)
  ;[full, limited, shop] = await Promise.all([
    ann.createReady({ accessMode: 'full', autoLiquidity: '5m' }),
    ann.createReady(),
    stranger.createReady(),
  ])
  for (const { node } of [full, limited]) await give(node.id, 100_000)
  // From now on, a newer version is available.
  await server.restart('SIGTERM', { NODE_VERSIONS })
})

const give = (id: string, amountSat: number) => ann.want(200, 'POST', `/sandbox/nodes/${id}/fund`, { json: { amountSat } })
const balanceOf = async ({ node, credentials }: CreatedNode): Promise<number> =>
  (await callNode(node, credentials.password, 'GET', '/getbalance')).json().balanceSat
async function invoiceOf({ node, credentials }: CreatedNode, amountSat: number | undefined, more = ''): Promise<string> {
  const form = `description=tea%20%26%20cake${amountSat === undefined ? '' : `&amountSat=${amountSat}`}${more}`
  return (await callNode(node, credentials.password, 'POST', '/createinvoice', form)).json().serialized
}
const pay = (id: string, json: object) => ann.want(200, 'POST', `/nodes/${id}/pay`, { json })
const refused = (id: string, json: object) => ann.refusal('POST', `/nodes/${id}/pay`, { json })
const live = (id: string) => ann.want(200, 'GET', `/nodes/${id}/live`)
const paymentsOf = async (id: string) => (await ann.want(200, 'GET', `/nodes/${id}/payments`)).payments

describe('a node is operated as the public API does it', () => {
  test('start, stop, restart and their refusals: the same states and messages', async () => {
    const { id } = limited.node
    const owner = await ann.owner()
    expect((await ann.refusal('POST', `/nodes/${id}/start`)).slice(0, 2)).toEqual([400, 'invalid_node_state'])
    expect(await ann.want(200, 'POST', `/nodes/${id}/stop`, { json: {} })).toMatchObject({ status: 'stopped' })
    const mine = await ann.refusal('POST', `/nodes/${id}/restart`)
    const { error } = (await owner.send('POST', `/nodes/${id}/restart`)).json()
    expect(mine).toEqual([400, error.code, error.message])
    expect(await live(id)).toEqual({
      isReachable: false,
      balanceSat: null,
      feeCreditSat: null,
      channels: null,
      inboundSat: null,
      blockHeight: null,
      version: null,
    })
    for (const [method, path, json] of [
      ['GET', 'payments', undefined],
      ['POST', 'invoices', { description: 'x' }],
      ['GET', `invoices/${'ab'.repeat(32)}`, undefined],
    ] as const) {
      const answer = await ann.refusal(method, `/nodes/${id}/${path}`, json ? { json } : {})
      expect(answer).toEqual([
        502,
        'payment_service_unavailable',
        'The node cannot be reached from here. Start it if it is stopped; otherwise try again shortly.',
      ])
    }
    expect(await ann.want(200, 'POST', `/nodes/${id}/start`)).toMatchObject({ status: 'ready', operation: null })
    expect(await ann.want(200, 'POST', `/nodes/${id}/restart`)).toMatchObject({ status: 'ready' })
    const { activity } = await ann.want(200, 'GET', '/activity')
    expect(activity.slice(0, 3).map(({ action, actor }: Record<string, string>) => [action, actor])).toEqual(
      ['node.restart', 'node.start', 'node.stop'].map((action) => [action, ann.userId]),
    )
  })

  test('an operation is shown while it is in progress', async () => {
    const pid = runningPidOf(server, limited.node)
    // A stopped process cannot exit, so the operation is still in progress when the test looks.
    process.kill(pid, 'SIGSTOP')
    const stopping = ann.want(200, 'POST', `/nodes/${limited.node.id}/stop`)
    await eventually(async () => (await ann.want(200, 'GET', `/nodes/${limited.node.id}`)).operation === 'stop', 'the operation')
    process.kill(pid, 'SIGCONT')
    await stopping
    await ann.want(200, 'POST', `/nodes/${limited.node.id}/start`)
  })

  test('C14: the public API shows its nine fields, the dashboard more', async () => {
    const owner = await ann.owner()
    const [mine, theirs] = [await ann.want(200, 'GET', '/nodes'), await owner.list()]
    expect(theirs.map((node) => Object.keys(node).length)).toEqual([9, 9])
    expect(mine.nodes).toMatchObject(theirs)
    expect(mine.nodes.map(({ accessMode, autoLiquidity }: Record<string, string>) => [accessMode, autoLiquidity]).sort()).toEqual(
      [
        ['full', '5m'],
        ['limited', '2m'],
      ],
    )
  })

  test('an update is offered, carried out, and no longer offered', async () => {
    const { id } = limited.node
    const updates = () => ann.want(200, 'GET', `/nodes/${id}/updates`)
    expect(await updates()).toMatchObject({ latestVersion: '0.9.0', updateAvailable: true, lastUpdateError: null })
    const unknown = await ann.refusal('POST', `/nodes/${id}/update`, { json: { version: '7.7.7' } })
    expect(unknown.slice(0, 2)).toEqual([400, 'no_update_available'])
    expect(await ann.want(202, 'POST', `/nodes/${id}/update`)).toMatchObject({
      updateStatus: 'updating',
      operation: 'update',
    })
    await eventually(async () => (await ann.want(200, 'GET', `/nodes/${id}`)).updateStatus === 'updated', 'the update')
    const { activity } = await ann.want(200, 'GET', '/activity')
    const ofNode = activity
      .filter(({ target }: { target: string }) => target === id)
      .map(({ action }: { action: string }) => action)
    expect(ofNode.slice(0, 2)).toEqual(['node.updated', 'node.update'])
    expect(await updates()).toMatchObject({ currentVersion: expect.stringMatching(/^0\.9\.0/), updateAvailable: false })
    expect(await live(id)).toMatchObject({ isReachable: true, version: expect.stringMatching(/^0\.9\.0/) })
  })

  test('C26: a deleted node is gone; one that holds funds is only deleted with force', async () => {
    const { node } = await ann.createReady()
    await give(node.id, 10_000)
    expect((await ann.refusal('DELETE', `/nodes/${node.id}?force=false`, { json: {} })).slice(0, 2)).toEqual([
      409,
      'node_has_funds',
    ])
    expect(await ann.want(204, 'DELETE', `/nodes/${node.id}?force=true`, { json: {} })).toBeUndefined()
    for (const path of ['', '/live', '/payments', '/updates'])
      expect((await ann.refusal('GET', `/nodes/${node.id}${path}`)).slice(0, 2)).toEqual([404, 'node_not_found'])
    expect((await ann.want(200, 'GET', '/nodes')).nodes).toHaveLength(2)
  })
})

describe('known and unknown balances', () => {
  test('balance, channels, height and version are the node’s own', async () => {
    expect(await live(full.node.id)).toEqual({
      isReachable: true,
      balanceSat: await balanceOf(full),
      feeCreditSat: 0,
      channels: { usable: 1, total: 1 },
      inboundSat: expect.any(Number),
      blockHeight: expect.any(Number),
      version: expect.stringMatching(/^0\.8\.0/),
    })
    expect(await balanceOf(full)).toBeGreaterThan(0)
  })

  test('a node that never had a channel has a known balance of zero', async () => {
    const carl = await signUp(server)
    const { node } = await carl.createReady()
    expect(await carl.want(200, 'GET', `/nodes/${node.id}/live`)).toMatchObject({
      isReachable: true,
      balanceSat: 0,
      feeCreditSat: 0,
      channels: { usable: 0, total: 0 },
    })
  })

  test('while the peer is offline the balance is unknown, never zero, and it comes back', async () => {
    const before = await balanceOf(full)
    await fault(server, full, 'peer_down')
    await eventually(async () => (await live(full.node.id)).channels.usable === 0, 'the channel to be offline')
    expect(await balanceOf(full)).toBe(0)
    expect(await live(full.node.id)).toMatchObject({
      isReachable: true,
      balanceSat: null,
      feeCreditSat: null,
      channels: { usable: 0, total: 1 },
      inboundSat: null,
    })
    await fault(server, full, 'none')
    await eventually(async () => (await live(full.node.id)).balanceSat === before, 'the balance')
  })

  test('a hung node is reported as unreachable, and holds up no other', async () => {
    await fault(server, full, 'hang')
    const since = performance.now()
    const [hung, well] = await Promise.all([live(full.node.id), live(limited.node.id)])
    expect(performance.now() - since).toBeLessThan(50_000)
    expect([hung.isReachable, hung.balanceSat, well.isReachable]).toEqual([false, null, true])
    await fault(server, full, 'none')
    await eventually(async () => (await live(full.node.id)).isReachable, 'the node')
    await ann.until(full.node.id, 'ready')
  })
})

describe('invoices', () => {
  test('invoices with and without an amount, before and after payment', async () => {
    const { id } = limited.node
    const path = `/nodes/${id}/invoices`
    const asked = await ann.want(201, 'POST', path, { json: { amountSat: 2500, description: 'Two teas' } })
    expect(readInvoice(asked.invoice)).toMatchObject({
      amountMsat: 2_500_000,
      description: 'Two teas',
      paymentHash: asked.paymentHash,
    })
    expect(await ann.want(200, 'GET', `${path}/${asked.paymentHash}`)).toEqual({ isPaid: false, receivedSat: 0 })
    await ann.want(200, 'POST', '/sandbox/pay', { json: { invoice: asked.invoice } })
    expect(await ann.want(200, 'GET', `${path}/${asked.paymentHash}`)).toEqual({ isPaid: true, receivedSat: 2500 })
    const open = await ann.want(201, 'POST', path, { json: { description: '' } })
    expect(readInvoice(open.invoice)).toMatchObject({ amountMsat: undefined, description: '' })
    const long = await ann.want(201, 'POST', path, { json: { description: 'x'.repeat(500) } })
    expect(readInvoice(long.invoice)).toMatchObject({ description: undefined, descriptionHash: expect.any(String) })
    expect((await ann.refusal('GET', `${path}/${'ab'.repeat(32)}`)).slice(0, 2)).toEqual([404, 'not_found'])
    // An invalid hash must not turn into a different call to the node.
    for (const hash of ['x', '..%2f..%2fgetinfo', 'AB'.repeat(32)])
      expect((await ann.refusal('GET', `${path}/${hash}`)).slice(0, 2)).toEqual([404, 'not_found'])
  })

  test('C5: invalid amounts and descriptions', async () => {
    for (const json of [
      {},
      { description: 'x', amountSat: 0 },
      { description: 'x', amountSat: 1.5 },
      { description: 'x', amountSat: '1' },
      { description: 'x', amountSat: 9_007_199_254_741 },
      { description: 'x\u0000' },
      { description: 'x'.repeat(501) },
      { description: null },
    ])
      expect((await ann.refusal('POST', `/nodes/${limited.node.id}/invoices`, { json })).slice(0, 2)).toEqual([
        400,
        'bad_request',
      ])
  })
})

describe('C30: what the dashboard may do with a node', () => {
  test('with full access it sends, and reports the cost', async () => {
    const [mine, theirs] = [await balanceOf(full), await balanceOf(shop)]
    const sent = await pay(full.node.id, { invoice: await invoiceOf(shop, 1000) })
    expect(sent).toEqual({ outcome: 'sent', reason: null, amountSat: 1000, feeSat: 8 })
    expect(await balanceOf(full)).toBe(mine - 1008)
    expect(await balanceOf(shop)).toBe(theirs + 1000)
    const { activity } = await ann.want(200, 'GET', '/activity')
    expect(activity[0]).toMatchObject({ action: 'node.pay', actor: ann.userId, target: full.node.id })
  })

  test('with limited access it reads and creates invoices but does not send: no money moves', async () => {
    const before = await balanceOf(limited)
    const invoice = await invoiceOf(shop, 1000)
    const answer = await refused(limited.node.id, { invoice })
    expect(answer.slice(0, 2)).toEqual([400, 'invalid_node_state'])
    expect(answer[2]).toMatch(/limited access.*full password/)
    expect(await balanceOf(limited)).toBe(before)
    expect((await live(limited.node.id)).balanceSat).toBe(before)
  })

  test('the node itself refuses: the password stored for a limited node cannot send', async () => {
    const [row] = await sql`SELECT host FROM nodes WHERE id = ${limited.node.id}`
    const master = masterKeyOf(Buffer.from(server.masterKey, 'base64'))
    const access = await accessTo(sql, [master], row?.host, addressIn(server.dataDir))(limited.node.id)
    if (!access?.address) throw new Error('no access')
    expect(access.password()).toBe(limited.credentials.restrictedPassword)
    const wish = { invoice: await invoiceOf(shop, 1000), amountSat: undefined }
    expect(await payInvoice(access.address, access.password(), wish, PATIENCE_MS)).toEqual({ answer: 'wrong password' })
  })

  test('the node refuses even if the row says full, because the stored password is the restricted one', async () => {
    const before = await balanceOf(limited)
    await sql`UPDATE nodes SET access_mode = 'full' WHERE id = ${limited.node.id}`
    expect((await refused(limited.node.id, { invoice: await invoiceOf(shop, 1000) })).slice(0, 2)).toEqual([
      400,
      'invalid_node_state',
    ])
    await sql`UPDATE nodes SET access_mode = 'limited' WHERE id = ${limited.node.id}`
    expect(await balanceOf(limited)).toBe(before)
  })
})

describe('sending', () => {
  test('an invoice without an amount requires one; one with an amount accepts no other', async () => {
    const open = await invoiceOf(shop, undefined)
    expect((await refused(full.node.id, { invoice: open }))[2]).toContain('amountSat')
    expect(await pay(full.node.id, { invoice: open, amountSat: 77 })).toMatchObject({ outcome: 'sent', amountSat: 77 })
    const fixed = await invoiceOf(shop, 50)
    expect((await refused(full.node.id, { invoice: fixed, amountSat: 49 })).slice(0, 2)).toEqual([400, 'bad_request'])
    expect(await pay(full.node.id, { invoice: fixed, amountSat: 50 })).toMatchObject({ outcome: 'sent', amountSat: 50 })
  })

  test('pasted invoices: from a link, from a QR code, with line breaks', async () => {
    for (const written of [
      (text: string) => `lightning:${text}`,
      (text: string) => text.toUpperCase(),
      (text: string) => `LIGHTNING:${text.toUpperCase()}`,
      (text: string) => `  ${text}\n`,
    ])
      expect(await pay(full.node.id, { invoice: written(await invoiceOf(shop, 5)) })).toMatchObject({ outcome: 'sent' })
  })

  test('an invalid invoice, one of another network and an expired one do not reach the node', async () => {
    const mainnet =
      'lnbc1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyafkq3yap9us6v52vjjsrvywa6rt52cm9r9zqt8r2t7mlcwspyetp5h2tztugp9lfyql'
    expect((await refused(full.node.id, { invoice: mainnet, amountSat: 1 }))[2]).toMatch(/network/)
    for (const invoice of ['x', 'lnbcrt1', (await invoiceOf(shop, 5)).slice(0, -1)])
      expect((await refused(full.node.id, { invoice }))[2]).toMatch(/not a Lightning invoice/)
    const brief = await invoiceOf(shop, 5, '&expirySeconds=1')
    await new Promise((resolve) => setTimeout(resolve, 2_100))
    expect((await refused(full.node.id, { invoice: brief }))[2]).toMatch(/expired/)
  })

  test('a failed payment has a reason, and no money moved', async () => {
    const before = await balanceOf(full)
    expect(await pay(full.node.id, { invoice: await invoiceOf(shop, 10_000_000) })).toEqual({
      outcome: 'failed',
      reason: 'not enough funds in wallet to afford payment',
      amountSat: null,
      feeSat: null,
    })
    const once = await invoiceOf(shop, 10)
    expect(await pay(full.node.id, { invoice: once })).toMatchObject({ outcome: 'sent' })
    // The node refuses, because it has already paid this invoice: neither "no money left the node" nor "sent" would be right.
    expect(await pay(full.node.id, { invoice: once })).toMatchObject({ outcome: 'already_sent', amountSat: 10 })
    expect(await balanceOf(full)).toBe(before - 14)
  })

  test('two tabs that pay one invoice at once pay it once', async () => {
    const [before, invoice] = [await balanceOf(shop), await invoiceOf(shop, 30)]
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => pay(full.node.id, { invoice })))
    // A tab whose request came second learns that the payment was made, or is under way.
    for (const { outcome } of outcomes) expect(['sent', 'already_sent', 'unknown']).toContain(outcome)
    expect(outcomes.filter(({ outcome }) => outcome === 'sent')).toHaveLength(1)
    expect(await balanceOf(shop)).toBe(before + 30)
  })
})

test('the list of payments has both directions, newest first, at most 50, and no preimages', async () => {
  const { id } = full.node
  for (let count = 0; count < 60; count++) await invoiceOf(full, count + 1)
  await pay(id, { invoice: await invoiceOf(shop, 123) })
  const payments = await paymentsOf(id)
  expect(payments).toHaveLength(50)
  expect(payments[0]).toEqual({
    direction: 'out',
    paymentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    amountSat: 123,
    feeMsat: 4492,
    description: 'tea & cake',
    isPaid: true,
    createdAt: expect.any(Number),
    expiresAt: null,
    completedAt: expect.any(Number),
    gatewayPaymentId: null,
  })
  expect(payments[1].expiresAt).toBeGreaterThan(payments[1].createdAt)
  expect(payments[1]).toMatchObject({
    direction: 'in',
    amountSat: 60,
    isPaid: false,
    completedAt: null,
    description: 'tea & cake',
  })
  expect(Math.abs(payments[0].createdAt - Date.now() / 1000)).toBeLessThan(60)
  const times = payments.map(({ createdAt }: { createdAt: number }) => createdAt)
  expect(times).toEqual([...times].sort((a: number, b: number) => b - a))
  const { text } = await ann.send('GET', `/nodes/${id}/payments`)
  expect(text).not.toContain('preimage')
  const { preimage } = (
    await callNode(full.node, full.credentials.password, 'GET', `/payments/incoming/${payments[1].paymentHash}`)
  ).json()
  expect(preimage).toMatch(/^[0-9a-f]{64}$/)
  expect(text).not.toContain(preimage)
})

describe('a node that does not say whether it has paid', () => {
  let impostor: HttpServer
  let realPort: number
  let asked: { method: string; path: string }[] = []
  /** The impostor's own replies, by the beginning of the path. The real node answers everything else. */
  const says = new Map<string, (response: ServerResponse) => void>()

  beforeAll(async () => {
    impostor = createServer((incoming, response) => {
      answer(incoming, response).catch((error: Error) => response.writeHead(599, { mistake: error.message }).end())
    }).listen(0, '127.0.0.1')
    await once(impostor, 'listening')
    realPort = redirectNode(server, full.node, (impostor.address() as AddressInfo).port)
  })
  afterEach(() => {
    says.clear()
    asked = []
  })
  afterAll(async () => {
    redirectNode(server, full.node, realPort)
    impostor.closeAllConnections()
    impostor.close()
  })

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const { method = '', url: path = '', headers } = incoming
    asked.push({ method, path })
    const reply = says.get(/^\/(payments\/\w+|\w+)/.exec(path)?.[1] ?? '')
    if (reply) return reply(response)
    const onward = request({ host: '127.0.0.1', port: realPort, method, path, headers, agent: false }, (real) => {
      response.writeHead(real.statusCode ?? 0, real.headers)
      real.pipe(response)
    })
    onward.on('error', () => response.destroy())
    onward.end(Buffer.concat(chunks))
  }
  const json = (body: unknown) => (response: ServerResponse) => void response.end(JSON.stringify(body))
  const status = (code: number) => (response: ServerResponse) => void response.writeHead(code).end('words of the node')
  const hangUp = (response: ServerResponse): void => void response.destroy()
  const paysAsked = (): number => asked.filter(({ path }) => path === '/payinvoice').length
  const UNKNOWN = { outcome: 'unknown', reason: expect.stringContaining('Do not pay again'), amountSat: null, feeSat: null }

  test.each([
    ['hangs up', hangUp],
    ['answers 500', status(500)],
    ['answers 504', status(504)],
    ['answers nonsense', json({ hello: 1 })],
    ['answers with an invalid preimage', json({ paymentPreimage: 'x', recipientAmountSat: 1, routingFeeSat: 0 })],
  ])('it %s after paying: the payment is looked up, not sent again', async (_name, reply) => {
    const before = await balanceOf(shop)
    const invoice = await invoiceOf(shop, 40)
    // The real node pays; only its answer is lost.
    says.set('payinvoice', (response) => {
      const form = new URLSearchParams({ invoice }).toString()
      callNode(
        { ...full.node, endpointUrl: `http://127.0.0.1:${realPort}` },
        full.credentials.password,
        'POST',
        'payinvoice',
        form,
      ).then(() => reply(response), hangUp.bind(null, response))
    })
    expect(await pay(full.node.id, { invoice })).toEqual({ outcome: 'sent', reason: null, amountSat: 40, feeSat: 4 })
    expect(paysAsked()).toBe(1)
    expect(await balanceOf(shop)).toBe(before + 40)
  })

  test('it has no record of the payment, or does not respond: the outcome is reported as unknown', async () => {
    says.set('payinvoice', hangUp)
    expect(await pay(full.node.id, { invoice: await invoiceOf(shop, 41) })).toEqual(UNKNOWN)
    says.set('payments/outgoingbyhash', hangUp)
    expect(await pay(full.node.id, { invoice: await invoiceOf(shop, 41) })).toEqual(UNKNOWN)
    expect(paysAsked()).toBe(2)
  })

  test('a payment in flight is unknown; one that failed just now is failed; one that failed before the request was another attempt, so it is unknown', async () => {
    const invoice = await invoiceOf(shop, 42)
    const paymentHash = readInvoice(invoice)?.paymentHash
    const attempt = { type: 'outgoing_payment', subType: 'lightning', paymentHash, isPaid: false, sent: 42, fees: 0 }
    const record = (more: object) => says.set('payments/outgoingbyhash', json({ ...attempt, ...more }))
    says.set('payinvoice', hangUp)
    record({ createdAt: Date.now() })
    expect(await pay(full.node.id, { invoice })).toEqual(UNKNOWN)
    record({ createdAt: Date.now() + 300_000, completedAt: Date.now() + 300_000 })
    expect(await pay(full.node.id, { invoice })).toMatchObject({ outcome: 'failed' })
    record({ createdAt: Date.now() - 60_000, completedAt: Date.now() - 59_000 })
    expect(await pay(full.node.id, { invoice })).toEqual(UNKNOWN)
    says.set('payinvoice', json({ paymentHash, reason: 'another payment is in progress for that invoice' }))
    expect(await pay(full.node.id, { invoice })).toMatchObject({
      outcome: 'unknown',
      reason: expect.stringContaining('in progress'),
    })
  })

  test('its refusal of the request is a 502 without its message, and no payment is looked up', async () => {
    says.set('payinvoice', status(400))
    const answer = await refused(full.node.id, { invoice: await invoiceOf(shop, 43) })
    expect(answer.slice(0, 2)).toEqual([502, 'payment_service_unavailable'])
    expect(answer[2]).not.toContain('words of the node')
    expect(asked.filter(({ path }) => path.includes('outgoing'))).toEqual([])
  })

  test('an invalid list is a 502, and an invalid balance is unknown', async () => {
    says.set('payments/incoming', json({ not: 'a list' }))
    expect((await ann.refusal('GET', `/nodes/${full.node.id}/payments`)).slice(0, 2)).toEqual([
      502,
      'payment_service_unavailable',
    ])
    says.set('getbalance', json({ balanceSat: '5' }))
    expect(await live(full.node.id)).toMatchObject({ isReachable: true, feeCreditSat: null })
    // As if the peer had come back between two answers: the balance of the first must not be shown with the channels of the second.
    says.clear()
    const before = await balanceOf(full)
    says.set('getbalance', json({ balanceSat: 0, feeCreditSat: 0 }))
    expect((await live(full.node.id)).balanceSat).toBe(before)
    expect(before).toBeGreaterThan(0)
    for (const channels of [[{ state: 'Normal' }], [{ state: 'Normal', balanceSat: 5 }, { state: 'Syncing(Normal)' }]]) {
      says.set('getinfo', json({ nodeId: 'x', version: 'y', blockHeight: 1, channels }))
      expect((await live(full.node.id)).balanceSat).toBeNull()
    }
    says.set('getinfo', json({ nodeId: 'x', version: 'y', channels: [] }))
    expect(await live(full.node.id)).toMatchObject({ balanceSat: null, feeCreditSat: null, blockHeight: null })
  })
})
