import { beforeEach, describe, expect, test } from 'vitest'
import { memoryStore, type PurchaseStore } from '../../src/buy/index.ts'
import { acquireLock } from '../../src/buy/store/lock.ts'
import { outcomeOf, Seller } from './seller.ts'

/** What is finished does not stay in the store for ever. */

const DAY_MS = 86_400_000
let seller: Seller
let store: PurchaseStore
beforeEach(async () => {
  seller = await new Seller().open()
  seller.challenge = mpp
  store = memoryStore()
})

function mpp(invoice: string): string {
  const request = { amount: '10', currency: 'sat', methodDetails: { invoice } }
  const encoded = Buffer.from(JSON.stringify(request)).toString('base64url')
  return `Payment id="x", realm="shop", method="lightning", intent="charge", request="${encoded}"`
}
const buy = (path: string, init = {}, more = {}): Promise<unknown> =>
  outcomeOf(seller.buyer({ store, ...more }).fetch(seller.url + path, init))
const names = async (prefix: string): Promise<string[]> => (await store.list(prefix)).sort()
/** Makes everything in the store older. The clock is not moved forward, because the invoices would then have expired. */
async function later(days: number): Promise<void> {
  for (const name of await store.list('')) {
    if (name.startsWith('lock.')) continue
    const entry: Record<string, unknown> = JSON.parse((await store.get(name)) ?? '')
    const older = Object.entries(entry).map(([key, value]) => [
      key,
      key.endsWith('AtMs') || key === 'atMs' ? Number(value) - days * DAY_MS : value,
    ])
    await store.set(name, JSON.stringify(Object.fromEntries(older)))
  }
}

test('a finished purchase is removed with its lock 30 days after its delivery, by the next purchase', async () => {
  expect(await buy('/a')).toBe('Sunny')
  await later(29)
  expect(await buy('/b')).toBe('Sunny')
  expect(await names('purchase.')).toHaveLength(2)
  await later(1.5)
  expect(await buy('/c')).toBe('Sunny')
  expect(await names('purchase.')).toHaveLength(2)
  expect(await names('lock.')).toHaveLength(2)
})

test('what was spent in the last 24 hours still counts', async () => {
  expect(await buy('/a')).toBe('Sunny')
  await later(31)
  for (const path of ['/b', '/c']) expect(await buy(path, {}, { maxSatPerDay: 20 })).toBe('Sunny')
  expect(await names('purchase.')).toHaveLength(2)
  expect(await buy('/d', {}, { maxSatPerDay: 20 })).toEqual(['budget_exceeded', 'unpaid'])
})

test('an entry that does not say what was spent stops purchases with a budget, and is not quoted', async () => {
  expect(await buy('/a', {}, { maxSatPerDay: 20 })).toBe('Sunny')
  const [name = ''] = await names('spent.')
  for (const text of ['{"amountSat":', 'null', '{}', '{"amountSat":"1","atMs":1,"expiresAtMs":1}']) {
    await store.set(name, text)
    expect(await buy('/b', {}, { maxSatPerDay: 20 })).toContain(`The entry ${name} of the store does not say how much was spent`)
  }
})

describe('is never removed', () => {
  test('a purchase that is made once for all time', async () => {
    expect(await buy('/a', { purchaseKey: 'order-17' })).toBe('Sunny')
    await later(365)
    await buy('/b')
    expect(await buy('/a', { purchaseKey: 'order-17' })).toEqual(['credential_refused', 'paid'])
    expect(seller.paid).toHaveLength(2)
  })

  test('a purchase that was paid and not delivered', async () => {
    seller.goods = ({ path }) => (path === '/a' ? { status: 500 } : { body: 'Sunny' })
    await buy('/a')
    await later(365)
    await buy('/b')
    expect(await seller.buyer({ store }).unfinished()).toMatchObject([{ state: 'paid' }])
  })

  test('an L402 credential without a time, which may still be accepted', async () => {
    seller.challenge = (invoice) => `L402 macaroon="AgE=", invoice="${invoice}"`
    expect(await buy('/a')).toBe('Sunny')
    await later(365)
    await buy('/b')
    seller.accept()
    expect([await buy('/a'), seller.paid.length]).toEqual(['Sunny', 2])
  })
})

test('a purchase that another call works on is left for the next time', async () => {
  expect(await buy('/a')).toBe('Sunny')
  const [name = ''] = await names('purchase.')
  const lock = await acquireLock(store, name.slice('purchase.'.length), new AbortController().signal)
  await later(31)
  await buy('/b')
  expect(await names('purchase.')).toContain(name)
  await lock.release()
  await buy('/c')
  expect(await names('purchase.')).not.toContain(name)
})

test('a purchase is not removed by a process that was suspended and has lost its lock: what was bought meanwhile is kept', async () => {
  expect(await buy('/a')).toBe('Sunny')
  await later(31)
  const [name = ''] = await names('purchase.')
  const old = await store.get(name)
  let isSuspended = false
  /** Suspends the process while it holds the lock of the purchase. Another process assumes that it is dead, and buys the same. */
  const get: PurchaseStore['get'] = async (wanted) => {
    const [lock = ''] = wanted === name && !isSuspended ? await names(`lock.${name.slice('purchase.'.length)}.`) : []
    if (lock === '' || JSON.parse((await store.get(lock)) ?? '').isReleased) return store.get(wanted)
    isSuspended = true
    await store.set(lock, JSON.stringify({ token: 'dead', isReleased: true }))
    seller.goods = () => ({ status: 500 })
    await buy('/a')
    return old
  }
  await buy('/b', {}, { store: { ...store, get } })
  expect([isSuspended, seller.paid.length]).toEqual([true, 3])
  seller.accept()
  seller.goods = () => ({ body: 'Sunny' })
  expect([await buy('/a'), seller.paid.length]).toEqual(['Sunny', 3])
})

test('a call looks at ten purchases at most, and the next calls at the others', async () => {
  for (let count = 0; count < 12; count++) await buy(`/${count}`)
  await later(31)
  const pay = seller.buyer({ store })
  expect(await outcomeOf(pay.fetch(`${seller.url}/a`))).toBe('Sunny')
  // The purchase that the call itself makes may be one of the ten.
  expect([3, 4]).toContain((await names('purchase.')).length)
  expect(await outcomeOf(pay.fetch(`${seller.url}/b`))).toBe('Sunny')
  expect(await names('purchase.')).toHaveLength(2)
})
