import { beforeEach, describe, expect, test } from 'vitest'
import { invoiceWith, NODE_KEY, PAYMENT_HASH, PREIMAGE, requirements } from '../../../protocol/test/support/x402.ts'
import { memoryStore, type PurchaseStore } from '../../src/buy/index.ts'
import { outcomeOf, Seller } from './seller.ts'
import { requestHashOf } from './x402-request.ts'

/** A purchase that continues after a crash is paid only if its credential can still be accepted. */

let seller: Seller
let store: PurchaseStore
let expiresInMs: number | undefined
beforeEach(async () => {
  seller = await new Seller().open()
  store = memoryStore()
  expiresInMs = undefined
  seller.challenge = mpp
})

function mpp(invoice: string, more = ''): string {
  const details = { amount: '10', currency: 'sat', methodDetails: { invoice } }
  const request = Buffer.from(JSON.stringify(details)).toString('base64url')
  const expires = expiresInMs === undefined ? '' : `, expires="${new Date(Date.now() + expiresInMs).toISOString()}"`
  return `Payment id="x", realm="shop", method="lightning", intent="charge", request="${request}"${expires}${more}`
}

/** Leaves a purchase in this state, as a process that was killed would. */
async function left(state: 'kept' | 'paying', init: RequestInit = {}): Promise<void> {
  const lost = async (): Promise<string> => {
    throw new Error('socket hang up')
  }
  await outcomeOf(seller.buyer({ store, wallet: lost }).fetch(seller.url, init))
  const [name = ''] = await store.list('purchase.')
  await store.set(name, JSON.stringify({ ...JSON.parse((await store.get(name)) ?? ''), state }))
}
/** A wallet that says that nothing is under way. */
const wallet = () => ({ pay: seller.pay, lookUp: async () => 'failed' as const })
const again = (init: RequestInit = {}): Promise<unknown> =>
  outcomeOf(seller.buyer({ store, wallet: wallet() }).fetch(seller.url, init))

describe('a challenge that expires before its invoice', () => {
  beforeEach(() => {
    expiresInMs = 1_500
  })
  const expire = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1_600))

  test('was not paid yet: a new one is asked for and paid', async () => {
    await left('kept')
    const [, old] = [await expire(), (await seller.buyer({ store }).unfinished())[0]?.paymentHash]
    expect([await again(), seller.paid.length]).toEqual(['Sunny', 1])
    expect([old === undefined, await store.list(`spent.${old}`), await store.list('spent.')]).toMatchObject([false, [], [{}]])
  })

  test('may have been paid: nothing is paid', async () => {
    await left('paying')
    await expire()
    expect([await again(), seller.paid]).toEqual([['payment_unknown', 'unknown'], []])
    expect(await seller.buyer({ store }).unfinished()).toMatchObject([{ state: 'paying' }])
  })
})

test.each<['kept' | 'paying', string, unknown, number]>([
  ['kept', 'de', 'Sunny', 1],
  ['paying', 'de', 'Sunny', 1],
  ['kept', 'fr', 'Sunny', 1],
  ['paying', 'fr', ['payment_unknown', 'unknown'], 0],
])('x402 that binds a header, left as %s in German and continued in “%s”', async (state, language, expected, count) => {
  const paid: string[] = []
  seller.reply = ({ method, headers }) => {
    const spoken = headers['accept-language'] ?? ''
    const requestHash = requestHashOf(method, `${seller.url}/`, '', { 'accept-language': spoken })
    const proof = headers['payment-signature']
    if (proof !== undefined) {
      const { accepted } = JSON.parse(Buffer.from(String(proof), 'base64').toString())
      return accepted.extra.requestHash === requestHash ? { body: 'Sunny' } : { status: 402 }
    }
    const invoice = invoiceWith({ descriptionHash: requestHash, timestamp: Math.floor(Date.now() / 1000) })
    const base = requirements()
    const extra = { ...base.extra, requestBindingParams: { headers: ['accept-language'] }, requestHash, invoice }
    const required = { x402Version: 2, resource: { url: seller.url }, accepts: [{ ...base, payTo: NODE_KEY, extra }] }
    return { status: 402, headers: { 'payment-required': Buffer.from(JSON.stringify(required)).toString('base64') } }
  }
  await left(state, { headers: { 'accept-language': 'de' } })
  const pay = async (invoice: string): Promise<string> => {
    paid.push(invoice)
    return PREIMAGE
  }
  const resumed = seller.buyer({ store, wallet: { pay, lookUp: async () => 'failed' } })
  expect(await outcomeOf(resumed.fetch(seller.url, { headers: { 'accept-language': language } }))).toEqual(expected)
  expect([paid.length, (await store.list('spent.')).length]).toEqual([count, 1])
  expect(await store.list('spent.')).toEqual([`spent.${PAYMENT_HASH}`])
})

test('x402 may bind headers that `fetch` itself would add', async () => {
  const names = ['accept', 'accept-language', 'user-agent']
  seller.reply = ({ method, headers }) => {
    if (headers['payment-signature'] !== undefined) return { body: 'Sunny' }
    const bound = Object.fromEntries(names.map((name) => [name, String(headers[name])]))
    const requestHash = requestHashOf(method, `${seller.url}/`, '', bound)
    const invoice = invoiceWith({ descriptionHash: requestHash, timestamp: Math.floor(Date.now() / 1000) })
    const base = requirements()
    const extra = { ...base.extra, requestBindingParams: { headers: names }, requestHash, invoice }
    const required = { x402Version: 2, resource: { url: seller.url }, accepts: [{ ...base, payTo: NODE_KEY, extra }] }
    return { status: 402, headers: { 'payment-required': Buffer.from(JSON.stringify(required)).toString('base64') } }
  }
  expect(await outcomeOf(seller.buyer({ wallet: async () => PREIMAGE }).fetch(seller.url))).toBe('Sunny')
})

test('one invoice for two protocols: the credential is the one that was chosen, in its header', async () => {
  seller.challenge = (invoice) =>
    `L402 macaroon="AgE=", invoice="${invoice}", ${mpp(invoice, ', header="Payment-Authorization"')}`
  seller.reply = ({ headers }) =>
    headers['payment-authorization']?.toString().startsWith('Payment ') ? { body: 'Sunny' } : seller.bill()
  const init = { headers: { authorization: 'Bearer mine' } }
  await left('paying', init)
  expect([await again(init), seller.paid.length]).toEqual(['Sunny', 1])
})
