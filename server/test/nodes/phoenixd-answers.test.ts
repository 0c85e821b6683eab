import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { FULL, LIMITED, startNetwork, type TestNode } from '../../../sandboxd/test/harness.ts'
import {
  balanceOf,
  createInvoice,
  findIncoming,
  getInfo,
  hasFunds,
  type InvoiceParams,
} from '../../src/lightning/phoenixd/client.ts'
import { listReceived } from '../../src/lightning/phoenixd/received.ts'
import { IDLE_CONNECTION_MS, type NodeAddress } from '../../src/platform/node-agent.ts'
import { eventually, freePort } from '../support/server.ts'

type ChannelAnswer = { state?: unknown; balanceSat?: unknown } | null

const HEIGHT = 800_000
const infoWith = (channels: ChannelAnswer[], blockHeight: unknown) => ({
  nodeId: 'ab',
  channels,
  chain: 'mainnet',
  blockHeight,
  version: '0.8.0',
})

/** `funds` and `sat` are the expected results; undefined means unknown. A row without a height has HEIGHT. */
const CHANNELS: [
  name: string,
  channels: ChannelAnswer[],
  funds: boolean | undefined,
  sat: number | undefined,
  height?: unknown,
][] = [
  ['no channel', [], false, 0],
  ['a channel with money', [{ state: 'Normal', balanceSat: 1 }], true, 1],
  ['a channel without money', [{ state: 'Normal', balanceSat: 0 }], false, 0],
  ['no channel, but no block height either: not restored yet', [], undefined, undefined, undefined],
  ['an empty channel and no block height', [{ state: 'Normal', balanceSat: 0 }], undefined, undefined, undefined],
  ['a channel with money and no block height', [{ state: 'Normal', balanceSat: 7 }], true, undefined, undefined],
  ['an invalid block height', [], undefined, undefined, 'soon'],
  ['a channel that is offline', [{ state: 'Offline(Normal)' }], undefined, undefined],
  ['a channel that is syncing, as after each start', [{ state: 'Syncing(Normal)' }], undefined, undefined],
  [
    'a syncing channel and an empty one',
    [{ state: 'Normal', balanceSat: 0 }, { state: 'Syncing(Normal)' }],
    undefined,
    undefined,
  ],
  ['a syncing channel and one with money', [{ state: 'Syncing(Normal)' }, { state: 'Normal', balanceSat: 5 }], true, undefined],
  ['an offline channel with a balance', [{ state: 'Offline(Normal)', balanceSat: 5 }], true, 5],
  ['a refused opening', [{ state: 'Aborted' }], false, 0],
  ['a refused opening and a channel with money', [{ state: 'Aborted' }, { state: 'Normal', balanceSat: 176_500 }], true, 176_500],
  ['a refused opening and an offline channel', [{ state: 'Aborted' }, { state: 'Offline(Normal)' }], undefined, undefined],
  ['aborted with a balance', [{ state: 'Aborted', balanceSat: 3 }], true, 3],
  ['closing with money', [{ state: 'Negotiating', balanceSat: 9 }], true, 9],
  [
    'a closing channel and one with money',
    [
      { state: 'Normal', balanceSat: 4 },
      { state: 'Negotiating', balanceSat: 0 },
    ],
    true,
    4,
  ],
  ['closing without money', [{ state: 'Closing', balanceSat: 0 }], false, 0],
  ['closing, without a balance field', [{ state: 'Closing' }], true, undefined],
  ['opening, without a balance field', [{ state: 'WaitForFundingCreated' }], true, undefined],
  ['an unknown state', [{ state: 'Hibernating' }], true, undefined],
  ['an unknown state with balance 0', [{ state: 'Hibernating', balanceSat: 0 }], true, 0],
  ['an unknown state that begins like a known one', [{ state: 'Offlineish' }], true, undefined],
  ['a balance that is not a number', [{ state: 'Normal', balanceSat: '12' }], true, undefined],
  ['a negative balance', [{ state: 'Normal', balanceSat: -1 }], true, undefined],
  ['a channel that is not an object', [null], true, undefined],
  ['a channel without a state', [{}], true, undefined],
]

describe('C26: what is known about funds', () => {
  test.each(CHANNELS)('%s', async (...row) => {
    const [, channels, funds, sat] = row
    const blockHeight = row.length > 4 ? row[4] : HEIGHT
    const server = createHttpServer((_request, response) => {
      response.end(JSON.stringify(infoWith(channels, blockHeight)))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const answer = await getInfo({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }, FULL, LIMIT_MS)
    server.close()
    if (answer.answer !== 'info') throw new Error(answer.answer)
    expect([hasFunds(answer.info), balanceOf(answer.info)]).toEqual([funds, sat])
  })
})

/** So long that only a missing answer reaches it. */
const LIMIT_MS = 120_000
const HASH = 'ab'.repeat(32)
const PREIMAGE = 'cd'.repeat(32)
const INVOICE = 'lnbcrt1secretinvoice'
const wish: InvoiceParams = {
  amountSat: 21,
  description: 'a coffee',
  expirySeconds: 300,
  externalId: 'pay_1',
  webhookUrl: 'http://127.0.0.1:1/callback',
}
const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')

describe('a daemon', () => {
  let payer: TestNode
  let payee: TestNode
  let address: NodeAddress
  beforeAll(async () => {
    ;({ payer, payee } = await startNetwork())
    address = { host: '127.0.0.1', port: payee.port }
  })
  const create = async (changes: Partial<InvoiceParams> = {}) => {
    const answer = await createInvoice(address, LIMITED, { ...wish, ...changes }, LIMIT_MS)
    if (answer.answer !== 'invoice') throw new Error(JSON.stringify(answer))
    return { ...answer, read: readInvoice(answer.serialized) }
  }

  test('C34: creates the requested invoice, which passes our checks', async () => {
    const beforeSeconds = Math.floor(Date.now() / 1000)
    const { paymentHash, read } = await create()
    expect(read).toEqual({
      network: 'regtest',
      amountMsat: 21_000,
      paymentHash,
      description: 'a coffee',
      descriptionHash: undefined,
      timestampSeconds: expect.any(Number),
      expirySeconds: 300,
    })
    expect(read?.timestampSeconds).toBeGreaterThanOrEqual(beforeSeconds)
    expect(read?.timestampSeconds).toBeLessThanOrEqual(Date.now() / 1000)
    expect((await payee.incoming(paymentHash)).externalId).toBe('pay_1')
  })

  test.each([
    ['128 letters', 'a'.repeat(128)],
    ['128 units in 64 code points', '😀'.repeat(64)],
    ['128 units in 384 bytes', '漢'.repeat(128)],
    ['characters that a form must escape', 'a&b=c+d%20e\u00a0f "é" #?;/\\'],
  ])('C35: a short description is in the invoice: %s', async (_name, description) => {
    expect((await create({ description })).read).toMatchObject({ description, descriptionHash: undefined })
  })

  test.each([
    ['129 letters', 'a'.repeat(129)],
    ['130 units in 65 code points', '😀'.repeat(65)],
    ['500 code points', '漢😀'.repeat(250)],
  ])('C35: a long description is in the invoice as the hash of its UTF-8 bytes: %s', async (_name, description) => {
    expect((await create({ description })).read).toMatchObject({
      description: undefined,
      descriptionHash: sha256(description),
    })
  })

  test('reports a payment as unpaid, as paid with its time, or as unknown; never a preimage', async () => {
    const { paymentHash, serialized } = await create()
    const find = (hash: string) => findIncoming(address, LIMITED, hash, LIMIT_MS)
    expect(await find(paymentHash)).toStrictEqual({ answer: 'incoming', isPaid: false, completedAtMs: undefined })
    await payer.pay(serialized)
    const { completedAt } = await payee.incoming(paymentHash)
    expect(completedAt).toEqual(expect.any(Number))
    expect(await find(paymentHash)).toStrictEqual({ answer: 'incoming', isPaid: true, completedAtMs: completedAt })
    expect(await find(HASH)).toStrictEqual({ answer: 'unknown' })
    const received = (fromMs: number, toMs?: number) => listReceived(address, LIMITED, { fromMs, toMs, offset: 0 }, LIMIT_MS)
    const payments = [{ paymentHash, amountSat: 21, completedAtMs: completedAt }]
    expect(await received(completedAt)).toStrictEqual({ answer: 'received', payments, isLastPage: true })
    expect(await received(completedAt, completedAt)).toStrictEqual({ answer: 'received', payments, isLastPage: true })
    expect(await received(completedAt + 1)).toStrictEqual({ answer: 'received', payments: [], isLastPage: true })
    // An invalid hash must not change the path into that of another call.
    expect(await find('../../getinfo')).toStrictEqual(refusedWith(400))
  })

  test('refuses a wrong password and an invalid amount', async () => {
    expect(await createInvoice(address, 'wrong', wish, LIMIT_MS)).toEqual(refusedWith(401))
    expect(await findIncoming(address, 'wrong', HASH, LIMIT_MS)).toEqual(refusedWith(401))
    expect(await getInfo({ host: '127.0.0.1', port: payee.port }, 'wrong', LIMIT_MS)).toEqual({ answer: 'wrong password' })
    expect(await createInvoice(address, LIMITED, { ...wish, amountSat: 1.5 }, LIMIT_MS)).toEqual(refusedWith(400))
    expect(await findIncoming(address, LIMITED, 'short', LIMIT_MS)).toEqual(refusedWith(400))
  })

  test('is identified by its answer to getinfo', async () => {
    const answer = await getInfo({ host: '127.0.0.1', port: payee.port }, FULL, LIMIT_MS)
    expect(answer).toMatchObject({ answer: 'info', info: { nodeId: payee.nodeId } })
  })
})

const refusedWith = (status: number) => ({ answer: 'refused', why: `the node answered with status ${status}` })

const open: { server: Server; sockets: Set<Socket> }[] = []
afterEach(async () => {
  for (const { server, sockets } of open.splice(0)) {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  }
})

type Fake = NodeAddress & { connections: () => number; openNow: () => number }

async function listening(server: Server): Promise<Fake> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  open.push({ server, sockets })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { host: '127.0.0.1', port, connections: () => connections, openNow: () => sockets.size }
}

const fake = (listener: RequestListener): Promise<Fake> => listening(createHttpServer(listener))
/** A server that gives the same response to every request. */
const saying = (status: number, body: unknown, headers: Record<string, string> = {}): Promise<Fake> =>
  fake((request, response) => {
    request.resume()
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
  })

const made = { amountSat: 21, paymentHash: HASH, serialized: INVOICE }
const unpaid = { type: 'incoming_payment', paymentHash: HASH, preimage: PREIMAGE, isPaid: false, createdAt: 1 }
const paid = { ...unpaid, isPaid: true, completedAt: 1_700_000_000_000 }
const invoiceFrom = (address: NodeAddress, timeoutMs = LIMIT_MS) => createInvoice(address, 'p', wish, timeoutMs)
const incomingFrom = (address: NodeAddress, timeoutMs = LIMIT_MS) => findIncoming(address, 'p', HASH, timeoutMs)
const infoFrom = (address: NodeAddress, timeoutMs = LIMIT_MS) => getInfo(address, 'p', timeoutMs)
const all = (address: NodeAddress, timeoutMs?: number) =>
  Promise.all([invoiceFrom(address, timeoutMs), incomingFrom(address, timeoutMs), infoFrom(address, timeoutMs)])

describe('valid and invalid answers', () => {
  test('only the invoice and its hash are taken from the answer', async () => {
    expect(await invoiceFrom(await saying(200, { ...made, preimage: PREIMAGE }))).toStrictEqual({
      answer: 'invoice',
      serialized: INVOICE,
      paymentHash: HASH,
    })
  })

  const notAnInvoice: [string, unknown][] = [
    ['nothing', ''],
    ['text', 'Not found'],
    ['half of the answer', JSON.stringify(made).slice(0, -1)],
    ['null', null],
    ['a list', [made]],
    ['a text in JSON', JSON.stringify(INVOICE)],
    ['no invoice', { paymentHash: HASH }],
    ['an invoice that is not text', { ...made, serialized: { toString: INVOICE } }],
    ['no hash', { serialized: INVOICE }],
    ['a hash that is not text', { ...made, paymentHash: [HASH] }],
    ['a hash that is short', { ...made, paymentHash: HASH.slice(1) }],
    ['a hash in capitals', { ...made, paymentHash: HASH.toUpperCase() }],
    ['a hash and a line', { ...made, paymentHash: `${HASH}\n` }],
  ]
  test.each(notAnInvoice)('C34: refused: not an invoice, but %s', async (_name, body) => {
    expect(await invoiceFrom(await saying(200, body))).toStrictEqual({ answer: 'refused', why: 'the answer is not an invoice' })
  })

  const notThisPayment: [string, unknown][] = [
    ['nothing', ''],
    ['null', null],
    ['a list', [paid]],
    ['no isPaid', { ...paid, isPaid: undefined }],
    ['isPaid as text', { ...paid, isPaid: 'true' }],
    ['isPaid as a number', { ...paid, isPaid: 1 }],
    ['no hash', { ...paid, paymentHash: undefined }],
    ['another payment, which is paid', { ...paid, paymentHash: 'ef'.repeat(32) }],
  ]
  test.each(notThisPayment)('refused: not this payment, but %s', async (_name, body) => {
    expect(await incomingFrom(await saying(200, body))).toStrictEqual({
      answer: 'refused',
      why: 'the response has another payment hash or no valid isPaid',
    })
  })

  test.each([undefined, null, 0, -1, 1.5, '1700000000000', 2 ** 53, true, [1]])(
    'refused: paid, but at %j, which is not a time',
    async (completedAt) => {
      const answer = await incomingFrom(await saying(200, { ...paid, completedAt }))
      expect(answer).toStrictEqual({ answer: 'refused', why: 'the payment is paid but has no valid time' })
    },
  )

  test('an unpaid payment is unpaid, whatever its time; a paid one has the given time', async () => {
    const answer = await incomingFrom(await saying(200, { ...unpaid, completedAt: 1 }))
    expect(answer).toStrictEqual({ answer: 'incoming', isPaid: false, completedAtMs: undefined })
    expect(await incomingFrom(await saying(200, paid))).toStrictEqual({
      answer: 'incoming',
      isPaid: true,
      completedAtMs: 1_700_000_000_000,
    })
  })

  const notReceived: [string, unknown, string][] = [
    ['not a list', { payments: [paid] }, 'the answer is not a list'],
    ['an unpaid payment', [paid, unpaid], 'the list contains an entry that is not a received payment'],
    ['a payment without a time', [{ ...paid, completedAt: null }], 'the list contains an entry that is not a received payment'],
    ['an invalid hash', [{ ...paid, paymentHash: 'ab' }], 'the list contains an entry that is not a received payment'],
  ]
  test.each(notReceived)('refused as a whole: a list of received payments with %s', async (_name, body, why) => {
    const answer = await listReceived(await saying(200, body), 'p', { fromMs: 0, offset: 0 }, LIMIT_MS)
    expect(answer).toStrictEqual({ answer: 'refused', why })
  })

  test.each([201, 204, 301, 400, 401, 403, 415, 500, 502, 504])('refused: status %i with any body', async (status) => {
    for (const [body, ask] of [
      [made, invoiceFrom],
      [paid, incomingFrom],
    ] as const)
      expect(await ask(await saying(status, body))).toStrictEqual(refusedWith(status))
  })

  test('a missing payment is unknown; a missing invoice is refused', async () => {
    const address = await saying(404, 'Not found')
    expect(await incomingFrom(address)).toStrictEqual({ answer: 'unknown' })
    expect(await invoiceFrom(address)).toStrictEqual(refusedWith(404))
  })

  test('a redirect is not followed, because it would carry the password', async () => {
    const elsewhere = await saying(200, made)
    for (const status of [301, 302, 303, 307, 308]) {
      const address = await saying(status, made, { location: `http://127.0.0.1:${elsewhere.port}/createinvoice` })
      expect(await invoiceFrom(address)).toEqual(refusedWith(status))
      expect(await incomingFrom(address)).toEqual(refusedWith(status))
    }
    expect(elsewhere.connections()).toBe(0)
  })

  test('the reason of a refusal is in our own words: no password, preimage or invoice', async () => {
    const echo = await fake(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const told = `${request.headers.authorization} ${PREIMAGE} ${INVOICE} ${body}`
      response.writeHead(400, encodeURIComponent(told), { 'x-told': encodeURIComponent(told) }).end(told)
    })
    const nonsense = await saying(200, { serialized: 1, paymentHash: INVOICE, preimage: PREIMAGE, isPaid: PREIMAGE })
    for (const address of [echo, nonsense])
      for (const answer of [await invoiceFrom(address), await incomingFrom(address)]) {
        expect(answer).toEqual({
          answer: 'refused',
          why: expect.stringMatching(/^the (node|answer|response) [a-zA-Z0-9 ]{1,60}$/),
        })
      }
  })

  test('the request is a form with the password and a content length, and nothing else', async () => {
    const seen: { method: string | undefined; url: string | undefined; headers: NodeJS.Dict<unknown>; body: string }[] = []
    const address = await fake(async (request, response) => {
      const { method, url, headers } = request
      let body = ''
      for await (const chunk of request) body += chunk
      seen.push({ method, url, headers, body })
      response.end(JSON.stringify({ ...made, ...unpaid }))
    })
    await invoiceFrom(address)
    await incomingFrom(address)
    const authorization = `Basic ${Buffer.from(':p').toString('base64')}`
    expect(seen).toMatchObject([
      {
        method: 'POST',
        url: '/createinvoice',
        headers: { authorization, 'content-type': 'application/x-www-form-urlencoded', 'content-length': expect.any(String) },
      },
      { method: 'GET', url: `/payments/incoming/${HASH}`, headers: { authorization } },
    ])
    expect(Object.fromEntries(new URLSearchParams(seen[0]?.body))).toEqual({ ...wish, amountSat: '21', expirySeconds: '300' })
    expect(seen[1]?.body).toBe('')
    expect(seen[1]?.headers).not.toHaveProperty('content-type')
  })
})

describe('a node that does not respond', () => {
  test('nothing listens', async () => {
    const address = { host: '127.0.0.1', port: await freePort() }
    expect(await all(address)).toEqual([{ answer: 'unreachable' }, { answer: 'unreachable' }, { answer: 'refused' }])
  })

  const unreachable = [{ answer: 'unreachable' }, { answer: 'unreachable' }, { answer: 'silent' }]
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'

  test.each<[string, (socket: Socket) => void]>([
    ['accepts the connection and sends nothing', () => undefined],
    ['sends half of its headers', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-')],
    ['sends headers and no body', (socket) => socket.write(`${head}content-length: 10\r\n\r\n`)],
    ['sends endless headers, byte by byte', (socket) => trickle(socket, `${head}x-slow: `, 'a')],
    [
      'sends an endless body, byte by byte',
      (socket) => trickle(socket, `${head}transfer-encoding: chunked\r\n\r\n`, '1\r\n \r\n'),
    ],
    ['sends 102 Processing again and again', (socket) => trickle(socket, '', 'HTTP/1.1 102 Processing\r\n\r\n')],
  ])('C34: the timeout covers everything: a node that %s', async (_name, reply) => {
    const address = await listening(createServer((socket) => socket.once('data', () => reply(socket))))
    const before = performance.now()
    expect(await all(address, 300)).toEqual(unreachable)
    expect(performance.now() - before).toBeGreaterThan(250)
    expect(performance.now() - before).toBeLessThan(60_000)
    await eventually(() => address.openNow() === 0, 'the connections to be closed')
  })

  test.each<[string, (socket: Socket) => void]>([
    ['at once', (socket) => socket.end()],
    ['with a reset', (socket) => socket.resetAndDestroy()],
    ['within the head', (socket) => socket.end('HTTP/1.1 200 O')],
    ['within the body', (socket) => socket.end(`${head}content-length: 1000\r\n\r\n${JSON.stringify(made)}`)],
    ['within a chunk', (socket) => socket.end(`${head}transfer-encoding: chunked\r\n\r\nff\r\n${JSON.stringify(made)}`)],
  ])('closes the connection %s: unreachable at once, and not asked again', async (_name, reply) => {
    const address = await listening(createServer((socket) => socket.once('data', () => reply(socket))))
    const before = performance.now()
    expect(await all(address)).toEqual(unreachable)
    expect(performance.now() - before).toBeLessThan(LIMIT_MS / 2)
    expect(address.connections()).toBe(3)
  })

  test.each<[string, string, string]>([
    ['is not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', 'not HTTP'],
    ['is an upgrade that was not requested', 'HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n', 'not HTTP'],
    ['has endless headers', `${head}${'x-large: a\r\n'.repeat(20_000)}`, 'not HTTP'],
    ['has an endless body', `${head}\r\n${' '.repeat(2 * 1024 * 1024)}`, 'too large'],
  ])('its answer %s: refused, long before the timeout', async (_name, bytes, why) => {
    const address = await listening(createServer((socket) => socket.once('data', () => socket.write(bytes))))
    const before = performance.now()
    const refused = { answer: 'refused', why: `the answer is ${why}` }
    expect(await all(address)).toEqual([refused, refused, { answer: 'silent' }])
    expect(performance.now() - before).toBeLessThan(LIMIT_MS / 2)
    await eventually(() => address.openNow() === 0, 'the connections to be closed')
  })

  test('one mebibyte is read, a byte more is not', async () => {
    const padded = (size: number): string => JSON.stringify(made).padEnd(size)
    expect(await invoiceFrom(await saying(200, padded(1024 * 1024)))).toMatchObject({ answer: 'invoice' })
    expect(await invoiceFrom(await saying(200, padded(1024 * 1024 + 1)))).toEqual({
      answer: 'refused',
      why: 'the answer is too large',
    })
  })

  test('characters split across packets are decoded correctly', async () => {
    const bytes = Buffer.from(JSON.stringify({ ...made, serialized: '漢' }))
    const at = bytes.indexOf(Buffer.from('漢')) + 1
    const address = await fake(async (_request, response) => {
      response.write(bytes.subarray(0, at))
      await new Promise((resolve) => setTimeout(resolve, 50))
      response.end(bytes.subarray(at))
    })
    expect(await invoiceFrom(address)).toMatchObject({ serialized: '漢' })
  })

  test('a slow node exhausts only its own connections, does not look silent, and waiting requests keep their timeout', async () => {
    const waiting: ServerResponse[] = []
    const slow = await fake((request, response) => {
      if (request.url === '/getinfo') response.end(JSON.stringify(infoWith([], HEIGHT)))
      else waiting.push(response)
    })
    const quick = await saying(200, made)
    const stuck = Array.from({ length: 32 }, () => invoiceFrom(slow))
    await eventually(() => waiting.length === 32, 'thirty-two requests')
    const before = performance.now()
    expect(await invoiceFrom(slow, 300)).toEqual({ answer: 'unreachable' })
    expect(performance.now() - before).toBeLessThan(LIMIT_MS / 2)
    expect(slow.connections()).toBe(32)
    expect(await invoiceFrom(quick)).toMatchObject({ answer: 'invoice' })
    expect(await infoFrom(slow)).toMatchObject({ answer: 'info' })
    const next = invoiceFrom(slow)
    for (const response of waiting.splice(0)) response.end(JSON.stringify(made))
    for (const answer of await Promise.all(stuck)) expect(answer).toMatchObject({ answer: 'invoice' })
    // The waiting request that timed out is never sent, but the one after it is.
    await eventually(() => waiting.length === 1, 'the next request')
    waiting[0]?.end(JSON.stringify(made))
    expect(await next).toMatchObject({ answer: 'invoice' })
  })
})

describe('connections are kept', () => {
  const http = (body: unknown): string => {
    const text = JSON.stringify(body)
    return `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`
  }

  /** A daemon that handles each request, on whatever connection, with the next of these replies. */
  async function daemon(...replies: ((socket: Socket) => void)[]): Promise<Fake & { requests: () => number }> {
    let requests = 0
    const address = await listening(
      createServer((socket) =>
        socket.on('data', () => {
          requests += 1
          replies[Math.min(requests, replies.length) - 1]?.(socket)
        }),
      ),
    )
    return { ...address, requests: () => requests }
  }
  const answers = (socket: Socket): void => void socket.write(http(made))
  const closes = (socket: Socket): void => void socket.end()
  const resets = (socket: Socket): void => void socket.resetAndDestroy()

  test('sequential requests share one, and we close it before a daemon would', async () => {
    const address = await daemon(answers)
    const before = performance.now()
    // Even if the machine stalls, no idle timer can fire between an answer and the next request: both are in one turn of the event loop.
    for (let round = 0; round < 5; round++) expect(await invoiceFrom(address)).toMatchObject({ answer: 'invoice' })
    expect([address.connections(), address.openNow()]).toEqual([1, 1])
    await eventually(() => address.openNow() === 0, 'the connection to be closed')
    expect(performance.now() - before).toBeGreaterThan(IDLE_CONNECTION_MS - 500)
    expect(IDLE_CONNECTION_MS).toBeLessThan(5_000)
  })

  test.each([
    ['closed', closes],
    ['reset', resets],
  ])(
    'a kept connection that was %s when it was used again does no harm: the request is repeated on a new one',
    async (_name, ends) => {
      const address = await daemon(answers, ends, answers)
      expect(await invoiceFrom(address)).toMatchObject({ answer: 'invoice' })
      expect(await invoiceFrom(address)).toMatchObject({ answer: 'invoice' })
      expect([address.requests(), address.connections()]).toEqual([3, 2])
    },
  )

  test('a repeated request uses a new connection, not another dead one', async () => {
    const address = await daemon(answers, answers, closes, answers)
    // Two concurrent requests, so that two connections are kept.
    await Promise.all([invoiceFrom(address), invoiceFrom(address)])
    expect([address.requests(), address.connections()]).toEqual([2, 2])
    expect(await invoiceFrom(address)).toMatchObject({ answer: 'invoice' })
    expect([address.requests(), address.connections()]).toEqual([4, 3])
  })

  test('a request is repeated only once', async () => {
    const address = await daemon(answers, closes)
    await invoiceFrom(address)
    expect(await invoiceFrom(address)).toEqual({ answer: 'unreachable' })
    expect(address.requests()).toBe(3)
  })

  test('not repeated: a request whose response had begun', async () => {
    const address = await daemon(answers, (socket) => socket.end('HTTP/1.1 200 OK\r\ncont'))
    await invoiceFrom(address)
    expect(await invoiceFrom(address)).toEqual({ answer: 'unreachable' })
    expect(address.requests()).toBe(2)
  })

  test('not repeated: a request that timed out', async () => {
    const address = await daemon(answers, () => undefined)
    await invoiceFrom(address)
    expect(await invoiceFrom(address, 200)).toEqual({ answer: 'unreachable' })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(address.requests()).toBe(2)
  })

  test('a repeated request keeps the original timeout', async () => {
    let repeated = (): void => undefined
    const isRepeated = new Promise<void>((resolve) => {
      repeated = resolve
    })
    const address = await daemon(
      answers,
      (socket) => {
        vi.advanceTimersByTime(3_000)
        socket.end()
      },
      () => repeated(),
    )
    await invoiceFrom(address)
    // Fakes only the timers of our code: sockets have their own.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const reply = invoiceFrom(address, 4_000)
    await isRepeated
    vi.advanceTimersByTime(999)
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(1)
    expect(vi.getTimerCount()).toBe(0)
    expect(await reply).toEqual({ answer: 'unreachable' })
    expect(address.requests()).toBe(3)
  })

  test('getinfo keeps none, so it always reaches the current daemon', async () => {
    const address = await saying(200, infoWith([], HEIGHT))
    for (let round = 0; round < 3; round++) expect(await infoFrom(address)).toMatchObject({ answer: 'info' })
    expect(address.connections()).toBe(3)
    await eventually(() => address.openNow() === 0, 'the connections to be closed')
  })
})

function trickle(socket: Socket, start: string, piece: string): void {
  socket.write(start)
  const timer = setInterval(() => socket.write(piece), 20)
  socket.on('close', () => clearInterval(timer))
}
