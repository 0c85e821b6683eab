import { beforeEach, describe, expect, test } from 'vitest'
import { type Reply, Scripted } from '../../../cli/test/scripted.ts'
import { memoryStore, type PurchaseStore, purchaseOf } from '../../src/buy/index.ts'
import { outcomeOf, Seller } from './seller.ts'

/** The response to a paid request is a redirect. The seller counts it as delivered, so the credential is used up. */

let seller: Seller
let other: Scripted
let store: PurchaseStore
beforeEach(async () => {
  seller = await new Seller().open()
  other = await new Scripted().open()
  other.reply = () => ({ body: 'Sunny' })
  store = memoryStore()
})

const to = (location: string, status = 302): Reply => ({ status, headers: { location } })
const buy = (init: RequestInit = {}): Promise<Response> => seller.buyer({ store }).fetch(`${seller.url}/weather`, init)

describe('C80: a redirect of a paid response', () => {
  test.each([301, 302, 303, 307, 308])(
    'with %i is followed to another server, which gets neither credential nor headers',
    async (status) => {
      seller.goods = () => to(`${other.url}/file`, status)
      const response = await buy({ headers: { 'x-secret': 'mine' } })
      expect([await response.text(), response.url]).toEqual(['Sunny', `${other.url}/file`])
      expect(purchaseOf(response)).toMatchObject({ amountSat: 10 })
      expect(other.got).toMatchObject([{ method: 'GET', path: '/file', authorization: undefined }])
      expect(other.got[0]?.headers['x-secret']).toBeUndefined()
      expect([seller.paid.length, await seller.buyer({ store }).unfinished()]).toEqual([1, []])
    },
  )

  test('to the same server gets the credential; back from another one it does not', async () => {
    const replies = [to('/second'), to(other.url), { body: 'Rainy' }]
    seller.reply = ({ authorization, path }) => (authorization || path === '/third' ? (replies.shift() ?? 'cut') : seller.bill())
    other.reply = () => to(`${seller.url}/third`)
    expect(await outcomeOf(buy())).toBe('Rainy')
    const paid = seller.got.map(({ path, authorization }) => [path, authorization !== undefined])
    expect(paid).toEqual([
      ['/weather', false],
      ['/weather', true],
      ['/second', true],
      ['/third', false],
    ])
    expect(seller.paid).toHaveLength(1)
  })

  test('with 303 after POST is fetched with GET and without the body', async () => {
    seller.goods = () => to(other.url, 303)
    expect(await outcomeOf(buy({ method: 'POST', body: 'order' }))).toBe('Sunny')
    expect(other.got).toMatchObject([{ method: 'GET', body: Buffer.alloc(0) }])
    expect(other.got[0]?.headers['content-type']).toBeUndefined()
  })

  test.each([
    ['that would send the body to another server', () => to(other.url, 307), { method: 'POST', body: 'order' }],
    ['that the caller wants to see', () => to(other.url), { redirect: 'manual' }],
    ['to an address that is not http', () => to('ftp://files.test/'), {}],
  ] as [string, () => Reply, RequestInit][])('%s is the response, and was delivered', async (_which, goods, init) => {
    seller.goods = goods
    const response = await buy(init)
    await response.text()
    expect([response.status >= 300 && response.status < 400, response.headers.has('location')]).toEqual([true, true])
    expect([other.got, await seller.buyer({ store }).unfinished()]).toEqual([[], []])
  })

  test('that the caller forbids is an error that says that it was paid', async () => {
    seller.goods = () => to(other.url)
    expect(await outcomeOf(buy({ redirect: 'error' }))).toEqual(['bad_redirection', 'paid'])
    expect(other.got).toEqual([])
  })

  test.each([
    ['asks for payment', ['credential_refused', 'paid']],
    ['does not respond', ['connection_failed', 'paid']],
  ])('is not paid again if its target %s, by later calls neither', async (what, outcome) => {
    seller.goods = () => to(other.url)
    other.reply = () => (what === 'does not respond' ? 'cut' : seller.bill())
    expect(await outcomeOf(buy())).toEqual(outcome)
    expect(await outcomeOf(buy())).toEqual(['credential_refused', 'paid'])
    expect(seller.paid).toHaveLength(1)
  })

  test('is followed with a reusable credential too, and its target is not paid', async () => {
    seller.goods = () => ({ body: 'Sunny' })
    expect(await outcomeOf(buy())).toBe('Sunny')
    seller.accept()
    seller.goods = () => to(other.url)
    expect(await outcomeOf(buy())).toBe('Sunny')
    seller.accept()
    other.reply = () => seller.bill()
    expect(await outcomeOf(buy())).toEqual(['credential_refused', 'paid'])
    expect(seller.paid).toHaveLength(1)
  })
})
