import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { thisMoment, VerifiedCache, verifiedKeyOf } from '../../src/gateway/verified-cache.ts'
import { lockingTransaction } from '../support/database.ts'
import { attenuate, credentialOf, l402Credential, macaroonIn } from '../support/gateway.ts'
import { newMerchant } from '../support/payments.ts'
import { eventually, startServer } from '../support/server.ts'

const PAID = { id: 'pay_1', protocol: 'l402', receipt: null } as const

describe('a verified credential', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  test('L402 53: is cached until it expires, counted from before the database reported its time', () => {
    const cache = new VerifiedCache()
    const since = thisMoment()
    vi.advanceTimersByTime(400)
    cache.set('key', PAID, { since, forMs: 1_000 })
    vi.advanceTimersByTime(599)
    expect(cache.get('key')).toBe(PAID)
    vi.advanceTimersByTime(1)
    expect(cache.get('key')).toBeUndefined()
  })

  test('L402 53: either clock can end it: the other may have been set back or stopped', () => {
    const since = thisMoment()
    const life = { since, forMs: 5_000 }
    const cache = new VerifiedCache()
    cache.set('key', PAID, life)
    vi.setSystemTime(since.wallMs + 5_000)
    expect(cache.get('key')).toBeUndefined()
    vi.setSystemTime(since.wallMs)
    expect(cache.get('key')).toBe(PAID)
    vi.advanceTimersByTime(5_000)
    vi.setSystemTime(since.wallMs)
    expect(cache.get('key')).toBeUndefined()
  })

  test('C37: is checked in the database again after a minute, however long it is valid; one without an expiry is not', () => {
    const cache = new VerifiedCache()
    cache.set('l402', PAID, { since: thisMoment(), forMs: Number.POSITIVE_INFINITY })
    cache.set('mpp', PAID)
    vi.advanceTimersByTime(59_999)
    expect([cache.get('l402'), cache.get('mpp')]).toEqual([PAID, PAID])
    vi.advanceTimersByTime(1)
    expect([cache.get('l402'), cache.get('mpp')]).toEqual([undefined, PAID])
    cache.set('over', PAID, { since: thisMoment(), forMs: -1 })
    expect(cache.get('over')).toBeUndefined()
  })

  test('at least the last ten thousand are cached, and at most twice as many', () => {
    const cache = new VerifiedCache()
    for (let n = 0; n < 50_000; n++) cache.set(`key ${n}`, PAID)
    const known = Array.from({ length: 50_000 }, (_, n) => cache.get(`key ${n}`)).filter((one) => one !== undefined)
    expect(cache.get('key 40000')).toBe(PAID)
    expect(known.length).toBeLessThanOrEqual(20_000)
  })

  test('the key depends on every byte of account, payment and credential, and reveals none of them', () => {
    const key = (accountId: string, id: string, credential: string): string => verifiedKeyOf({ accountId }, id, credential)
    const keys = [key('a', 'p', 'c'), key('b', 'p', 'c'), key('a', 'q', 'c'), key('a', 'p', 'C'), key('a', 'p', 'c ')]
    expect(new Set(keys).size).toBe(keys.length)
    expect(key('acct', 'pay', 'L402 secret:preimage')).toMatch(/^[A-Za-z0-9+/]{43}=$/)
  })
})

test('C38, L402 53: a repeated validation needs no store, in either protocol, and expires by the database’s clock', async () => {
  const server = await startServer({ env: { LOG_LEVEL: 'warn', NODE_PRICE_SAT_PER_DAY: '0' } })
  const sql = server.sql()
  const [merchant, stranger] = [await newMerchant(server), await newMerchant(server)]
  const nodeId = (await merchant.owner.createReady()).node.id
  const [mpp, l402] = [await merchant.createPaid(nodeId), await merchant.createPaid(nodeId, { protocol: 'l402' })]
  const preimage = l402.credential.split(':')[1] ?? ''
  for (const paid of [mpp, l402]) {
    const first = await merchant.validate(paid)
    expect(first.status).toBe(200)
    await lockingTransaction(sql, async (transaction) => {
      await transaction`LOCK TABLE gateway_payments, paid_payments IN ACCESS EXCLUSIVE MODE`
      expect((await merchant.validate(paid)).text).toBe(first.text)
    })
    expect((await stranger.validate(paid)).status).toBe(404)
  }
  const wrong = { ...l402, credential: credentialOf(l402, `${'0'.repeat(64)}`) }
  expect((await merchant.validate(wrong)).status).toBe(400)

  const nowSeconds = async (): Promise<number> => Number((await sql`SELECT extract(epoch FROM now())::float8 AS now`)[0]?.now)
  const until = Math.floor(await nowSeconds()) + 20
  const short = {
    ...l402,
    credential: l402Credential(attenuate(macaroonIn(l402.challenge), `boltyard_valid_until=${until}`), preimage),
  }
  const statuses = new Set<number>()
  const wrongAt: number[] = []
  await eventually(async () => {
    const before = await nowSeconds()
    const { status } = await merchant.validate(short)
    const after = await nowSeconds()
    if ((before >= until && status !== 410) || (after < until && status !== 200)) wrongAt.push(before - until)
    statuses.add(status)
    return status === 410
  }, 'its end')
  expect(wrongAt).toEqual([])
  expect([...statuses]).toEqual([200, 410])
  expect((await merchant.validate(l402)).status).toBe(200)
  await sql.end()
})
