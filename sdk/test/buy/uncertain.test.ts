import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  challengeOf,
  couldNot,
  FOUND_PAID,
  failedAt,
  HASH,
  inOrder,
  NOT_FOUND,
  PENDING,
  PREIMAGE,
  type Reply,
  Scripted,
  SENT,
} from '../../../cli/test/scripted.ts'
import { NOWHERE } from '../../../server/test/support/payments.ts'
import { temporaryDirectory } from '../../../server/test/support/server.ts'
import { type Buyer, buyer, memoryStore, NotPaidError, type PurchaseStore, type WalletOptions } from '../../src/buy/index.ts'

/** Nothing is called unpaid unless that is certain, and what may have been paid is not paid again. The node responds as phoenixd does. */

const CREDENTIAL = `L402 AgE=:${PREIMAGE}`
let shop: Scripted
let node: Scripted
let store: PurchaseStore
let challenge: string
let ask: () => Reply
let payInvoice: () => Reply

beforeAll(async () => {
  ;[shop, node] = await Promise.all([new Scripted().open(), new Scripted().open()])
  shop.reply = ({ authorization }) =>
    authorization === undefined ? { status: 402, headers: { 'www-authenticate': challenge } } : { body: 'Sunny' }
  node.reply = ({ method, path }) =>
    path === '/getinfo' ? { body: '{"chain":"mainnet"}' } : method === 'POST' ? payInvoice() : ask()
})
beforeEach(() => {
  shop.got.length = node.got.length = 0
  store = memoryStore()
  challenge = challengeOf().challenge
  ask = inOrder(NOT_FOUND)
  payInvoice = inOrder(SENT)
})

const phoenixd = (): WalletOptions => ({ url: node.url, password: 'secret' })
const buyerWith = (wallet: WalletOptions): Buyer => buyer({ wallet, maxSatPerRequest: 1_000, maxSatPerDay: 10, store })
/** The body of the response, the code and outcome of a PurchaseError, or the name of another error. */
const outcomeOf = (wallet: WalletOptions, init?: RequestInit): Promise<unknown> =>
  buyerWith(wallet)
    .fetch(shop.url, init)
    .then((response) => response.text())
    .catch(({ code, outcome, name }) => (outcome === undefined ? name : [code, outcome]))
/** A purchase whose caller gave up while the node was paying. */
async function interrupt(): Promise<void> {
  const controller = new AbortController()
  payInvoice = () => {
    controller.abort()
    return 'cut'
  }
  expect(await outcomeOf(phoenixd(), { signal: controller.signal })).toBe('AbortError')
  node.got.length = 0
}
const payments = (): number => node.got.filter(({ method }) => method === 'POST').length
const presented = (): string[] => shop.got.flatMap(({ authorization }) => authorization ?? [])

describe('phoenixd', () => {
  test('loses its answer: it is asked by the payment hash, and nothing is paid twice', async () => {
    payInvoice = inOrder('cut')
    ask = inOrder(NOT_FOUND, { status: 502 }, PENDING, FOUND_PAID)
    expect(await outcomeOf(phoenixd())).toBe('Sunny')
    expect([payments(), presented()]).toEqual([1, [CREDENTIAL]])
  })

  test('does not know the payment afterwards: unknown; the next call asks first', async () => {
    payInvoice = inOrder('cut')
    expect(await outcomeOf(phoenixd())).toEqual(['payment_unknown', 'unknown'])
    ask = inOrder(FOUND_PAID)
    expect(await outcomeOf(phoenixd())).toBe('Sunny')
    expect([payments(), presented()]).toEqual([1, [CREDENTIAL]])
  })

  test.each<[string, Reply, string]>([
    ['could not pay', couldNot('not enough funds'), 'payment_failed'],
    ['rejects the password', { status: 401 }, 'wallet_password'],
    ['rejects the request', { status: 400 }, 'payment_refused'],
  ])('%s: certainly unpaid, nothing is kept, and the budget is free again', async (_, reply, code) => {
    payInvoice = inOrder(reply, SENT)
    expect(await outcomeOf(phoenixd())).toEqual([code, 'unpaid'])
    expect([await buyerWith(phoenixd()).unfinished(), await store.list('spent.')]).toEqual([[], []])
    expect(await outcomeOf(phoenixd())).toBe('Sunny')
  })

  test('fails a resumed payment: an earlier attempt may still be made, so the purchase and its budget stay', async () => {
    await interrupt()
    payInvoice = inOrder(couldNot('not enough funds'))
    expect(await outcomeOf(phoenixd())).toEqual(['payment_failed', 'unknown'])
    expect(await buyerWith(phoenixd()).unfinished()).toMatchObject([{ state: 'paying', paymentHash: HASH }])
    expect(await store.list('spent.')).toEqual([`spent.${HASH}`])
  })

  test('cannot be reached: unpaid', async () => {
    expect(await outcomeOf({ url: NOWHERE, password: 'secret' })).toEqual(['wallet_unreachable', 'unpaid'])
  })

  test('is not the one that was asked to pay: nothing is paid', async () => {
    await interrupt()
    expect(await outcomeOf(async () => PREIMAGE)).toEqual(['wallet_mismatch', 'unknown'])
  })

  test('on another network is not asked to pay', async () => {
    const testnet = await new Scripted().open()
    testnet.reply = () => ({ body: '{"chain":"testnet"}' })
    expect(await outcomeOf({ url: testnet.url, password: 'secret' })).toEqual(['wrong_network', 'unpaid'])
    expect(testnet.got.map(({ path }) => path)).toEqual(['/getinfo'])
  })
})

describe('an old invoice', () => {
  /** Leaves a purchase whose outcome is unknown and whose invoice expired this long ago. */
  async function leave(secondsAgo: number): Promise<void> {
    await interrupt()
    const old = challengeOf(HASH, Math.floor(Date.now() / 1000) - 3_600 - secondsAgo)
    const [name = ''] = await store.list('purchase.')
    await store.set(name, JSON.stringify({ ...JSON.parse((await store.get(name)) ?? ''), ...old }))
    payInvoice = inOrder(SENT)
  }

  test.each<[string, number, Reply]>([
    ['its invoice has just expired', 0, NOT_FOUND],
    ['an attempt failed, but another may be waiting', 0, failedAt(1)],
    ['the node does not report anything', 600, { status: 502 }],
  ])('is not replaced if %s', async (_, secondsAgo, reply) => {
    await leave(secondsAgo)
    ask = inOrder(reply)
    expect([await outcomeOf(phoenixd()), payments()]).toEqual([['payment_unknown', 'unknown'], 0])
  })

  test('is replaced a minute after its expiry, if the node does not know it', async () => {
    await leave(120)
    challenge = challengeOf(HASH, Math.floor(Date.now() / 1000) - 60).challenge
    expect(await outcomeOf(phoenixd())).toBe('Sunny')
    expect([payments(), await store.list('spent.')]).toEqual([1, [`spent.${HASH}`]])
  })

  test('is not replaced while it is valid by the seller’s clock; the purchase is kept', async () => {
    await leave(120)
    challenge = challengeOf(HASH, Math.floor(Date.now() / 1000) - 200).challenge
    expect([await outcomeOf(phoenixd()), payments()]).toEqual([['payment_unknown', 'unknown'], 0])
    expect(await buyerWith(phoenixd()).unfinished()).toMatchObject([{ state: 'paying' }])
  })
})

describe('a function', () => {
  let calls = 0
  beforeEach(() => {
    calls = 0
  })
  const lost = async (): Promise<string> => {
    calls++
    throw new Error('socket hang up')
  }
  const paying = async (): Promise<string> => {
    calls++
    return PREIMAGE
  }

  test('that throws may have paid: it is not called again, and a preimage that is handed in completes the purchase', async () => {
    for (let round = 0; round < 3; round++) expect(await outcomeOf(lost)).toEqual(['payment_unknown', 'unknown'])
    expect([calls, presented()]).toEqual([1, []])
    const pay = buyerWith(lost)
    await expect(pay.complete(HASH, '22'.repeat(32))).rejects.toMatchObject({ code: 'wrong_preimage' })
    await pay.complete(HASH, PREIMAGE)
    expect(await outcomeOf(lost)).toBe('Sunny')
    expect([calls, presented()]).toEqual([1, [CREDENTIAL]])
  })

  test('that throws NotPaidError has not paid: the next call may pay', async () => {
    const refusing = async (): Promise<string> => {
      throw new NotPaidError('no route')
    }
    expect(await outcomeOf(refusing)).toEqual(['payment_failed', 'unpaid'])
    expect(await outcomeOf(paying)).toBe('Sunny')
  })

  test.each<[string, string | 'failed' | undefined, unknown, number]>([
    ['was paid', PREIMAGE, 'Sunny', 1],
    ['failed', 'failed', 'Sunny', 2],
    ['does not know', undefined, ['payment_unknown', 'unknown'], 1],
  ])('with a second one that says that it %s', async (_, found, expected, count) => {
    expect(await outcomeOf(lost)).toEqual(['payment_unknown', 'unknown'])
    expect([await outcomeOf({ pay: paying, lookUp: async () => found }), calls]).toEqual([expected, count])
  })

  test('with a wrong preimage: nothing is presented, and it is not called again', async () => {
    const lying = async (): Promise<string> => {
      calls++
      return '22'.repeat(32)
    }
    expect(await outcomeOf(lying)).toEqual(['wrong_preimage', 'unknown'])
    expect(await outcomeOf(lying)).toEqual(['payment_unknown', 'unknown'])
    expect([calls, presented()]).toEqual([1, []])
  })

  test('in a process that is killed while it pays: the next process does not pay', async () => {
    const directory = temporaryDirectory()
    const file = fileURLToPath(new URL('killed-wallet.ts', import.meta.url))
    const child = fork(file, { execArgv: ['--import', 'tsx'], env: { ...process.env, URL: shop.url, DIRECTORY: directory } })
    await once(child, 'exit')
    const pay = buyer({ wallet: paying, maxSatPerRequest: 1_000, maxSatPerDay: 10, store: directory })
    await expect(pay.fetch(shop.url)).rejects.toMatchObject({ code: 'payment_unknown', outcome: 'unknown' })
    expect([calls, await pay.unfinished()]).toMatchObject([0, [{ state: 'paying', paymentHash: HASH }]])
  })

  test('that is under way when the caller gives up: the next call does not pay again', async () => {
    const controller = new AbortController()
    const slow = async (): Promise<string> => {
      calls++
      controller.abort()
      return PREIMAGE
    }
    await outcomeOf(slow, { signal: controller.signal })
    expect(await outcomeOf(paying)).toBe('Sunny')
    expect(calls).toBe(1)
  })
})
