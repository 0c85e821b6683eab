import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { invoiceOf, nowSeconds as now } from '../../../cli/test/invoices.ts'
import { challengeOf, HASH, PREIMAGE, type Reply, Scripted } from '../../../cli/test/scripted.ts'
import { type Buyer, type BuyerOptions, buyer, memoryStore } from '../../src/buy/index.ts'

/** Servers with challenges that must not be paid. The wallet here would pay any invoice. */

let shop: Scripted
let asked: string[]
let pay: Buyer
let challenge: Record<string, string>
beforeAll(async () => {
  shop = await new Scripted().open()
})
beforeEach(() => {
  shop.got.length = 0
  asked = []
  challenge = { 'www-authenticate': challengeOf().challenge }
  shop.reply = ({ authorization }) => (authorization ? { body: 'Sunny' } : { status: 402, headers: challenge })
  pay = newBuyer()
})

const newBuyer = (more: Partial<BuyerOptions> = {}): Buyer =>
  buyer({ wallet: paysAll, maxSatPerRequest: 1_000, maxSatPerDay: 10_000, store: memoryStore(), ...more })
const paysAll = async (invoice: string): Promise<string> => {
  asked.push(invoice)
  return PREIMAGE
}
const caught = (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    () => 'no error',
    (error) => error,
  )

const l402 = (invoice: string): string => `L402 macaroon="AgE=", invoice="${invoice}"`
const invoice = (sat: number | undefined, more?: { timestamp?: number; prefix?: string }): string => invoiceOf(HASH, sat, more)
const request = (more: object = {}, details: object = {}): string =>
  Buffer.from(
    JSON.stringify({ amount: '10', currency: 'sat', methodDetails: { invoice: invoice(10), ...details }, ...more }),
  ).toString('base64url')
const mpp = (encoded = request(), more = ''): string =>
  `Payment id="x", realm="shop", method="lightning", intent="charge", request="${encoded}"${more}`

describe('an unusable challenge is an error, and the wallet is not asked', () => {
  test.each<[string, string | undefined]>([
    ['none at all', undefined],
    ['another scheme', 'Basic realm="x"'],
    ['another method of payment', mpp().replace('lightning', 'tempo')],
    ['a malformed header', 'L402 macaroon="AgE=" invoice="x"'],
    ['L402 without a macaroon', `L402 invoice="${invoice(10)}"`],
    ['an invoice without an amount', l402(invoice(undefined))],
    ['an invoice that has expired', l402(invoice(10, { timestamp: now - 3_601 }))],
    ['a challenge that says less than its invoice', mpp(request({ amount: '10' }, { invoice: invoice(900) }))],
    ['another payment hash', mpp(request({}, { paymentHash: 'cd'.repeat(32) }))],
    ['a challenge that has expired', mpp(request(), `, expires="${new Date(Date.now() - 1000).toISOString()}"`)],
    ['a header other than Payment-Authorization', mpp(request(), ', header="X-Mine"')],
  ])('%s', async (_, header) => {
    challenge = header === undefined ? {} : { 'www-authenticate': header }
    const error = await caught(pay.fetch(shop.url))
    expect([error.code, error.outcome, asked]).toEqual(['unusable_challenge', 'unpaid', []])
    expect(error.message).toMatch(/Nothing was paid\.$/)
  })

  test('an invoice for a network other than the wallet’s', async () => {
    const wallet = { pay: paysAll, network: 'regtest' as const }
    const error = await caught(newBuyer({ wallet }).fetch(shop.url))
    expect([error.code, error.message, asked]).toEqual([
      'wrong_network',
      'The invoice is for mainnet, but the wallet pays on regtest. Nothing was paid.',
      [],
    ])
  })
})

test('the cheaper of two offers is paid, if the first is too expensive', async () => {
  challenge = { 'www-authenticate': `${l402(invoice(2_000))}, ${mpp()}` }
  expect(await (await pay.fetch(shop.url)).text()).toBe('Sunny')
  expect(asked).toEqual([invoice(10)])
})

test('MPP in another header: the credential is sent in that header and echoes its name; Authorization stays the caller’s', async () => {
  challenge = { 'www-authenticate': mpp(request(), ', header="Payment-Authorization"') }
  shop.reply = ({ headers }) => (headers['payment-authorization'] ? { body: 'Sunny' } : { status: 402, headers: challenge })
  expect(await (await pay.fetch(shop.url, { headers: { authorization: 'Bearer mine' } })).text()).toBe('Sunny')
  const [, second] = shop.got
  const sent = String(second?.headers['payment-authorization'])
  expect(second?.authorization).toBe('Bearer mine')
  expect(JSON.parse(Buffer.from(sent.replace('Payment ', ''), 'base64url').toString()).challenge.header).toBe(
    'Payment-Authorization',
  )
})

describe('a body that cannot be sent twice', () => {
  test.each<[string, () => RequestInit['body']]>([
    ['a stream', () => new Blob(['Where?']).stream()],
    ['an async iterable', () => (async function* () {})() as never],
  ])('%s is refused before anything is sent', async (_, body) => {
    const init = { method: 'POST', body: body(), duplex: 'half' } as RequestInit
    const error = await caught(pay.fetch(shop.url, init))
    expect([error.code, shop.got, asked]).toEqual(['body_not_repeatable', [], []])
  })
})

describe('after the payment', () => {
  test('a server that asks for payment again is not paid again, not even by later calls', async () => {
    shop.reply = () => ({ status: 402, headers: challenge })
    for (let round = 0; round < 3; round++)
      expect(await caught(pay.fetch(shop.url))).toMatchObject({
        code: 'credential_refused',
        outcome: 'paid',
        details: { paymentHash: HASH },
      })
    expect(asked).toHaveLength(1)
    expect(shop.got.map(({ authorization }) => authorization !== undefined)).toEqual([false, true, true, true])
  })

  test('a redirect is not followed: no other server gets the credential', async () => {
    const thief = await new Scripted().open()
    shop.reply = ({ authorization }) =>
      authorization ? { status: 307, headers: { location: thief.url } } : { status: 402, headers: challenge }
    const response = await pay.fetch(shop.url)
    expect([response.status, thief.got, asked.length]).toEqual([307, [], 1])
  })

  test('a kept credential is sent to the server that it was bought from, and to no other', async () => {
    const [front, store] = [await new Scripted().open(), memoryStore()]
    front.reply = () => ({ status: 302, headers: { location: `${shop.url}/weather` } })
    let reply: Reply = { status: 500 }
    shop.reply = ({ authorization }) => (authorization ? reply : { status: 402, headers: challenge })
    expect((await newBuyer({ store }).fetch(front.url)).status).toBe(500)
    reply = { body: 'Sunny' }
    expect(await (await newBuyer({ store }).fetch(front.url)).text()).toBe('Sunny')
    expect(front.got.map(({ authorization }) => authorization)).toEqual([undefined])
    expect(asked).toHaveLength(1)
  })

  test('"not yet" (503) is retried after the time it names', async () => {
    const replies: Reply[] = [{ status: 503, headers: { 'retry-after': '0' } }, 'cut', { body: 'Sunny' }]
    shop.reply = ({ authorization }) => (authorization ? (replies.shift() ?? 'cut') : { status: 402, headers: challenge })
    expect(await (await pay.fetch(shop.url)).text()).toBe('Sunny')
  })

  test('a body that is cut off was not delivered: the next call presents the same credential', async () => {
    const replies: Reply[] = [{ headers: { 'content-length': '1000' }, body: 'Sun' }, { body: 'Sunny' }]
    shop.reply = ({ authorization }) => (authorization ? (replies.shift() ?? 'cut') : { status: 402, headers: challenge })
    const response = await pay.fetch(shop.url)
    shop.closeConnections()
    expect((await caught(response.text())).message).toMatch(/terminated|aborted/)
    expect(await pay.unfinished()).toMatchObject([{ state: 'paid', paymentHash: HASH }])
    expect(await (await pay.fetch(shop.url)).text()).toBe('Sunny')
    expect([asked.length, await pay.unfinished()]).toEqual([1, []])
  })

  test('an invoice that belongs to another purchase is not paid a second time', async () => {
    expect(await (await pay.fetch(`${shop.url}/a`)).text()).toBe('Sunny')
    const error = await caught(pay.fetch(`${shop.url}/b`))
    expect([error.code, error.outcome, asked.length]).toEqual(['invoice_repeated', 'unpaid', 1])
  })
})

describe('a store that fails', () => {
  test('before the payment: nothing is paid', async () => {
    const store = { ...memoryStore(), set: () => Promise.reject(new Error('disk full')) }
    expect((await caught(newBuyer({ store }).fetch(shop.url))).message).toBe('disk full')
    expect(asked).toEqual([])
  })

  test('with an entry that is not a purchase: nothing is paid, and it is not quoted', async () => {
    const store = memoryStore()
    expect(await (await newBuyer({ store }).fetch(shop.url)).text()).toBe('Sunny')
    const [name = ''] = await store.list('purchase.')
    await store.set(name, ((await store.get(name)) ?? '').slice(1))
    const error = await caught(newBuyer({ store }).fetch(shop.url))
    expect([error.message, asked.length]).toEqual([
      `The store’s entry ${name} cannot be read. Its purchase may have been paid, so it is not replaced. Check your wallet, then remove the entry to buy again.`,
      1,
    ])
  })

  test('with a purchase whose challenge cannot be read: nothing is paid, and the error names the entry', async () => {
    const store = memoryStore()
    expect(await (await newBuyer({ store }).fetch(shop.url)).text()).toBe('Sunny')
    const [name = ''] = await store.list('purchase.')
    const { credential: _, ...kept } = JSON.parse((await store.get(name)) ?? '')
    await store.set(name, JSON.stringify({ ...kept, state: 'paying', challenge: 'L402 macaroon' }))
    const error = await caught(newBuyer({ store }).fetch(shop.url))
    expect([error.message, asked.length]).toEqual([
      `The challenge in the store’s entry ${name} cannot be read. Its purchase may have been paid. Check your wallet, then remove the entry to buy again.`,
      1,
    ])
  })
})

test('an L402 credential whose goods have moved: the request starts again where it was sent to', async () => {
  const [front, store] = [await new Scripted().open(), memoryStore()]
  let target = `${shop.url}/old`
  front.reply = () => ({ status: 302, headers: { location: target } })
  shop.reply = ({ authorization, path }) =>
    path === '/free'
      ? { body: 'Free' }
      : target.endsWith('/free')
        ? { status: 404 }
        : authorization
          ? { body: 'Sunny' }
          : { status: 402, headers: challenge }
  expect(await (await newBuyer({ store }).fetch(front.url)).text()).toBe('Sunny')
  target = `${shop.url}/free`
  expect(await (await newBuyer({ store }).fetch(front.url)).text()).toBe('Free')
  expect([asked.length, front.got.some(({ authorization }) => authorization)]).toEqual([1, false])
})

test('wrong options are errors at once', () => {
  expect(() => newBuyer({ maxSatPerDay: Number.NaN })).toThrow(/maxSatPerDay must be a number/)
  expect(() => newBuyer({ maxSatPerRequest: -1 })).toThrow(/maxSatPerRequest/)
  expect(() => newBuyer({ wallet: { url: 'http://:secret@127.0.0.1', password: 'x' } })).toThrow(/URL must look like/)
  expect(() => newBuyer({ wallet: { url: 'http://127.0.0.1', password: 'a b' } })).toThrow(/^(?!.*a b).*password/)
})
