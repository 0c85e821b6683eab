import { beforeEach, describe, expect, test } from 'vitest'
import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { memoryStore, NotPaidError, type PurchaseStore } from '../../src/buy/index.ts'
import { outcomeOf, Seller } from '../buy/seller.ts'

/** A call that is suspended for so long that another machine assumes it is dead, and buys the same. */

let seller: Seller
let base: PurchaseStore
beforeEach(async () => {
  seller = await new Seller().open()
  base = memoryStore()
})

const ONCE = { purchaseKey: 'order-17' }
const buy = (store: PurchaseStore, more = {}): Promise<unknown> =>
  outcomeOf(seller.buyer({ store, ...more }).fetch(`${seller.url}/a`, ONCE))

async function takeLock(): Promise<void> {
  for (const lock of await base.list('lock.')) await base.set(lock, JSON.stringify({ token: 'dead', isReleased: true }))
}

async function record(): Promise<Record<string, unknown>> {
  const [name = ''] = await base.list('purchase.')
  return JSON.parse((await base.get(name)) ?? '{}')
}

/** The store of the suspended call. `meanwhile` happens during one call of `method` for this prefix, after `skip` such calls. */
function suspendedAt(
  method: 'add' | 'list' | 'get' | 'set',
  prefix: string,
  meanwhile: () => Promise<unknown>,
  skip = 0,
): PurchaseStore {
  let left = skip
  const suspend = async (name: string): Promise<void> => {
    if (name.startsWith(prefix) && left-- === 0) await meanwhile()
  }
  const store = { ...base }
  const act = base[method] as (...args: unknown[]) => Promise<unknown>
  Object.assign(store, {
    [method]: async (name: string, ...more: unknown[]) => {
      const result = method === 'add' ? await act(name, ...more) : undefined
      await suspend(name)
      return method === 'add' ? result : act(name, ...more)
    },
  })
  return store
}

describe('a call that lost its lock', () => {
  test('before it keeps its purchase, does not replace that of the other call, and nothing is paid again', async () => {
    let other: unknown
    const store = suspendedAt('add', 'spent.', async () => {
      await takeLock()
      other = await buy(base)
    })
    expect([await buy(store), other]).toEqual([['purchase_in_progress', 'unpaid'], 'Sunny'])
    expect((await record()).state).toBe('delivered')
    await buy(base)
    expect(seller.paid).toHaveLength(1)
    expect(await base.list('spent.')).toHaveLength(1)
  })

  test('before it asks its wallet, does not touch the purchase of the other call', async () => {
    const store = suspendedAt(
      'set',
      'purchase.',
      async () => {
        await takeLock()
        await buy(base)
      },
      1,
    )
    await buy(store)
    expect(seller.paid).toHaveLength(1)
    expect((await record()).credential).toBeDefined()
  })

  test('while its wallet fails, does not remove the purchase of the other call', async () => {
    const wallet = async (): Promise<string> => {
      const [name = ''] = await base.list('purchase.')
      await takeLock()
      await base.delete(name)
      await buy(base)
      throw new NotPaidError('no route')
    }
    expect(await buy(base, { wallet })).toEqual(['payment_failed', 'unpaid'])
    expect((await record()).state).toBe('delivered')
  })

  test('while it pays, does not replace the purchase of the other call, and still gets what it paid for', async () => {
    let isFirst = true
    const wallet = async (invoice: string): Promise<string> => {
      if (isFirst) {
        isFirst = false
        const [name = ''] = await base.list('purchase.')
        await takeLock()
        await base.delete(name)
        await buy(base)
      }
      return seller.pay(invoice)
    }
    const before = buy(base, { wallet })
    expect(await before).toBe('Sunny')
    const [first] = seller.paid
    expect((await record()).invoice).toBe(first)
  })

  test('while it pays, and gets nothing for it, is still listed as unfinished', async () => {
    const wallet = async (invoice: string): Promise<string> => {
      const [name = ''] = await base.list('purchase.')
      await takeLock()
      await base.delete(name)
      await buy(base)
      seller.goods = () => ({ status: 500 })
      return seller.pay(invoice)
    }
    const paying = seller.buyer({ store: base, wallet })
    expect((await paying.fetch(`${seller.url}/a`, ONCE)).status).toBe(500)
    const [, lost] = seller.paid
    expect(await paying.unfinished()).toMatchObject([
      { url: `${seller.url}/a`, paymentHash: readInvoice(lost ?? '')?.paymentHash },
    ])
  })
})
