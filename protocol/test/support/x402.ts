import { bech32 } from '@scure/base'
import { encode, sign } from 'bolt11'
import { isNodeKey, isSignedBy } from '../../../server/src/lightning/invoice-signature.ts'
import type { X402Payment } from '../../src/x402.ts'
import { X402Refusal } from '../../src/x402.ts'
import { judgeX402 } from '../../src/x402-checks.ts'
import { primitives } from './codecs.ts'

/** The example of the specification, and variations of it. Invoices are made by a third-party library. */

export const NOW = 1_700_000_000
export const EXPIRY = 300
export const PREIMAGE = '0001020304050607080900010203040506070809000102030405060708090102'
export const PAYMENT_HASH = 'a923c2c0e4fe77061ff1cb882171f6fdf926719bb7f5ffe2e05458438c52825e'
export const HASH_A = '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018'
export const HASH_B = '4a99860f75eed1ea8178a5db488e044173bc570c8a6210f2c8590cdf8622d509'
export const MAINNET = 'lnbtc:000000000019d6689c085ae165831e93'
export const TESTNET = 'lnbtc:000000000933ea01ad0ee984209779ba'
/** The public key of the private key 1. */
export const NODE_KEY = '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'
/** The public key of the private key 2. */
export const OTHER_NODE_KEY = '02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5'
export const SPEC_INVOICE =
  'lnbc250n1pj48ugqpp54y3u9s8ylemsv8l3ewyzzu0klhujvuvmkl6llchq23vy8rzjsf0qsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygshp5p4nz8am4uqj4q8a87z3sk4x6yk4dv2mvel34epw68qqkwy0xcqvqxqzfvcqpjr4rx6ls6j5rpwknuea64evlk7yfx56wmqcer5eerekdsn9tlv6v4ex9mlz5dtm9qapl3svwlqcf7837dmjkru9z9w4h2rvm0md52w2sqxrwu5f'

export type Requirements = Record<string, any> & { extra: Record<string, any> }

export const requirements = (): Requirements => ({
  scheme: 'exact',
  network: MAINNET,
  amount: '25000',
  asset: 'BTC',
  payTo: NODE_KEY,
  maxTimeoutSeconds: EXPIRY,
  extra: {
    assetTransferMethod: 'bolt11',
    paymentFlow: 'upfront',
    requestHash: HASH_A,
    requestBindingProfile: 'http:1',
    requestBindingParams: { headers: [] },
    invoice: SPEC_INVOICE,
  },
})

const NETWORKS = {
  bc: { bech32: 'bc', pubKeyHash: 0, scriptHash: 5, validWitnessVersions: [0] },
  tb: { bech32: 'tb', pubKeyHash: 0x6f, scriptHash: 0xc4, validWitnessVersions: [0] },
}

export type Made = {
  descriptionHash?: string | undefined
  description?: string
  privateKey?: number
  currency?: keyof typeof NETWORKS
  millisatoshis?: string | null
  expiry?: number
  timestamp?: number
  payee?: string
}

export function invoiceWith(made: Made = {}): string {
  const { description, currency = 'bc', millisatoshis = '25000', payee } = made
  const descriptionHash = description === undefined ? (made.descriptionHash ?? HASH_A) : undefined
  const tags = [
    { tagName: 'payment_hash', data: PAYMENT_HASH },
    ...(descriptionHash === undefined ? [] : [{ tagName: 'purpose_commit_hash', data: descriptionHash }]),
    ...(description === undefined ? [] : [{ tagName: 'description', data: description }]),
    ...(payee === undefined ? [] : [{ tagName: 'payee_node_key', data: payee }]),
    { tagName: 'expire_time', data: made.expiry ?? EXPIRY },
  ]
  const amount = millisatoshis === null ? {} : { millisatoshis }
  const unsigned = encode({ network: NETWORKS[currency], timestamp: made.timestamp ?? NOW, tags, ...amount } as any, false)
  const key = (made.privateKey ?? 1).toString(16).padStart(64, '0')
  return sign(unsigned, key).paymentRequest ?? ''
}

/** The example's invoice with other fields in front of its own. The signature is no longer valid, but decoding comes first. */
export function withFields(fields: number[], invoice = SPEC_INVOICE): string {
  const { prefix, words } = bech32.decode(invoice as `${string}1${string}`, false)
  return bech32.encode(prefix, [...words.slice(0, 7), ...fields, ...words.slice(7)], false)
}

export const presented = (accepted: unknown = requirements(), preimage: unknown = PREIMAGE): X402Payment =>
  ({ accepted, payload: { preimage } }) as X402Payment

/** The reason; undefined if the payment is accepted. */
export function reasonOf(payment: X402Payment, required: Requirements = requirements(), nowSeconds = NOW): string | undefined {
  const judged = judgeX402(primitives, payment, required, { nowSeconds, isNodeKey, isSignedBy })
  return judged instanceof X402Refusal ? judged.errorReason : undefined
}
