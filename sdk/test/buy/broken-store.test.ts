import { beforeEach, describe, expect, test } from 'vitest'
import { memoryStore, type PurchaseStore } from '../../src/buy/index.ts'
import { outcomeOf, Seller } from './seller.ts'

/** If the store fails, for example because the disk is full, the customer still gets what was bought. */

let seller: Seller
let store: PurchaseStore
let isBroken: (name: string) => boolean
beforeEach(async () => {
  seller = await new Seller().open()
  isBroken = () => false
  const inner = memoryStore()
  const working = <T>(name: string, act: () => Promise<T>): Promise<T> =>
    isBroken(name) ? Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' })) : act()
  store = {
    get: (name) => working(name, () => inner.get(name)),
    set: (name, text) => working(name, () => inner.set(name, text)),
    add: (name, text) => working(name, () => inner.add(name, text)),
    delete: (name) => working(name, () => inner.delete(name)),
    list: (prefix) => working(prefix, () => inner.list(prefix)),
  }
})

const paysThenBreaks = async (invoice: string): Promise<string> => {
  isBroken = () => true
  return seller.pay(invoice)
}

describe('broken after the payment', () => {
  test('what was bought is delivered, and the next call does not hang', async () => {
    const pay = seller.buyer({ store, wallet: paysThenBreaks })
    expect(await outcomeOf(pay.fetch(seller.url))).toBe('Sunny')
    isBroken = () => false
    expect(await pay.unfinished()).toEqual([])
    expect(await outcomeOf(pay.fetch(seller.url))).toBe('Sunny')
    expect(seller.paid).toHaveLength(2)
  })

  test('a purchase that was not delivered is presented by the next call and not paid again, even if the wallet cannot be asked', async () => {
    const pay = seller.buyer({ store, wallet: paysThenBreaks })
    seller.goods = () => 'cut'
    const init = { method: 'POST' }
    expect(await outcomeOf(pay.fetch(seller.url, init))).toEqual(['connection_failed', 'paid'])
    isBroken = () => false
    expect(await pay.unfinished()).toMatchObject([{ state: 'paid' }])
    seller.accept()
    seller.goods = () => ({ body: 'Sunny' })
    expect(await outcomeOf(pay.fetch(seller.url, init))).toBe('Sunny')
    expect(seller.paid).toHaveLength(1)
  })

  test('another buyer waits for the lock until it can be released, not forever', async () => {
    const [one, other] = [seller.buyer({ store, wallet: paysThenBreaks }), seller.buyer({ store })]
    expect(await outcomeOf(one.fetch(seller.url))).toBe('Sunny')
    isBroken = () => false
    // The other buyer does not know the preimage, and the wallet cannot be asked.
    expect(await outcomeOf(other.fetch(seller.url))).toEqual(['payment_unknown', 'unknown'])
  })
})

test('broken when the response arrives: it can be read, and the next call buys again', async () => {
  const pay = seller.buyer({ store })
  seller.goods = () => {
    isBroken = () => true
    return { body: 'Sunny' }
  }
  for (let round = 1; round <= 2; round++) {
    isBroken = () => false
    expect(await outcomeOf(pay.fetch(seller.url))).toBe('Sunny')
    expect(seller.paid).toHaveLength(round)
  }
})

test('broken before the payment: nothing is paid', async () => {
  isBroken = (name) => name.startsWith('spent.')
  expect(await outcomeOf(seller.buyer({ store }).fetch(seller.url))).toMatch(/no space left/)
  expect(seller.paid).toEqual([])
})

test('an entry that cannot be read stops only its own call, whose error does not quote it', async () => {
  seller.goods = () => ({ status: 500 })
  const pay = seller.buyer({ store })
  await outcomeOf(pay.fetch(`${seller.url}/bad`))
  const [bad = ''] = await store.list('purchase.')
  await store.set(bad, 'L402 AgE=:secret')
  await outcomeOf(pay.fetch(`${seller.url}/good`))
  const [left, ...more] = await pay.unfinished()
  expect([left?.url, more]).toEqual([`${seller.url}/good`, []])
  await pay.forget(left?.paymentHash ?? '')
  expect(await outcomeOf(pay.fetch(`${seller.url}/bad`))).toMatch(/^TypeError: (?!.*L402).*cannot be read/)
  expect(seller.paid).toHaveLength(2)
})
