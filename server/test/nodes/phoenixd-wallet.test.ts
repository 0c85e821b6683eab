import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { FULL, LIMITED, startNetwork, type TestNode } from '../../../sandboxd/test/harness.ts'
import {
  findIncomingPayment,
  findOutgoingPayment,
  getBalance,
  listIncoming,
  listOutgoing,
  payInvoice,
} from '../../src/lightning/phoenixd/wallet.ts'
import type { NodeAddress } from '../../src/platform/node-agent.ts'
import { freePort } from '../support/server.ts'

/** So long that only a missing answer reaches it. */
const LIMIT_MS = 120_000
const HASH = 'ab'.repeat(32)
const PREIMAGE = 'cd'.repeat(32)
const DAY_MS = 86_400_000
const NOW = 1_800_000_000_000

const open: Server[] = []
afterEach(async () => {
  for (const server of open.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
})
async function fake(listener: RequestListener): Promise<NodeAddress> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  open.push(server)
  await once(server, 'listening')
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}
const saying = (status: number, body: unknown): Promise<NodeAddress> =>
  fake((request, response) => {
    request.resume()
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
  })
const refused = (why: string) => ({ answer: 'refused', why })

describe('a daemon', () => {
  let payer: TestNode
  let payee: TestNode
  beforeAll(async () => {
    ;({ payer, payee } = await startNetwork())
  })

  test('C30: the limited password sees everything and sends nothing; the full one sends', async () => {
    const address = { host: '127.0.0.1', port: payer.port }
    const invoice = (await payee.invoice({ amountSat: 10, description: 'tea' })).serialized
    const wish = { invoice, amountSat: undefined }
    expect(await payInvoice(address, LIMITED, wish, LIMIT_MS)).toEqual({ answer: 'wrong password' })
    expect(await getBalance(address, LIMITED, LIMIT_MS)).toMatchObject({ answer: 'balance' })
    expect(await listOutgoing(address, LIMITED, 50, Date.now(), LIMIT_MS)).toEqual({ answer: 'payments', payments: [] })
    expect(await payInvoice(address, FULL, wish, LIMIT_MS)).toEqual({ answer: 'sent', amountSat: 10, feeSat: 4 })
    const listed = await listOutgoing(address, LIMITED, 50, Date.now(), LIMIT_MS)
    if (listed.answer !== 'payments') throw new Error(listed.answer)
    const [payment] = listed.payments
    expect(payment).toStrictEqual({
      direction: 'out',
      paymentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      amountSat: 10,
      feeMsat: 4040,
      description: 'tea',
      isPaid: true,
      createdAtMs: expect.any(Number),
      expiresAtMs: undefined,
      completedAtMs: expect.any(Number),
    })
    const hash = payment?.paymentHash ?? ''
    expect(await findOutgoingPayment(address, LIMITED, hash, LIMIT_MS)).toStrictEqual({ answer: 'payment', payment })
    expect(await findOutgoingPayment(address, LIMITED, HASH, LIMIT_MS)).toEqual({ answer: 'unknown' })
    const received = await findIncomingPayment({ ...address, port: payee.port }, LIMITED, hash, LIMIT_MS)
    expect(received).toMatchObject({ answer: 'payment', payment: { direction: 'in', amountSat: 10, isPaid: true } })
  })
})

test('B2 P1: a payment without an answer is uncertain, and a look-up tells its outcome', async () => {
  const { payer, payee } = await startNetwork()
  const { serialized, paymentHash } = await payee.invoice({ amountSat: 10 })
  const address = { host: '127.0.0.1', port: payer.port }
  const pay = (timeoutMs: number) => payInvoice(address, FULL, { invoice: serialized, amountSat: undefined }, timeoutMs)
  expect(await pay(LIMIT_MS)).toMatchObject({ answer: 'sent' })
  await payer.control('payments', { payments: 'lose' })
  expect(await pay(500)).toEqual({ answer: 'uncertain' })
  const found = await findOutgoingPayment(address, LIMITED, paymentHash, LIMIT_MS)
  expect(found).toMatchObject({ answer: 'payment', payment: { isPaid: true, amountSat: 10 } })
})

const outgoing = (createdAt: number) => ({
  type: 'outgoing_payment',
  subType: 'lightning',
  paymentHash: HASH,
  preimage: PREIMAGE,
  isPaid: true,
  sent: 5,
  fees: 4000,
  createdAt,
  completedAt: createdAt,
})
/** Lists payments like phoenixd: oldest first, with a limit, an offset and a start time. */
async function nodeWith(times: number[]): Promise<{ address: NodeAddress; asked: string[] }> {
  const asked: string[] = []
  const address = await fake((request, response) => {
    asked.push(request.url ?? '')
    const query = new URL(request.url ?? '', 'http://x').searchParams
    const [from, limit, offset] = ['from', 'limit', 'offset'].map((name) => Number(query.get(name)))
    const found = times.filter((time) => time >= (from ?? 0)).slice(offset, (offset ?? 0) + (limit ?? 0))
    response.end(JSON.stringify(found.map(outgoing)))
  })
  return { address, asked }
}

test('the newest outgoing payments are found, although the node lists the oldest first', async () => {
  const old = Array.from({ length: 3_000 }, (_, n) => NOW - 400 * DAY_MS + n * 1000)
  const month = Array.from({ length: 900 }, (_, n) => NOW - 20 * DAY_MS + n * 1000)
  const today = Array.from({ length: 30 }, (_, n) => NOW - 3_600_000 + n * 1000)
  const newest = async (times: number[], limit = 50): Promise<number[]> => {
    const { address } = await nodeWith(times)
    const answer = await listOutgoing(address, 'p', limit, NOW, LIMIT_MS)
    if (answer.answer !== 'payments') throw new Error(answer.answer)
    return answer.payments.map(({ createdAtMs }) => createdAtMs)
  }
  for (const times of [[...old, ...month, ...today], [...old, ...month], old, today, []])
    expect(await newest(times)).toEqual([...times].sort((a, b) => b - a).slice(0, 50))
  // If the last day has enough payments, the year before it is not read.
  const { address, asked } = await nodeWith([...old, ...month, ...Array.from({ length: 60 }, (_, n) => NOW - n * 1000)])
  await listOutgoing(address, 'p', 50, NOW, LIMIT_MS)
  expect(asked).toHaveLength(1)
})

const incoming = {
  type: 'incoming_payment',
  paymentHash: HASH,
  preimage: PREIMAGE,
  isPaid: false,
  receivedSat: 0,
  fees: 0,
  createdAt: NOW,
}
test.each([
  ['unpaid, of an amount', { requestedSat: 7 }, { amountSat: 7, isPaid: false, completedAtMs: undefined }],
  ['unpaid, of any amount', {}, { amountSat: 0, isPaid: false }],
  [
    'paid: the amount received, not the amount requested',
    { isPaid: true, requestedSat: 7, receivedSat: 9, fees: 1000, completedAt: NOW },
    { amountSat: 9, feeMsat: 1000, isPaid: true, completedAtMs: NOW },
  ],
  ['with a description', { description: 'tea' }, { description: 'tea' }],
])('an incoming payment: %s; never its preimage', async (_name, fields, expected) => {
  const address = await saying(200, [{ ...incoming, ...fields }])
  const answer = await listIncoming(address, 'p', 50, LIMIT_MS)
  expect(answer).toMatchObject({ answer: 'payments', payments: [expected] })
  expect(JSON.stringify(answer)).not.toContain(PREIMAGE)
})

test.each([
  ['paid: the recipient’s part of it', { isPaid: true, sent: 104, fees: 4400 }, { amountSat: 100, feeMsat: 4400 }],
  [
    'failed: the amount that was to be sent',
    { isPaid: false, sent: 100, fees: 0, completedAt: NOW },
    { amountSat: 100, isPaid: false, completedAtMs: NOW },
  ],
  [
    'bought liquidity',
    { subType: 'auto_liquidity', paymentHash: undefined, sent: 20, fees: 20_000 },
    { amountSat: 0, feeMsat: 20_000, paymentHash: undefined, description: expect.stringContaining('liquidity') },
  ],
  ['of an invoice that we cannot read', { invoice: 'lnxx' }, { description: undefined }],
])('an outgoing payment: %s', async (_name, fields, expected) => {
  const answer = await listOutgoing(await saying(200, [{ ...outgoing(NOW), ...fields }]), 'p', 50, NOW, LIMIT_MS)
  expect(answer).toMatchObject({ answer: 'payments', payments: [expected] })
  expect(JSON.stringify(answer)).not.toContain(PREIMAGE)
})

test.each([
  ['no list', { a: 1 }, 'the answer is not a list'],
  ['text', 'Not found', 'the answer is not a list'],
  ['an entry that is not an object', [null], 'the list contains an entry that is not a payment'],
  ['without a time', [{ ...incoming, createdAt: undefined }], 'the list contains an entry that is not a payment'],
  ['with an invalid hash', [{ ...incoming, paymentHash: 'x' }], 'the list contains an entry that is not a payment'],
])('refused: %s, in our own words', async (_name, body, why) => {
  expect(await listIncoming(await saying(200, body), 'p', 50, LIMIT_MS)).toEqual(refused(why))
})

test('an answer about a different payment is refused', async () => {
  const address = await saying(200, { ...outgoing(NOW), paymentHash: 'ef'.repeat(32) })
  expect(await findOutgoingPayment(address, 'p', HASH, LIMIT_MS)).toEqual(
    refused('the response is not a valid payment with the requested hash'),
  )
})

describe('the outcome of a payment request', () => {
  const wish = { invoice: 'lnbcrt1', amountSat: undefined }
  const sent = { recipientAmountSat: 10, routingFeeSat: 4, paymentId: 'x', paymentHash: HASH, paymentPreimage: PREIMAGE }
  test.each([
    ['sent', 200, sent, { answer: 'sent', amountSat: 10, feeSat: 4 }],
    ['a failure, which is also a 200', 200, { paymentHash: HASH, reason: 'no' }, { answer: 'failed', reason: 'no' }],
    ['a very long reason', 200, { reason: 'n'.repeat(9_999) }, { answer: 'failed', reason: 'n'.repeat(300) }],
    ['both a preimage and a reason', 200, { ...sent, routingFeeSat: -1, reason: 'no' }, { answer: 'uncertain' }],
    ['nothing', 200, '', { answer: 'uncertain' }],
    ['the wrong password', 401, 'words', { answer: 'wrong password' }],
    ['a refusal', 400, 'words', refused('the node answered with status 400')],
    ['an internal error', 500, 'words', { answer: 'uncertain' }],
    ['a timeout reported by the node', 504, 'words', { answer: 'uncertain' }],
    ['a redirect', 302, '', { answer: 'uncertain' }],
  ])('%s', async (_name, status, body, expected) => {
    expect(await payInvoice(await saying(status, body), 'p', wish, LIMIT_MS)).toEqual(expected)
  })

  test('if nothing listens, the payment was certainly not sent; if the node hangs or closes the connection, that is uncertain', async () => {
    const nobody = { host: '127.0.0.1', port: await freePort() }
    expect(await payInvoice(nobody, 'p', wish, LIMIT_MS)).toEqual({ answer: 'unreachable' })
    expect(await payInvoice(await fake(() => undefined), 'p', wish, 200)).toEqual({ answer: 'uncertain' })
    expect(await payInvoice(await fake((request) => request.socket.destroy()), 'p', wish, LIMIT_MS)).toEqual({
      answer: 'uncertain',
    })
  })

  test('it is sent once, even to a node that closes idle connections', async () => {
    let pays = 0
    const address = await fake((request, response) => {
      if (request.url !== '/payinvoice') return void response.end('{"balanceSat":1,"feeCreditSat":0}')
      pays++
      request.socket.destroy()
    })
    // Leaves an idle connection that the payment request could reuse.
    for (let time = 0; time < 3; time++) await getBalance(address, 'p', LIMIT_MS)
    expect(await payInvoice(address, 'p', wish, LIMIT_MS)).toEqual({ answer: 'uncertain' })
    expect(pays).toBe(1)
  })
})
