import { beforeEach, describe, expect, test } from 'vitest'
import { type Reply, Scripted } from '../../../cli/test/scripted.ts'
import { memoryStore, type PurchaseStore, purchaseOf } from '../../src/buy/index.ts'
import { outcomeOf, Seller } from './seller.ts'

/** The response to a paid request is a redirect. The buyer cannot know whether the seller or a server in front sent it. */

let seller: Seller
let other: Scripted
let store: PurchaseStore
beforeEach(async () => {
  seller = await new Seller().open()
  other = await new Scripted().open()
  other.reply = () => ({ body: 'Rainy' })
  store = memoryStore()
})

const to = (location: string, status = 302): Reply => ({ status, headers: { location } })
const buy = (init: RequestInit = {}, path = '/weather'): Promise<Response> =>
  seller.buyer({ store }).fetch(seller.url + path, init)
const paths = (): string[] => seller.got.map(({ path }) => path)

describe('C80: a redirect of a paid response', () => {
  test.each([301, 302, 303, 307, 308])('with %i is the response, with its Location, and is not followed', async (status) => {
    for (const target of [`${other.url}/file`, '/file']) {
      seller.goods = () => to(target, status)
      const response = await buy({}, `/${target.length}`)
      expect([response.status, response.headers.get('location')]).toEqual([status, target])
      expect(purchaseOf(response)).toMatchObject({ amountSat: 10 })
    }
    expect([other.got, paths().includes('/file'), seller.paid.length]).toEqual([[], false, 2])
  })

  test('to a maintenance page is no delivery: the next call presents the same credential and pays nothing', async () => {
    const [sell, sent] = [seller.reply, [] as unknown[]]
    let isDown = true
    seller.reply = (got) => {
      if (got.path === '/maintenance') return { body: 'Back in five minutes' }
      if (got.authorization) sent.push(got.authorization)
      return isDown && got.authorization ? to('/maintenance') : sell(got)
    }
    expect((await buy()).status).toBe(302)
    expect(await seller.buyer({ store }).unfinished()).toMatchObject([{ state: 'paid' }])
    isDown = false
    expect(await outcomeOf(buy())).toBe('Sunny')
    expect([sent.length, new Set(sent).size, seller.paid.length]).toEqual([2, 1, 1])
  })

  test('is returned again by the next call if the credential is still accepted, and is not paid again if it is used up', async () => {
    seller.goods = () => to(other.url)
    expect((await buy()).status).toBe(302)
    seller.accept()
    expect((await buy()).headers.get('location')).toBe(other.url)
    expect(await outcomeOf(buy())).toEqual(['credential_refused', 'paid'])
    expect([other.got, seller.paid.length]).toEqual([[], 1])
  })

  test.each([
    ['Payment-Receipt', 302],
    ['PAYMENT-RESPONSE', 303],
    ['Payment-Receipt', 304],
  ])('with a receipt in %s and status %i is a delivery: the next call buys again', async (receipt, status) => {
    seller.goods = () => ({ status, headers: { location: other.url, [receipt]: 'e30' } })
    expect((await buy()).status).toBe(status)
    expect(await seller.buyer({ store }).unfinished()).toEqual([])
    expect((await buy()).status).toBe(status)
    expect([other.got, seller.paid.length]).toEqual([[], 2])
  })

  test('with a credential that was delivered before: nothing is paid, and the new address can be bought', async () => {
    expect(await outcomeOf(buy())).toBe('Sunny')
    const sell = seller.reply
    seller.reply = (got) => (got.path === '/weather' ? to('/v2/weather', 301) : sell(got))
    for (let round = 0; round < 2; round++) expect((await buy()).headers.get('location')).toBe('/v2/weather')
    expect([paths().includes('/v2/weather'), seller.paid.length]).toEqual([false, 1])
    expect(await outcomeOf(buy({}, '/v2/weather'))).toBe('Sunny')
    expect(seller.paid).toHaveLength(2)
  })
})
