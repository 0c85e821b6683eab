import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import {
  basic,
  confText,
  Daemon,
  eventually,
  FULL,
  freePort,
  LIMITED,
  readText,
  startNetwork,
  type TestHub,
  TestNode,
  temporaryDirectory,
  WEBHOOK_SECRET,
} from './harness.ts'

type Call = { method: string; path: string; headers: IncomingHttpHeaders; raw: Buffer; event: any }
type Receiver = { url: string; port: number; calls: Call[] }

const servers: Server[] = []
const sockets: WebSocket[] = []

afterAll(() => {
  for (const socket of sockets) socket.terminate()
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
})

/** A web server that records the requests it receives and responds as the test needs. */
async function receiver(answer: RequestListener = (_request, response) => response.end(), host = '127.0.0.1'): Promise<Receiver> {
  const calls: Call[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const raw = Buffer.concat(chunks)
    calls.push({
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      raw,
      event: JSON.parse(raw.toString('utf8')),
    })
    answer(request, response)
  })
  servers.push(server)
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/hook`, port, calls }
}

const TO_LOOPBACK = { 'sandbox-webhook-loopback': 'true' }

const hashesAt = ({ calls }: Receiver): string[] => calls.map(({ event }) => event.paymentHash)

async function listen(node: TestNode, options: { headers?: Record<string, string>; protocols?: string[] }): Promise<any[]> {
  // Sent as a raw header, because with `protocols` the client would reject a response that names no sub-protocol.
  const protocols = options.protocols ? { 'sec-websocket-protocol': options.protocols.join(', ') } : {}
  const socket = new WebSocket(`ws://127.0.0.1:${node.port}/websocket`, { headers: { ...options.headers, ...protocols } })
  sockets.push(socket)
  const events: any[] = []
  socket.on('message', (data) => events.push(JSON.parse(data.toString())))
  await once(socket, 'open')
  return events
}

/** The response with which the server refuses a websocket. */
async function refusalOf(node: TestNode, protocols: string[], headers: Record<string, string> = {}, path = '/websocket') {
  const socket = new WebSocket(`ws://127.0.0.1:${node.port}${path}`, protocols, { headers })
  const [, response] = await once(socket, 'unexpected-response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }
}

let hub: TestHub
let payer: TestNode
let payee: TestNode
let everything: any[]
let openedAt: number
let pings: { afterMs: number; text: string }[]

const payFromOutside = async (serialized: string): Promise<void> => {
  const answer = await hub.post('/pay', { invoice: serialized })
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
}
const paidInvoice = async (node: TestNode, form: Record<string, string | number> = {}): Promise<string> => {
  const invoice = await node.invoice({ amountSat: 10, ...form })
  await payFromOutside(invoice.serialized)
  return invoice.paymentHash
}
/** Events arrive in order, so when this payment's event arrives, those of earlier actions have arrived, too. */
async function fence(node: TestNode, events: any[]): Promise<string> {
  const paymentHash = await paidInvoice(node)
  await eventually(() => events.some((event) => event.paymentHash === paymentHash), 'the event')
  return paymentHash
}

beforeAll(async () => {
  ;({ hub, payer, payee } = await startNetwork())
  openedAt = Date.now()
  everything = await listen(payee, { headers: { authorization: basic(FULL) } })
  pings = []
  sockets[0]?.on('ping', (data) => pings.push({ afterMs: Date.now() - openedAt, text: data.toString() }))
})

describe('the websocket', () => {
  test('S51: sends one payment_received for each payment, with the fields that have a value', async () => {
    const events = await listen(payee, { headers: { authorization: basic(FULL) } })
    const startedAt = Date.now()
    const plain = await paidInvoice(payee, { amountSat: 123 })
    const named = await paidInvoice(payee, { amountSat: 77, externalId: 'order 7 – ₿' })
    await eventually(() => events.length >= 2, 'two events')
    const type = 'payment_received'
    expect(events).toEqual([
      { type, timestamp: expect.any(Number), amountSat: 123, paymentHash: plain },
      { type, timestamp: expect.any(Number), amountSat: 77, paymentHash: named, externalId: 'order 7 – ₿' },
    ])
    const { completedAt } = await payee.incoming(plain)
    expect(completedAt).toBeGreaterThanOrEqual(startedAt)
    expect(events[0].timestamp).toBeGreaterThanOrEqual(completedAt)
    expect(events[1].timestamp).toBeGreaterThanOrEqual(events[0].timestamp)
    expect(events[1].timestamp).toBeLessThanOrEqual(Date.now())
    await fence(payee, events)
    expect(events).toHaveLength(3)
  })

  test('S51: sends nothing for an unpaid invoice, a refused payment, a sent payment or money from the faucet', async () => {
    const events = await listen(payer, { headers: { authorization: basic(LIMITED) } })
    const unpaid = await payer.invoice({ amountSat: 10 })
    expect((await hub.post('/pay', { invoice: unpaid.serialized, amountSat: 1 })).status).toBe(409)
    await payer.pay((await payee.invoice({ amountSat: 5 })).serialized)
    await payer.pay((await payee.invoice({ amountSat: 5 })).serialized, { amountSat: 1 })
    await hub.fund(payer, 10)
    const paymentHash = await fence(payer, events)
    expect(events.map((event) => event.paymentHash)).toEqual([paymentHash])
  })

  test('S51: each of twenty concurrent payments causes one event at every client', async () => {
    const clients = await Promise.all([1, 2, 3].map(() => listen(payee, { headers: { authorization: basic(FULL) } })))
    const hashes = await Promise.all(Array.from({ length: 20 }, () => paidInvoice(payee)))
    await Promise.all(clients.map((events) => fence(payee, events)))
    for (const events of clients) {
      const got = events.map((event) => event.paymentHash)
      expect(new Set(got).size).toBe(got.length)
      for (const hash of hashes) expect(got).toContain(hash)
    }
  })

  test('does not replay earlier events', async () => {
    await paidInvoice(payee)
    const events = await listen(payee, { headers: { authorization: basic(FULL) } })
    const paymentHash = await fence(payee, events)
    expect(events.map((event) => event.paymentHash)).toEqual([paymentHash])
  })

  test.each([
    { title: 'the full password by Basic', headers: { authorization: basic(FULL) } },
    { title: 'the limited password by Basic, with any user name', headers: { authorization: basic(LIMITED, 'phoenix-cli') } },
    { title: 'S52: the full password as sub-protocol', protocols: [FULL] },
    { title: 'S52: the limited password as sub-protocol', protocols: [LIMITED] },
    { title: 'S52: the password as the second of two sub-protocols', protocols: ['something', FULL] },
  ])('$title opens it', async ({ headers, protocols }) => {
    const events = await listen(payee, { ...(headers ? { headers } : {}), ...(protocols ? { protocols } : {}) })
    await fence(payee, events)
    expect(events).toHaveLength(1)
  })

  test.each([
    { title: 'nothing', protocols: [] },
    { title: 'another password by Basic', protocols: [], headers: { authorization: basic('f'.repeat(63)) } },
    { title: 'S52: another password as sub-protocol', protocols: ['f'.repeat(63)] },
    { title: 'the webhook secret', protocols: [WEBHOOK_SECRET] },
    { title: 'the control token', protocols: ['c'.repeat(64)] },
  ])('$title does not open it: 401 with phoenixd’s message', async ({ protocols, headers }) => {
    const refusal = await refusalOf(payee, protocols, headers)
    expect(refusal.status).toBe(401)
    expect(refusal.text).toBe('Invalid authentication (use basic auth with the http password set in phoenix.conf)')
    expect(refusal.headers['www-authenticate']).toBe(headers && 'Basic realm="Ktor Server", charset=UTF-8')
  })

  test('P2: the handshake names no sub-protocol, so a client that requires one fails', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${payee.port}/websocket`, [FULL])
    const [error] = await once(socket, 'error')
    expect(error.message).toBe('Server sent no subprotocol')
  })

  test('is at /websocket and nowhere else', async () => {
    const refusal = await refusalOf(payee, [FULL], {}, '/websockets')
    expect([refusal.status, refusal.text]).toEqual([404, 'Unknown endpoint (check api doc)'])
  })

  test('ignores messages from clients', async () => {
    const events = await listen(payee, { headers: { authorization: basic(FULL) } })
    const socket = sockets.at(-1)
    for (const words of ['{"type":"payment_received"}', '', 'x'.repeat(60_000)]) socket?.send(words)
    socket?.send(Buffer.from([0, 1, 2, 255]))
    await fence(payee, events)
    expect(events).toHaveLength(1)
    expect(socket?.readyState).toBe(WebSocket.OPEN)
  })

  test('a client that disappears does not affect others', async () => {
    const events = await listen(payee, { headers: { authorization: basic(FULL) } })
    await listen(payee, { headers: { authorization: basic(FULL) } })
    sockets.at(-1)?.terminate()
    await fence(payee, events)
    expect(events).toHaveLength(1)
  })
})

describe('webhooks', () => {
  let global1: Receiver
  let global2: Receiver
  let failing: Receiver
  let closing: Receiver
  let hanging: Receiver
  let hooked: TestNode
  let failingHashes: string[]
  let closingHashes: string[]
  let hangingHashes: string[]

  beforeAll(async () => {
    ;[global1, global2] = await Promise.all([receiver(), receiver()])
    failing = await receiver((_request, response) => {
      response.statusCode = 500
      response.end('try again')
    })
    closing = await receiver((request) => request.socket.destroy())
    hanging = await receiver(() => undefined)
    hooked = new TestNode({ hub, conf: TO_LOOPBACK })
    appendFileSync(join(hooked.dataDir, 'phoenix.conf'), `\nwebhook=${global1.url}\nwebhook=${global2.url}`)
    await hooked.start()
  })

  const paidAndCalled = async (form: Record<string, string | number>, ...receivers: Receiver[]): Promise<string> => {
    const paymentHash = await paidInvoice(hooked, form)
    for (const one of receivers) await eventually(() => hashesAt(one).includes(paymentHash), 'the call')
    return paymentHash
  }

  test('S53: a JSON POST, signed over the raw body with the secret, with nulls included', async () => {
    const paymentHash = await paidAndCalled({ amountSat: 21 }, global1)
    const call = global1.calls.find(({ event }) => event.paymentHash === paymentHash)
    expect(call?.method).toBe('POST')
    expect(call?.path).toBe('/hook')
    expect(call?.headers['content-type']).toBe('application/json')
    const signature = createHmac('sha256', WEBHOOK_SECRET)
      .update(call?.raw ?? '')
      .digest('hex')
    expect(call?.headers['x-phoenix-signature']).toBe(signature)
    expect(call?.event).toEqual({
      type: 'payment_received',
      timestamp: expect.any(Number),
      amountSat: 21,
      paymentHash,
      externalId: null,
      payerNote: null,
      payerKey: null,
    })
    expect(call?.raw.toString()).toContain('\n    "externalId": null,\n')
  })

  test('S53: the signature covers the UTF-8 bytes of text beyond ASCII', async () => {
    const paymentHash = await paidAndCalled({ externalId: 'ключ ₿ 😀' }, global1)
    const call = global1.calls.find(({ event }) => event.paymentHash === paymentHash)
    expect(call?.event.externalId).toBe('ключ ₿ 😀')
    expect(call?.headers['content-length']).toBe(String(call?.raw.length))
    const signature = createHmac('sha256', WEBHOOK_SECRET)
      .update(call?.raw ?? '')
      .digest('hex')
    expect(call?.headers['x-phoenix-signature']).toBe(signature)
  })

  test('S53: only one attempt, even if the receiver returns 500 or closes the connection', async () => {
    failingHashes = []
    closingHashes = []
    for (let round = 0; round < 2; round++) {
      failingHashes.push(await paidAndCalled({ webhookUrl: failing.url }, failing))
      closingHashes.push(await paidAndCalled({ webhookUrl: closing.url }, closing))
    }
    // Calls to one URL are sequential, so a second attempt for the first event would have come before the second event.
    expect(hashesAt(failing)).toEqual(failingHashes)
    expect(hashesAt(closing)).toEqual(closingHashes)
    await eventually(() => /webhook failure: /.test(readText(join(hooked.dataDir, 'phoenix.log'))), 'a line in the log')
  })

  test("S54: every global webhook and the invoice's own webhook fire once each; without its own, only the global ones", async () => {
    const own = await receiver()
    const withOwn = await paidAndCalled({ webhookUrl: own.url }, own, global1, global2)
    const without = await paidAndCalled({}, global1, global2)
    for (const one of [global1, global2]) expect(hashesAt(one).filter((hash) => hash === withOwn)).toHaveLength(1)
    expect(hashesAt(own)).toEqual([withOwn])
    expect(hashesAt(global2)).toContain(without)
  })

  test('nothing is called for an unpaid invoice', async () => {
    const own = await receiver()
    const unpaid = await hooked.invoice({ amountSat: 10, webhookUrl: own.url })
    await paidAndCalled({}, global1, global2)
    const later = await paidAndCalled({ webhookUrl: own.url }, own)
    expect(hashesAt(own)).toEqual([later])
    expect(hashesAt(global1)).not.toContain(unpaid.paymentHash)
  })

  test("the invoice's own webhook survives a restart of the node", async () => {
    const own = await receiver()
    const invoice = await hooked.invoice({ amountSat: 10, webhookUrl: own.url })
    await hooked.restart()
    await payFromOutside(invoice.serialized)
    await eventually(() => hashesAt(own).length > 0, 'the call')
    expect(hashesAt(own)).toEqual([invoice.paymentHash])
  })

  test('a hanging receiver delays only its own calls', async () => {
    // Each call to the hanging receiver takes 10 s, so all of them take longer than the test waits for the other receivers.
    hangingHashes = []
    for (let count = 0; count < 20; count++) hangingHashes.push(await paidInvoice(hooked, { webhookUrl: hanging.url }))
    await eventually(() => hangingHashes.every((hash) => hashesAt(global1).includes(hash)), 'the other calls')
    expect(hanging.calls.length).toBeLessThan(hangingHashes.length)
  })

  describe('go only to the callback, and to loopback if enabled', () => {
    const own = Object.values(networkInterfaces())
      .flat()
      .find((address) => address?.family === 'IPv4' && !address.internal)?.address
    const elsewhere = own ?? '192.0.2.1'
    const decimal = elsewhere.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
    let everywhere: Receiver
    let guarded: TestNode
    /** A node with the options that the service uses for its nodes. */
    let strict: TestNode

    beforeAll(async () => {
      everywhere = await receiver(undefined, '0.0.0.0')
      // A test cannot rely on real host names, so the daemon uses a fake resolver.
      const resolver = join(temporaryDirectory(), 'resolver.cjs')
      writeFileSync(
        resolver,
        `const dns = require('node:dns')
        const real = dns.lookup
        const names = {
          'elsewhere.test': [{ address: ${JSON.stringify(elsewhere)}, family: 4 }],
          'loopback.test': [{ address: '127.0.0.1', family: 4 }],
          'localhost': [{ address: '::1', family: 6 }, { address: '127.0.0.1', family: 4 }],
        }
        dns.lookup = (name, options, callback) => {
          const found = names[name]
          if (!found) return real(name, options, callback)
          if (options.all) return process.nextTick(callback, null, found)
          process.nextTick(callback, null, found[0].address, found[0].family)
        }`,
      )
      const env = { NODE_OPTIONS: `--require=${resolver}` }
      guarded = await new TestNode({ hub, env, conf: TO_LOOPBACK }).start()
      strict = await new TestNode({ hub, env }).start()
    })

    const failures = (node = guarded): number =>
      readText(join(node.dataDir, 'phoenix.log')).match(/webhook failure: /g)?.length ?? 0

    test.each([
      { title: 'the address of another interface', host: elsewhere },
      { title: 'that address as one number', host: String(decimal) },
      { title: 'that address in hex', host: `0x${decimal.toString(16)}` },
      { title: 'that address as IPv6', host: `[::ffff:${elsewhere}]` },
      { title: 'a name of that address', host: 'elsewhere.test' },
      { title: 'a documentation address', host: '192.0.2.1' },
      { title: 'a private address', host: '10.0.0.1' },
      { title: 'the metadata address of clouds', host: '169.254.169.254' },
      { title: 'the wildcard address', host: '0.0.0.0' },
      { title: 'the IPv6 wildcard address', host: '[::]' },
      { title: 'an IPv6 address', host: '[fd00::2]' },
    ])('$title ($host) is never called', async ({ host }) => {
      const before = failures()
      await paidInvoice(guarded, { webhookUrl: `http://${host}:${everywhere.port}/` })
      await eventually(() => failures() > before, 'the failure in the log')
      const lines = readText(join(guarded.dataDir, 'phoenix.log')).split('\n')
      const last = lines.findLast((line) => line.includes('webhook failure: '))
      expect(last).toContain('webhook failure: a sandbox node calls only the URL in sandbox-callback')
      expect(everywhere.calls).toEqual([])
    })

    test.each(['ftp://127.0.0.1/', 'file:///etc/passwd', 'data:text/plain,x', 'javascript:1'])(
      '%s is not called, and only causes a line in the log',
      async (webhookUrl) => {
        const before = failures()
        await paidInvoice(guarded, { webhookUrl })
        await eventually(() => failures() > before, 'the failure in the log')
      },
    )

    test.each(['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', 'loopback.test', 'localhost'])(
      'security 12: %s is not called unless loopback is enabled',
      async (host) => {
        const here = await receiver()
        const before = failures(strict)
        await paidInvoice(strict, { webhookUrl: `http://${host}:${here.port}/` })
        await eventually(() => failures(strict) > before, 'the failure in the log')
        expect(here.calls).toEqual([])
      },
    )

    test.each([
      { host: '127.0.0.1' },
      { host: '127.1.2.3' },
      { host: '2130706433' },
      { host: '[::ffff:127.0.0.1]' },
      { host: 'loopback.test' },
      { host: 'localhost' },
    ])('$host is loopback and is called', async ({ host }) => {
      const here = await receiver(undefined, host === '127.1.2.3' ? host : '127.0.0.1')
      const paymentHash = await paidInvoice(guarded, { webhookUrl: `http://${host}:${here.port}/` })
      await eventually(() => hashesAt(here).length > 0, 'the call')
      expect(hashesAt(here)).toEqual([paymentHash])
    })

    test('[::1] is loopback and is called', async () => {
      const here = await receiver(undefined, '::1')
      const paymentHash = await paidInvoice(guarded, { webhookUrl: `http://[::1]:${here.port}/` })
      await eventually(() => hashesAt(here).length > 0, 'the call')
      expect(hashesAt(here)).toEqual([paymentHash])
    })

    if (own === undefined)
      process.stderr.write('\n### SKIPPED: a callback at an address beside loopback: this machine has none ###\n\n')
    test.skipIf(own === undefined)(
      "the service's callback may have any address, but no other origin at that address is called",
      async () => {
        const service = await receiver(undefined, '0.0.0.0')
        const conf = { 'sandbox-callback': `http://${elsewhere}:${service.port}/any/path` }
        const node = await new TestNode({ hub, conf }).start()
        const paymentHash = await paidInvoice(node, { webhookUrl: `http://${elsewhere}:${service.port}/internal/settled/1` })
        await eventually(() => hashesAt(service).length > 0, 'the call')
        expect([hashesAt(service), service.calls[0]?.path]).toEqual([[paymentHash], '/internal/settled/1'])
        await paidInvoice(node, { webhookUrl: `http://${elsewhere}:${everywhere.port}/` })
        await eventually(() => /webhook failure: /.test(readText(join(node.dataDir, 'phoenix.log'))), 'the failure in the log')
        expect(everywhere.calls).toEqual([])
      },
    )

    test.each([301, 302, 303, 307, 308])('a redirect (%i) is not followed', async (status) => {
      const target = await receiver()
      const redirecting = await receiver((_request, response) => {
        response.writeHead(status, { location: target.url })
        response.end()
      })
      await paidInvoice(guarded, { webhookUrl: redirecting.url })
      await eventually(() => redirecting.calls.length === 1, 'the first call')
      await paidInvoice(guarded, { webhookUrl: redirecting.url })
      await eventually(() => redirecting.calls.length === 2, 'the second call')
      expect(target.calls).toEqual([])
    })
  })

  test('in total, nothing was sent twice, and the hanging receiver got its second event after 10 s', async () => {
    expect(hashesAt(failing)).toEqual(failingHashes)
    expect(hashesAt(closing)).toEqual(closingHashes)
    await eventually(() => hanging.calls.length >= 2, 'the second call')
    const called = hashesAt(hanging)
    expect(called).toEqual(hangingHashes.slice(0, called.length))
  })

  test('the websocket was pinged every 10 s', async () => {
    const first = await eventually(() => pings[0], 'a ping')
    expect(first.afterMs).toBeLessThan(100_000)
    const elapsedMs = Date.now() - openedAt
    expect(pings.length).toBeLessThanOrEqual(1 + elapsedMs / 10_000)
    expect(first.text).toMatch(/^\[ping [0-9a-f]{64} ping\]$/)
    expect(sockets[0]?.readyState).toBe(WebSocket.OPEN)
    expect(everything.length).toBeGreaterThan(20)
  })
})

describe('what the log and the console never show', () => {
  const shownBy = (daemon: Daemon, dataDir?: string): string =>
    daemon.stdout + daemon.stderr + (dataDir ? readText(join(dataDir, 'phoenix.log')) : '')

  test('passwords, secrets, tokens, words, preimages and invoices, also with --verbose', async () => {
    const loud = await new TestNode({ hub, args: ['--verbose'], conf: TO_LOOPBACK }).start()
    await hub.fund(loud, 1000)
    const hook = await receiver((request) => request.socket.destroy())
    const invoice = await loud.invoice({ amountSat: 10, webhookUrl: `${hook.url}/secret-in-the-path` })
    await payer.pay(invoice.serialized)
    const sent = await loud.pay((await payee.invoice({ amountSat: 5 })).serialized)
    await loud.get('/getinfo', 'a-wrong-password')
    await loud.post('/payinvoice', { invoice: 'lnbcrt1nonsense' })
    await loud.control('fund', { amountSat: 1 }, 'a-wrong-token')
    await eventually(() => hook.calls.length > 0, 'the call')
    const first = loud.daemon
    await loud.restart('SIGTERM')
    const { preimage } = await loud.incoming(invoice.paymentHash)
    const secrets = {
      FULL,
      LIMITED,
      WEBHOOK_SECRET,
      control: 'c'.repeat(64),
      hubToken: hub.nodeToken,
      hubControl: hub.controlToken,
      preimage,
      sentPreimage: sent.paymentPreimage,
      invoice: invoice.serialized,
      wrongPassword: 'a-wrong-password',
      wrongToken: 'a-wrong-token',
      path: 'secret-in-the-path',
    }
    expect(preimage).toMatch(/^[0-9a-f]{64}$/)
    const shown = shownBy(first) + shownBy(loud.daemon, loud.dataDir)
    expect(shownBy(first)).toContain('received lightning payment: 10 sat')
    for (const [name, secret] of Object.entries(secrets)) {
      expect(shown.includes(secret), `${name} is in the log of the node`).toBe(false)
      expect(shownBy(hub.daemon).includes(secret), `${name} is on the console of the hub`).toBe(false)
    }
    for (const node of [loud, payer, payee]) {
      const text = shownBy(node.daemon, node.dataDir)
      const words = node.words.split(' ')
      expect(text).not.toContain(words.slice(0, 2).join(' '))
      expect(words.filter((word) => new RegExp(`\\b${word}\\b`).test(text)).length).toBeLessThan(4)
    }
  })

  test('secrets generated on a first run', async () => {
    const dataDir = temporaryDirectory()
    const args = ['--agree-to-terms-of-service', `--http-bind-port=${await freePort()}`]
    const daemon = new Daemon({ args, env: { PHOENIX_DATADIR: dataDir } })
    await daemon.printed(/listening on http/)
    const shown = shownBy(daemon, dataDir)
    const made = [...readText(join(dataDir, 'phoenix.conf')).matchAll(/=([0-9a-f]{64})$/gm)].map(([, secret]) => secret ?? '')
    expect(made.length).toBeGreaterThanOrEqual(3)
    for (const secret of made) expect(shown).not.toContain(secret)
    expect(shown).not.toContain(readText(join(dataDir, 'seed.dat')))
  })

  test('a seed or password on the command line', async () => {
    const dataDir = temporaryDirectory()
    writeFileSync(join(dataDir, 'phoenix.conf'), confText({ 'webhook-secret': 'hush-hush' }))
    const seed = 'legal winner thank year wave sausage worth useful legal winner thank yellow'
    const args = [`--seed=${seed}`, '--http-password=hunter2', '--verbose', `--http-bind-port=${await freePort()}`]
    const daemon = new Daemon({ args, env: { PHOENIX_DATADIR: dataDir } })
    await daemon.printed(/listening on http/)
    expect(shownBy(daemon, dataDir)).not.toMatch(/legal winner|sausage|hunter2|hush-hush/)
  })
})
