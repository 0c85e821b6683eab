import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  issueX402,
  networkOfX402,
  readX402,
  requirementsIn,
  X402Refusal,
  type X402Requirements,
  x402NetworkOf,
  x402Requirements,
  x402Response,
} from '../src/x402.ts'
import { HASH_A, MAINNET, NODE_KEY, PREIMAGE, presented, reasonOf, requirements, SPEC_INVOICE } from './support/x402.ts'

const base64 = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64')
const read = (value: unknown): string => {
  const found = readX402(typeof value === 'string' ? value : base64(value))
  return found instanceof X402Refusal ? found.errorReason : (reasonOf(found) ?? 'accepted')
}
const payload = (more: object = {}) => ({ x402Version: 2, accepted: requirements(), payload: { preimage: PREIMAGE }, ...more })

test('C62: the challenge is base64 of JSON that other implementations read', () => {
  const terms = {
    network: MAINNET,
    amountSat: 25,
    nodeKey: NODE_KEY,
    expirySeconds: 300,
    requestHash: HASH_A,
    requestBindingProfile: 'http:1' as const,
    requestBindingParams: { headers: [] },
    invoice: SPEC_INVOICE,
  }
  expect(x402Requirements(terms)).toEqual(requirements())
  const resource = { url: 'https://api.example.com/article/A', description: 'Fußnoten ✓' }
  const challenge = issueX402(resource, requirements() as unknown as X402Requirements)
  expect(challenge).toMatch(/^[A-Za-z0-9+/]+={0,2}$/)
  expect(JSON.parse(Buffer.from(challenge, 'base64').toString('utf8'))).toEqual({
    x402Version: 2,
    resource,
    accepts: [requirements()],
  })
  expect(requirementsIn(challenge)).toEqual(requirements())
  for (const stored of ['', 'x', base64({}), base64({ accepts: [] })]) expect(() => requirementsIn(stored)).toThrow()
})

test('C62: each network has the name that x402 gives it', () => {
  expect((['mainnet', 'testnet', 'regtest', 'signet'] as const).map(x402NetworkOf)).toEqual([
    'lnbtc:000000000019d6689c085ae165831e93',
    'lnbtc:000000000933ea01ad0ee984209779ba',
    'lnbtc:0f9188f13cb7b2c71f2a335e3a4fc328',
    undefined,
  ])
  expect(networkOfX402(MAINNET)).toBe('mainnet')
  for (const other of [undefined, null, 'constructor', MAINNET.toUpperCase()]) expect(networkOfX402(other)).toBeUndefined()
})

test('C63: the answer has the payment hash and no payer', () => {
  expect(JSON.parse(Buffer.from(x402Response('ab', MAINNET), 'base64').toString())).toEqual({
    success: true,
    transaction: 'ab',
    network: MAINNET,
  })
})

test('C63: a credential is base64 of a JSON object, in either alphabet, with or without padding', () => {
  expect(read(payload())).toBe('accepted')
  expect(read(base64(payload()).replaceAll('=', ''))).toBe('accepted')
  expect(read(Buffer.from(JSON.stringify(payload())).toString('base64url'))).toBe('accepted')
  expect(read(payload({ resource: { url: 'x' }, extensions: {} }))).toBe('accepted')
})

test.each<[what: string, value: unknown, reason: string]>([
  ['nothing', '', 'invalid_payload'],
  ['not base64', 'not base64!', 'invalid_payload'],
  ['a line break', `${base64(payload())}\n`, 'invalid_payload'],
  ['not JSON', base64('{'), 'invalid_payload'],
  ['a list', base64('[]'), 'invalid_payload'],
  ['null', base64('null'), 'invalid_payload'],
  ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]).toString('base64'), 'invalid_payload'],
  ['more than 16 kB', payload({ note: 'x'.repeat(13_000) }), 'invalid_payload'],
  ['version 1', payload({ x402Version: 1 }), 'invalid_x402_version'],
  ['version "2"', payload({ x402Version: '2' }), 'invalid_x402_version'],
  ['no requirements', payload({ accepted: undefined }), 'unsupported_scheme'],
  ['requirements that are text', payload({ accepted: 'exact' }), 'unsupported_scheme'],
  ['a huge number', base64(JSON.stringify(payload()).replace('300', '1e999')), 'invalid_exact_lnbtc_max_timeout_mismatch'],
  [
    'a number with many digits',
    base64(JSON.stringify(payload()).replace('300', '9'.repeat(5_000))),
    'invalid_exact_lnbtc_max_timeout_mismatch',
  ],
  [
    'a second amount',
    base64(JSON.stringify(payload()).replace('"asset"', '"amount":"1","asset"')),
    'invalid_exact_lnbtc_amount_mismatch',
  ],
  ['a prototype', base64('{"x402Version":2,"__proto__":{"accepted":{"scheme":"exact"}}}'), 'unsupported_scheme'],
])('C63: a credential with %s: refused', (_what, value, reason) => {
  expect(read(value)).toBe(reason)
})

test('C63: values that are nested too deeply to compare are refused, and do not overflow the stack', () => {
  const deep = (open: string, close: string): string => open.repeat(3_000) + close.repeat(3_000)
  for (const nested of [deep('[', ']'), deep('{"a":', '}').replace(/}/, '1}')]) {
    const text = JSON.stringify(payload()).replace('{"headers":[]}', nested)
    expect(read(base64(text))).toMatch(/^(invalid_payload|invalid_exact_lnbtc_request_binding)$/)
    const value: unknown = JSON.parse(nested)
    const with_ = { ...requirements(), extra: { ...requirements().extra, campaign: value } }
    expect(reasonOf(presented(with_), { ...with_, extra: { ...with_.extra, campaign: JSON.parse(nested) } })).toBe(
      'invalid_exact_lnbtc_extra_mismatch',
    )
  }
})

test('C63: no JSON value in place of any field makes the checks throw, or accept it', () => {
  const names = Object.keys(requirements())
  const extras = Object.keys(requirements().extra).filter((name) => name !== 'invoice')
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(...names), fc.constantFrom(...extras, 'invoice'), (value, name, extra) => {
      const one = { ...requirements(), [name]: value }
      expect(reasonOf(presented(one))).toBeDefined()
      const other = { ...requirements(), extra: { ...requirements().extra, [extra]: value } }
      expect(reasonOf(presented(other))).toBeDefined()
      expect(reasonOf(presented(requirements(), value))).toBeDefined()
      expect(typeof read(base64(JSON.stringify(value)))).toBe('string')
    }),
  )
})
