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

/** A boundary as long as those that `fetch` generates. */
const DRAWN = '----formdata-undici-012345678901'
const sha256 = (data: Uint8Array): Uint8Array => createHash('sha256').update(data).digest()
const part = (name: string, text: string, boundary = DRAWN): string =>
  `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
function steadied(body: string | Buffer, boundary = DRAWN): { steady: Buffer; type: string } {
  const headers = new Headers({ 'content-type': `multipart/form-data; boundary=${boundary}` })
  const steady = Buffer.from(withSteadyBoundary({ sha256 }, headers, Buffer.from(body)))
  return { steady, type: headers.get('content-type') ?? '' }
}

test.each([
  ['inside a line', `see --${DRAWN} and ${DRAWN}`],
  ['without its dashes', `a\r\n${DRAWN}\r\nb`],
])('a form whose value contains the boundary %s is sent with that value', (_where, value) => {
  const { steady, type } = steadied(`${part('a', value)}${part('b', 'c')}--${DRAWN}--\r\n`)
  const name = type.split('=')[1] ?? ''
  expect(name).toMatch(/^[0-9a-f]{32}$/)
  expect(steady.toString().split(`--${name}`)).toHaveLength(4)
  expect(steady.toString()).toContain(`\r\n\r\n${value}\r\n--${name}`)
})

describe('a form that `fetch` has not made is sent as it is', () => {
  const end = `--${DRAWN}--\r\n`
  test.each([
    ['with blanks after a boundary', part('a', '1').replace('\r\n', ' \r\n') + part('b', '2') + end],
    ['with a boundary at the beginning of a longer line', part('a', `x\r\n--${DRAWN}out\r\ny`) + end],
    ['with a boundary after a line feed alone', part('a', `x\n--${DRAWN}\r\ny`) + end],
    ['with a text before the first part', `preamble\r\n${part('a', '1')}${end}`],
    ['with a text after the last part', `${part('a', '1')}${end}epilogue`],
    ['with a second end', `${part('a', '1')}${end}${end}`],
    ['without an end', part('a', '1')],
    ['with a short boundary', `${part('a', '1', 'abc')}--abc--\r\n`, 'abc'],
    ['with a boundary in another form', `${part('a', '1')}${end}`, `${DRAWN}; charset=utf-8`],
  ])('%s', (_which, body, boundary = DRAWN) => {
    const { steady, type } = steadied(body, boundary)
    expect([steady.toString(), type]).toEqual([body, `multipart/form-data; boundary=${boundary}`])
  })
})
