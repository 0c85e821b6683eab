import { beforeEach, expect, test } from 'vitest'
import { outcomeOf, Seller } from './seller.ts'

/** Calls for the same thing at the same time make one purchase. */

const IN_PROGRESS = ['purchase_in_progress', 'unpaid']
let seller: Seller
beforeEach(async () => {
  seller = await new Seller().open()
})

test('a call that begins while another one pays for the same does not pay, even if that one is read to the end first', async () => {
  let later: Promise<unknown> | undefined
  const pay = seller.buyer({
    wallet: async (invoice) => {
      later ??= outcomeOf(pay.fetch(seller.url))
      // Gives the second call time to wait for the first one.
      await new Promise((resolve) => setTimeout(resolve, 200))
      return seller.pay(invoice)
    },
  })
  expect(await outcomeOf(pay.fetch(seller.url))).toBe('Sunny')
  expect([await later, seller.paid.length]).toEqual([IN_PROGRESS, 1])
})

test('if the call that paid was not served, the one that waited for it says that the money is spent', async () => {
  seller.goods = () => ({ status: 500, body: 'Broken' })
  let later: Promise<unknown> | undefined
  const pay = seller.buyer({
    wallet: async (invoice) => {
      later ??= outcomeOf(pay.fetch(seller.url))
      await new Promise((resolve) => setTimeout(resolve, 200))
      return seller.pay(invoice)
    },
  })
  expect(await outcomeOf(pay.fetch(seller.url))).toBe('Broken')
  expect([await later, seller.paid.length]).toEqual([['credential_refused', 'paid'], 1])
})

test('a call that begins while the response of another one is read says so', async () => {
  const pay = seller.buyer()
  const response = await pay.fetch(seller.url)
  expect(await outcomeOf(pay.fetch(seller.url))).toEqual(IN_PROGRESS)
  expect([await response.text(), seller.paid.length]).toEqual(['Sunny', 1])
  expect(await outcomeOf(pay.fetch(seller.url))).toBe('Sunny')
  expect(seller.paid).toHaveLength(2)
})
