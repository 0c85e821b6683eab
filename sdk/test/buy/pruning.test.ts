import { beforeEach, describe, expect, test, vi } from 'vitest'
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
/** Makes everything in the store older. The clock stays, because invoices expire. */
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
/** Pruning is not waited for. */
const turns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 300))

test('a finished purchase is removed with its lock 30 days after its delivery, by the next purchase', async () => {
  expect(await buy('/a')).toBe('Sunny')
  await later(29)
  expect(await buy('/b')).toBe('Sunny')
  await turns()
  expect(await names('purchase.')).toHaveLength(2)
  await later(1.5)
  expect(await buy('/c')).toBe('Sunny')
  await vi.waitFor(async () => expect(await names('purchase.')).toHaveLength(2))
  await vi.waitFor(async () => expect(await names('lock.')).toHaveLength(2))
})

test('what was spent in the last 24 hours still counts', async () => {
  expect(await buy('/a')).toBe('Sunny')
  await later(31)
  for (const path of ['/b', '/c']) expect(await buy(path, {}, { maxSatPerDay: 20 })).toBe('Sunny')
  await vi.waitFor(async () => expect(await names('purchase.')).toHaveLength(2))
  expect(await buy('/d', {}, { maxSatPerDay: 20 })).toEqual(['budget_exceeded', 'unpaid'])
})

describe('is never removed', () => {
  test('a purchase that is made once for all time', async () => {
    expect(await buy('/a', { purchaseKey: 'order-17' })).toBe('Sunny')
    await later(365)
    await buy('/b')
    await turns()
    expect(await buy('/a', { purchaseKey: 'order-17' })).toEqual(['credential_refused', 'paid'])
    expect(seller.paid).toHaveLength(2)
  })

  test('a purchase that was paid and not delivered', async () => {
    seller.goods = ({ path }) => (path === '/a' ? { status: 500 } : { body: 'Sunny' })
    await buy('/a')
    await later(365)
    await buy('/b')
    await turns()
    expect(await seller.buyer({ store }).unfinished()).toMatchObject([{ state: 'paid' }])
  })

  test('an L402 credential without a time, which may still be accepted', async () => {
    seller.challenge = (invoice) => `L402 macaroon="AgE=", invoice="${invoice}"`
    expect(await buy('/a')).toBe('Sunny')
    await later(365)
    await buy('/b')
    await turns()
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
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(await names('purchase.')).toContain(name)
  await lock.release()
  await buy('/c')
  await vi.waitFor(async () => expect(await names('purchase.')).not.toContain(name))
})
