import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../../../server/test/support/server.ts'
import { type Buyer, type BuyerOptions, buyer, memoryStore, PurchaseError, purchaseOf } from '../../src/buy/index.ts'
import { FEE, GOODS, NOTHING, ONCE, PRICE, WeatherShop } from './shop.ts'

/** A real paywall, a real service, real sandbox nodes. */

let shop: WeatherShop
let directory: string
let pay: Buyer
beforeAll(async () => {
  shop = await WeatherShop.open()
})
beforeEach(async () => {
  await shop.renew()
  directory = temporaryDirectory()
  pay = newBuyer()
})

const newBuyer = (more: Partial<BuyerOptions> = {}): Buyer =>
  buyer({ wallet: shop.wallet, maxSatPerRequest: 1_000, maxSatPerDay: 10_000, store: directory, ...more })
const caught = (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    () => 'no error',
    (error) => error,
  )
const textOf = async (response: Promise<Response>): Promise<string> => (await response).text()
const credentials = (): unknown[] => shop.visits.flatMap(({ authorization }) => authorization ?? [])

describe('fetch, pay, fetch again', () => {
  test.each(['/mpp', '/l402', '/both'])('%s is paid once and delivered', async (path) => {
    const response = await pay.fetch(shop.url(path))
    expect([response.status, response.url, await response.text()]).toEqual([200, shop.url(path), GOODS])
    expect(await shop.moved()).toEqual(ONCE)
    const protocol = path === '/mpp' ? 'mpp' : 'l402'
    expect(purchaseOf(response)).toMatchObject({ protocol, amountSat: PRICE, feeSat: FEE, url: shop.url(path) })
    expect(await pay.unfinished()).toEqual([])
  })

  test('a free resource costs nothing, and nothing is kept', async () => {
    const response = await pay.fetch(shop.url('/free'))
    expect([await response.text(), purchaseOf(response)]).toEqual([GOODS, undefined])
    expect([await shop.moved(), readdirSync(directory)]).toEqual([NOTHING, []])
  })

  test('method, headers and body are sent both times; a form too, with the same boundary', async () => {
    const form = new FormData()
    form.set('city', 'Zürich')
    for (const body of [
      'Where?',
      new URLSearchParams({ a: 'b' }),
      new Blob(['Where?']),
      form,
      new TextEncoder().encode('Where?'),
    ]) {
      shop.visits.length = 0
      expect(await textOf(pay.fetch(shop.url('/mpp'), { method: 'PUT', body, headers: { 'x-test': 'yes' } }))).toBe(GOODS)
      const [first, second] = shop.visits
      expect(shop.visits).toHaveLength(2)
      expect(first?.body).not.toBe('')
      expect([second?.method, second?.body, second?.headers['x-test']]).toEqual(['PUT', first?.body, 'yes'])
      expect(second?.headers['content-type']).toBe(first?.headers['content-type'])
    }
  })

  test('a Request is taken as `fetch` takes it', async () => {
    const request = new Request(shop.url('/mpp'), { method: 'POST', body: 'Where?' })
    expect(await textOf(pay.fetch(request))).toBe(GOODS)
    expect(shop.visits.map(({ method, body }) => [method, body])).toEqual(Array(2).fill(['POST', 'Where?']))
  })

  test('the same thing is bought again by the next call; a reusable L402 credential is used again instead', async () => {
    for (let round = 0; round < 2; round++) expect(await textOf(pay.fetch(shop.url('/mpp')))).toBe(GOODS)
    for (let round = 0; round < 3; round++) expect(await textOf(newBuyer().fetch(shop.url('/l402')))).toBe(GOODS)
    expect(await shop.moved()).toEqual({ spent: 3 * ONCE.spent, earned: 3 * PRICE })
  })

  test('HEAD and OPTIONS are not sold, so they are not paid', async () => {
    expect((await pay.fetch(shop.url('/mpp'), { method: 'HEAD' })).status).toBe(402)
    expect((await pay.fetch(shop.url('/mpp'), { method: 'OPTIONS' })).status).toBe(204)
    expect(await shop.moved()).toEqual(NOTHING)
  })

  test('a memory store works the same', async () => {
    const store = memoryStore()
    expect(await textOf(newBuyer({ store }).fetch(shop.url('/mpp')))).toBe(GOODS)
    expect([await shop.moved(), (await store.list('purchase.')).length]).toEqual([ONCE, 1])
  })
})

describe('a credential stays with its server', () => {
  test('redirects are followed before anything is paid', async () => {
    expect(await textOf(pay.fetch(shop.url('/old')))).toBe(GOODS)
    expect(shop.visits.map(({ path }) => path)).toEqual(['/old', '/mpp', '/mpp'])
  })

  test('after a redirect to another server, that one gets no header of the first, and the first no credential', async () => {
    const other = await WeatherShop.open()
    await other.renew()
    const [here, there] = [shop.url(`/away?to=${encodeURIComponent(other.url('/mpp'))}`), other]
    // The wallet's node cannot pay the sandbox nodes of another service, so the price limit stops this purchase before that.
    const error = await caught(newBuyer({ maxSatPerRequest: 1 }).fetch(here, { headers: { 'x-secret': 'mine' } }))
    expect(error).toMatchObject({ code: 'too_expensive' })
    expect(there.visits.map(({ headers }) => headers['x-secret'])).toEqual([undefined])
    expect(credentials()).toEqual([])
  })

  test('its files can be read by their owner only, and errors do not quote it', async () => {
    expect(await textOf(pay.fetch(shop.url('/mpp')))).toBe(GOODS)
    const files = readdirSync(directory)
    expect(files.filter((name) => name.endsWith('.tmp'))).toEqual([])
    for (const name of files) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600)
    const kept = files.find((name) => name.startsWith('purchase.')) ?? ''
    expect(JSON.parse(readFileSync(join(directory, kept), 'utf8')).credential).toBe(credentials()[0])
  })

  test('a request with its own Authorization header is not paid, because the credential has no place', async () => {
    const error = await caught(pay.fetch(shop.url('/both'), { headers: { authorization: 'Bearer mine' } }))
    // A paywall treats an unknown scheme as no credential.
    expect([error.code, error.outcome, await shop.moved()]).toEqual(['authorization_taken', 'unpaid', NOTHING])
  })
})

describe('limits', () => {
  test('above maxSatPerRequest: the price, and nothing is paid', async () => {
    const error = await caught(newBuyer({ maxSatPerRequest: PRICE - 1 }).fetch(shop.url('/mpp')))
    expect(error).toBeInstanceOf(PurchaseError)
    expect(error).toMatchObject({
      code: 'too_expensive',
      outcome: 'unpaid',
      message: 'The price is 250 sat, but maxSatPerRequest is 249. Nothing was paid.',
      details: { amountSat: PRICE, maxSat: 249 },
    })
    expect([await shop.moved(), credentials(), await pay.unfinished()]).toEqual([NOTHING, [], []])
  })

  test('maxSatPerDay holds for concurrent purchases of several buyers with one store', async () => {
    const buyers = [1, 2].map(() => newBuyer({ maxSatPerDay: 3 * PRICE + 3 * FEE }))
    const answers = await Promise.allSettled(
      Array.from({ length: 8 }, (_, at) => buyers[at % 2]?.fetch(shop.url('/mpp'), { purchaseKey: String(at) })),
    )
    const refused = answers.filter((one) => one.status === 'rejected').map(({ reason }) => reason)
    for (const error of refused) expect(error).toMatchObject({ code: 'budget_exceeded', outcome: 'unpaid' })
    const { earned } = await shop.moved()
    expect(earned / PRICE).toBe(8 - refused.length)
    expect(earned).toBeLessThanOrEqual(3 * PRICE)
    // Concurrent purchases may make each other fail, but the rest of the budget can be spent later.
    for (let more = earned / PRICE; more < 3; more++)
      expect((await buyers[0]?.fetch(shop.url('/mpp'), { purchaseKey: `more ${more}` }))?.status).toBe(200)
    expect(
      await caught(newBuyer({ maxSatPerDay: 3 * ONCE.spent }).fetch(shop.url('/mpp'), { purchaseKey: 'last' })),
    ).toMatchObject({
      code: 'budget_exceeded',
      details: { amountSat: PRICE, leftSat: 0, maxSatPerDay: 3 * ONCE.spent },
    })
  })

  test('a failed payment does not count towards the limit', async () => {
    const poor = newBuyer({ wallet: { ...shop.wallet, password: 'wrong' }, maxSatPerDay: PRICE })
    for (let round = 0; round < 2; round++)
      expect(await caught(poor.fetch(shop.url('/mpp')))).toMatchObject({ code: 'wallet_password', outcome: 'unpaid' })
    expect(await textOf(newBuyer({ maxSatPerDay: PRICE }).fetch(shop.url('/mpp')))).toBe(GOODS)
    expect(await shop.moved()).toEqual(ONCE)
  })
})

describe('one request is paid once', () => {
  test('of ten concurrent calls for the same purchase, one pays, and the others say that it is in progress', async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, () =>
        newBuyer()
          .fetch(shop.url('/mpp'))
          .then((one) => one.text()),
      ),
    )
    const [first, ...more] = answers.filter((one) => one.status === 'fulfilled')
    expect([first?.value, more]).toEqual([GOODS, []])
    for (const one of answers) if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'purchase_in_progress' })
    expect(await shop.moved()).toEqual(ONCE)
  })

  test('one reusable L402 credential serves all concurrent calls', async () => {
    const bodies = await Promise.all(Array.from({ length: 10 }, () => textOf(newBuyer().fetch(shop.url('/l402')))))
    expect(bodies).toEqual(Array(10).fill(GOODS))
    expect(await shop.moved()).toEqual(ONCE)
  })

  test('calls with different purchase keys each buy', async () => {
    const calls = ['a', 'b', 'c'].map((purchaseKey) => textOf(pay.fetch(shop.url('/mpp'), { purchaseKey })))
    expect(await Promise.all(calls)).toEqual(Array(3).fill(GOODS))
    // What was delivered is not paid a second time under the same key.
    expect(await caught(pay.fetch(shop.url('/mpp'), { purchaseKey: 'a' }))).toMatchObject({
      code: 'credential_refused',
      outcome: 'paid',
    })
    expect(await shop.moved()).toEqual({ spent: 3 * ONCE.spent, earned: 3 * PRICE })
  })

  test('a purchase that was paid and not delivered is presented again, by another process too, and not paid again', async () => {
    for (let round = 0; round < 3; round++) {
      const response = await newBuyer().fetch(shop.url('/broken'))
      expect([response.status, purchaseOf(response)?.amountSat]).toEqual([500, PRICE])
    }
    expect([new Set(credentials()).size, await shop.moved()]).toEqual([1, ONCE])
    const [left] = await pay.unfinished()
    expect(left).toMatchObject({ state: 'paid', url: shop.url('/broken'), amountSat: PRICE })
    await pay.forget(left?.paymentHash ?? '')
    expect(await pay.unfinished()).toEqual([])
  })
})
