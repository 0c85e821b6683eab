import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { withSteadyBoundary } from '../../src/buy/form.ts'
import { type BuyInit, memoryStore, type PurchaseStore } from '../../src/buy/index.ts'
import { outcomeOf, Seller } from './seller.ts'

/** A call that is repeated after a crash is recognized, so it is not paid again. */

let seller: Seller
let store: PurchaseStore
beforeEach(async () => {
  seller = await new Seller().open()
  seller.goods = () => ({ status: 500 })
  store = memoryStore()
})

const form = (city = 'Zürich'): FormData => {
  const data = new FormData()
  data.set('city', city)
  data.set('photo', new Blob([Uint8Array.of(0, 255, 13, 10)]), 'photo.png')
  return data
}
const post = (body: NonNullable<BuyInit['body']>, more: BuyInit = {}): Promise<Response> =>
  seller.buyer({ store }).fetch(seller.url, { method: 'POST', body, ...more })

describe('a form', () => {
  test('is the same purchase when it is made again, by content', async () => {
    for (let round = 0; round < 2; round++) await outcomeOf(post(form()))
    await outcomeOf(seller.buyer({ store }).fetch(new Request(seller.url, { method: 'POST', body: form() })))
    expect(seller.paid).toHaveLength(1)
    await outcomeOf(post(form('Basel')))
    expect(seller.paid).toHaveLength(2)
  })

  test('is sent with a boundary that does not change, and can be parsed', async () => {
    const sent: [string, Buffer][] = []
    seller.got.length = 0
    for (let round = 0; round < 2; round++) await outcomeOf(post(form(), { purchaseKey: String(round) }))
    for (const { headers, body } of seller.got) sent.push([headers['content-type'] ?? '', body])
    expect(sent).toHaveLength(4)
    for (const [type, body] of sent) {
      expect([type, body]).toEqual(sent[0])
      const parsed = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
      expect(parsed.get('city')).toBe('Zürich')
      expect([...new Uint8Array(await (parsed.get('photo') as File).arrayBuffer())]).toEqual([0, 255, 13, 10])
    }
  })
})

test.each([
  ['inside a line', 'see --drawn and drawn'],
  ['at the beginning of a longer line', 'a\r\n--drawnout\r\nb'],
  ['after a line feed alone', 'a\n--drawn\r\nb'],
  ['without its dashes', 'a\r\ndrawn\r\nb'],
])('a form whose value contains the boundary %s is sent with that value', (_where, value) => {
  const part = (name: string, text: string): string =>
    `--drawn\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
  const headers = new Headers({ 'content-type': 'multipart/form-data; boundary=drawn' })
  const sha256 = (data: Uint8Array): Uint8Array => createHash('sha256').update(data).digest()
  const body = `${part('a', value)}${part('b', 'c')}--drawn--\r\n`
  const steady = Buffer.from(withSteadyBoundary({ sha256 }, headers, Buffer.from(body))).toString()
  const name = headers.get('content-type')?.split('=')[1]
  expect(name).toMatch(/^[0-9a-f]{5}$/)
  expect(steady.split(`--${name}`)).toHaveLength(4)
  expect(steady).toContain(`\r\n\r\n${value}\r\n--${name}`)
})

test('a purchaseKey names the purchase, whatever the body says', async () => {
  for (const at of ['1', '2']) await outcomeOf(post(JSON.stringify({ at }), { purchaseKey: 'order-17' }))
  expect(seller.paid).toHaveLength(1)
  await outcomeOf(post('{}', { purchaseKey: 'order-18' }))
  expect(seller.paid).toHaveLength(2)
})
