import fastify from 'fastify'
import { expect, test, vi } from 'vitest'
import { Boltyard } from '../src/boltyard.ts'
import { addressGroup } from '../src/paywall/adapters/client-address.ts'
import { paywall as nestPaywall } from '../src/paywall/adapters/nest.ts'
import { OTHER_TERMS, refusalOf } from '../src/paywall/answers.ts'
import { Confirmations } from '../src/paywall/gate/confirmations.ts'
import { OpenVisits } from '../src/paywall/gate/open-visits.ts'
import { VerifiedCredentials } from '../src/paywall/gate/verified-credentials.ts'
import { checkOptions, isL402Reusable } from '../src/paywall/options.ts'
import { type Terms, termsOf } from '../src/paywall/terms.ts'
import type { RedeemedPayment } from '../src/types.ts'

/** Nothing listens at this address. */
const NOWHERE = 'http://127.0.0.1:2'

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:0DB8:0:0:ffff:ffff:ffff:ffff', '2001:db8:0:0::/64'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
])('selling 10: %s is counted as %s', (address, group) => {
  expect(addressGroup(address)).toBe(group)
})

test('selling 10: a visit ends when its challenge expires, when it is paid, or when no challenge was issued', () => {
  const visits = new OpenVisits()
  const enter = (now: number): any => visits.enter('192.0.2.1', 2, now)
  enter(0).fill(['pay_a', 'pay_b'])
  const second = enter(1_000)
  expect(enter(2_000)).toEqual({ retryAfterSeconds: 298 })
  second.leave()
  expect(enter(2_000)).not.toHaveProperty('retryAfterSeconds')
  visits.paid('pay_b')
  visits.paid('pay_a')
  expect(enter(3_000)).not.toHaveProperty('retryAfterSeconds')
  expect(enter(4_000)).toEqual({ retryAfterSeconds: 298 })
  expect(enter(302_000)).not.toHaveProperty('retryAfterSeconds')
})

test('selling 10: visits from many addresses use bounded memory', () => {
  const visits = new OpenVisits()
  for (let at = 0; at < 100_001; at++) visits.enter(`address ${at}`, 1, 0)
  expect(visits.enter('address 0', 1, 0)).not.toHaveProperty('retryAfterSeconds')
  expect(visits.enter('address 100000', 1, 0)).toHaveProperty('retryAfterSeconds')
})

const terms: Terms = {
  nodeId: 'node_a',
  protocols: ['l402'],
  resource: 'GET /a',
  description: '',
  amountSat: 100,
  minAmountSat: 90,
}
const payment = { id: 'pay_a', amountSat: 95 } as RedeemedPayment

test('selling 8: a verification is reused for 60 s or until the credential expires, for the same node, resource and price', () => {
  const verified = new VerifiedCredentials()
  verified.add('digest', terms, payment, 10_000, 0)
  expect(verified.find('digest', terms, 59_999)).toBe(payment)
  expect(verified.find('digest', { ...terms, minAmountSat: 95 }, 0)).toBe(payment)
  for (const others of [{ nodeId: 'node_b' }, { resource: 'GET /b' }, { minAmountSat: 96 }])
    expect(verified.find('digest', { ...terms, ...others }, 0)).toBeUndefined()
  expect(verified.find('another', terms, 0)).toBeUndefined()
  expect(verified.find('digest', terms, 60_000)).toBeUndefined()
  verified.add('digest', terms, payment, 30, 0)
  expect(verified.find('digest', terms, 29_999)).toBe(payment)
  expect(verified.find('digest', terms, 30_000)).toBeUndefined()
})

test('selling 8: the cache is bounded', () => {
  const verified = new VerifiedCredentials()
  for (let at = 0; at < 10_001; at++) verified.add(`digest ${at}`, terms, payment, 10_000, 0)
  expect(verified.find('digest 0', terms, 0)).toBeUndefined()
  expect(verified.find('digest 10000', terms, 0)).toBe(payment)
})

test.each([
  [1, 0.1, 1],
  [9, 0.1, 9],
  [10, 0.1, 9],
  [11, 0.1, 10],
  [100, 0.29, 71],
  [100, 0, 100],
  [1_000_000, 0.1, 900_000],
])('selling 1: at %i sat with a tolerance of %f, %i sat are enough', async (amountSat, priceTolerance, minAmountSat) => {
  const target = { method: 'GET', route: '/a', url: '/a' }
  const { minAmountSat: least } = await termsOf({ nodeId: 'node_a', amountSat, priceTolerance }, ['mpp'], target, {})
  expect(least).toBe(minAmountSat)
})

test('selling 7: which credentials can be reused', () => {
  const options = { nodeId: 'node_a', amountSat: 1 }
  expect(isL402Reusable({ ...options, protocol: 'l402' })).toBe(true)
  expect(isL402Reusable({ ...options, protocol: 'both' })).toBe(false)
  expect(isL402Reusable({ ...options, protocols: ['l402', 'x402'] })).toBe(false)
  expect(isL402Reusable({ ...options, protocol: 'both', l402: { reuse: '24h' } })).toBe(true)
  expect(isL402Reusable({ ...options, protocol: 'l402', l402: { reuse: 'never' } })).toBe(false)
  expect(isL402Reusable({ ...options, protocol: 'l402', singleUse: true })).toBe(false)
})

test('selling 5: invalid options are errors', () => {
  const options = { nodeId: 'node_a', amountSat: 1 }
  expect(() => checkOptions(options)).not.toThrow()
  const wrong: [object, RegExp][] = [
    [{ nodeId: '' }, /nodeId/],
    [{ amountSat: 0 }, /amountSat/],
    [{ amountSat: '10' }, /amountSat/],
    [{ protocol: 'lsat' }, /`protocol` must be 'mpp', 'l402', 'x402', 'both' or a list/],
    [{ protocols: ['mpp', 'lsat'] }, /`protocols` must contain .* nothing else/],
    [{ protocols: [] }, /`protocols` must contain at least one of/],
    [{ protocols: ['mpp'], protocol: 'mpp' }, /not both/],
    [{ publicUrl: 'shop.example' }, /publicUrl/],
    [{ bindHeaders: ['a b'] }, /bindHeaders/],
    [{ bindHeaders: ['Payment-Signature'] }, /bindHeaders/],
    [{ maxBodyBytes: 1.5 }, /maxBodyBytes/],
    [{ priceTolerance: 1 }, /priceTolerance/],
    [{ priceTolerance: Number.NaN }, /priceTolerance/],
    [{ holdSeconds: 601 }, /holdSeconds/],
    [{ maxOpenVisits: -1 }, /maxOpenVisits/],
    [{ l402: { reuse: '1h' } }, /reuse/],
    [{ l402: { reuse: '24h' }, singleUse: true }, /contradict/],
  ]
  for (const [more, says] of wrong) expect(() => checkOptions({ ...options, ...more })).toThrow(says)
})

test('a refusal says only what is known: not that the credential is unused, nor that nobody paid', () => {
  expect(OTHER_TERMS.detail).toBe('The credential is not for this request at this price. This request did not use it up.')
  expect(refusalOf('payment_expired').detail).toBe('The challenge or the credential has expired.')
})

test('confirmations are retried only while the process runs, and the warning says so', async () => {
  const lines: string[] = []
  vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
  const confirmations = new Confirmations(new Boltyard({ apiKey: 'byk_x', baseUrl: `${NOWHERE}/v1`, maxRetries: 0 }))
  confirmations.add({ id: 'pay_a', requestId: 'a' })
  await confirmations.flush()
  vi.restoreAllMocks()
  expect(lines).toEqual([expect.stringContaining('The confirmation will be retried while this process runs.')])
})

test('NestJS: on Fastify, a request fails with an error that says what is supported', async () => {
  const client = new Boltyard({ apiKey: 'byk_x', baseUrl: `${NOWHERE}/v1`, maxRetries: 0 })
  const guard = nestPaywall({ client, nodeId: 'node_a', amountSat: 1 })
  const app = fastify()
  app.addHook('onRequest', async (request, reply) => {
    await guard.canActivate({ switchToHttp: () => ({ getRequest: () => request, getResponse: () => reply }) })
  })
  app.get('/joke', async () => 'for free')
  const answer = await app.inject('/joke')
  expect([answer.statusCode, answer.json().message]).toEqual([500, expect.stringContaining('supports NestJS on Express only')])
  await app.close()
})
