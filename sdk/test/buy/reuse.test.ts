import { beforeEach, describe, expect, test } from 'vitest'
import type { Reply } from '../../../cli/test/scripted.ts'
import { type Buyer, memoryStore } from '../../src/buy/index.ts'
import { Budget } from '../../src/buy/store/budget.ts'
import { outcomeOf, Seller } from './seller.ts'

/** A delivered L402 credential is used again while it is accepted. */

let seller: Seller
let pay: Buyer
let toCredential: Reply
beforeEach(async () => {
  seller = await new Seller().open()
  seller.reply = ({ authorization }) => (authorization === undefined ? seller.bill() : toCredential)
  toCredential = { body: 'Sunny' }
  pay = seller.buyer()
})
const statusOf = async (path = ''): Promise<number> => {
  const response = await pay.fetch(seller.url + path)
  await response.text()
  return response.status
}

describe('the server answers a credential that was delivered before', () => {
  test.each([400, 403, 404, 409])('%i is about the request: it is returned, and nothing is paid', async (status) => {
    expect(await statusOf()).toBe(200)
    toCredential = { status }
    expect([await statusOf(), seller.paid.length]).toEqual([status, 1])
  })

  test.each<[string, Reply]>([
    ['401', { status: 401 }],
    ['402', { status: 402 }],
    ['403 with a challenge', { status: 403, headers: { 'www-authenticate': 'L402' } }],
  ])('%s: it has lapsed, so another one is bought', async (_, reply) => {
    expect(await statusOf()).toBe(200)
    const [lapsed] = seller.got.flatMap(({ authorization }) => authorization ?? [])
    seller.reply = ({ authorization }) =>
      authorization === undefined ? seller.bill() : authorization === lapsed ? reply : { body: 'Sunny' }
    expect([await statusOf(), seller.paid.length]).toEqual([200, 2])
  })
})

describe('behind a redirect', () => {
  let target: string
  beforeEach(() => {
    target = '/1'
    seller.reply = ({ path, authorization }) => {
      if (path === '/') return { status: 302, headers: { location: target } }
      if (path !== target) return { status: 403, body: 'The link has expired.' }
      return authorization === undefined ? seller.bill() : toCredential
    }
  })

  test('it is used again at the same address', async () => {
    for (let round = 0; round < 2; round++) expect(await statusOf('/')).toBe(200)
    expect(seller.paid).toHaveLength(1)
  })

  test('that now leads elsewhere, it is sent neither to the new nor to the old address', async () => {
    expect(await statusOf('/')).toBe(200)
    const [old] = seller.got.flatMap(({ authorization }) => authorization ?? [])
    seller.got.length = 0
    target = '/2'
    expect([await statusOf('/'), seller.paid.length]).toEqual([200, 2])
    expect(seller.got.map(({ path, authorization }) => [path, authorization === old])).toEqual([
      ['/', false],
      ['/2', false],
      ['/2', false],
    ])
  })

  test('to another server, a new purchase begins at the first one with its headers', async () => {
    const front = await new Seller().open()
    front.reply = () => ({ status: 302, headers: { location: `${seller.url}${target}` } })
    const init = { headers: { 'x-mine': 'yes' } }
    for (target of ['/1', '/2']) expect(await outcomeOf(pay.fetch(front.url, init))).toBe('Sunny')
    expect(front.got.map(({ headers }) => headers['x-mine'])).toEqual(['yes', 'yes'])
    expect(seller.got.every(({ headers }) => headers['x-mine'] === undefined)).toBe(true)
  })
})

test('maxSatPerDay holds for purchases that continue at the same time in several processes', async () => {
  const store = memoryStore()
  const longAgo = JSON.stringify({ amountSat: 10, atMs: Date.now() - 2 * 86_400_000, expiresAtMs: Date.now() + 60_000 })
  for (const name of ['a', 'b']) await store.set(`spent.${name}`, longAgo)
  const price = { amountSat: 10, expiresAtMs: Date.now() + 60_000 }
  const results = await Promise.allSettled(
    ['a', 'b'].map((paymentHash) => new Budget(store, 10).renew({ paymentHash, ...price })),
  )
  const refused = ['a', 'b'].filter((_, at) => results[at]?.status === 'rejected')
  expect(refused.length).toBeGreaterThan(0)
  // A refusal leaves the entry as it was.
  for (const name of refused) expect(await store.get(`spent.${name}`)).toBe(longAgo)
})

test('a wallet that says after an error that nothing was paid is believed at once', async () => {
  const lost = async (): Promise<string> => {
    throw new Error('socket hang up')
  }
  let answer: 'failed' | undefined
  const wallet = {
    pay: () => {
      answer = 'failed'
      return lost()
    },
    lookUp: async () => answer,
  }
  pay = seller.buyer({ wallet })
  expect(await outcomeOf(pay.fetch(seller.url))).toEqual(['payment_failed', 'unpaid'])
  expect(await pay.unfinished()).toEqual([])
})
