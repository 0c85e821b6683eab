import { describe, expect, test } from 'vitest'
import { isSignedBy } from '../../server/src/lightning/invoice-signature.ts'
import { signatureOf } from '../src/bolt11-signature.ts'
import { X402Refusal } from '../src/x402.ts'
import {
  EXPIRY,
  HASH_B,
  invoiceWith,
  MAINNET,
  type Made,
  NODE_KEY,
  NOW,
  OTHER_NODE_KEY,
  PREIMAGE,
  presented,
  type Requirements,
  reasonOf,
  requirements,
  SPEC_INVOICE,
  TESTNET,
  withFields,
} from './support/x402.ts'

const LNBTC = 'invalid_exact_lnbtc_'
type Change = (one: Requirements) => unknown

const changed = (change: Change): Requirements => {
  const one = requirements()
  change(one)
  return one
}
const inAccepted = (change: Change): string | undefined => reasonOf(presented(changed(change)))
const inBoth = (change: Change): string | undefined => reasonOf(presented(changed(change)), changed(change))
const inRequired = (change: Change): string | undefined => reasonOf(presented(), changed(change))
const withInvoice = (made: Made): string | undefined => inAccepted((one) => (one.extra.invoice = invoiceWith(made)))

describe('C63: a payment that proves what is required', () => {
  test('C63: the example of the specification is accepted, until 60 seconds after its end', () => {
    for (const later of [0, EXPIRY, EXPIRY + 60]) expect(reasonOf(presented(), requirements(), NOW + later)).toBeUndefined()
    expect(reasonOf(presented(), requirements(), NOW + EXPIRY + 61)).toBe(`${LNBTC}invoice_expired`)
  })

  test('C63: the invoice of another challenge for the same request is accepted', () => {
    const fresh = changed((one) => (one.extra.invoice = invoiceWith({ timestamp: NOW + 1 })))
    expect(reasonOf(presented(), fresh)).toBeUndefined()
    expect(reasonOf(presented(fresh))).toBeUndefined()
  })

  test.each<[what: string, change: Change]>([
    ['fields that the client has added', (one) => (one.extra.note = { deep: [1] })],
    ['fields in another order', (one) => Object.assign(one, { extra: Object.fromEntries(Object.entries(one.extra).reverse()) })],
    ['no transfer method', (one) => delete one.extra.assetTransferMethod],
    ['an invoice made 60 seconds ahead', (one) => (one.extra.invoice = invoiceWith({ timestamp: NOW + 60 }))],
    ['an invoice that names its payee', (one) => (one.extra.invoice = invoiceWith({ payee: NODE_KEY }))],
  ])('C63: %s: accepted', (_what, change) => {
    expect(inAccepted(change)).toBeUndefined()
  })
})

describe('C63: every reason', () => {
  test.each<[reason: string, change: Change]>([
    ['unsupported_scheme', (one) => (one.scheme = 'upto')],
    ['unsupported_scheme', (one) => delete one.scheme],
    ['network_mismatch', (one) => (one.network = TESTNET)],
    [`${LNBTC}amount_mismatch`, (one) => (one.amount = '25001')],
    [`${LNBTC}amount_mismatch`, (one) => (one.amount = 25_000)],
    [`${LNBTC}asset`, (one) => (one.asset = 'SAT')],
    [`${LNBTC}pay_to_mismatch`, (one) => (one.payTo = OTHER_NODE_KEY)],
    [`${LNBTC}max_timeout_mismatch`, (one) => (one.maxTimeoutSeconds = 301)],
    [`${LNBTC}max_timeout_mismatch`, (one) => (one.maxTimeoutSeconds = '300')],
    [`${LNBTC}asset_transfer_method`, (one) => (one.extra.assetTransferMethod = 'keysend')],
    [`${LNBTC}asset_transfer_method`, (one) => (one.extra.assetTransferMethod = null)],
    [`${LNBTC}payment_flow`, (one) => delete one.extra.paymentFlow],
    [`${LNBTC}payment_flow`, (one) => Object.assign(one, { extra: null })],
    [`${LNBTC}request_binding`, (one) => delete one.extra.requestHash],
    [`${LNBTC}request_binding`, (one) => (one.extra.requestHash = one.extra.requestHash.toUpperCase())],
    [`${LNBTC}request_binding`, (one) => (one.extra.requestBindingProfile = 'http:9')],
    [`${LNBTC}request_binding`, (one) => (one.extra.requestBindingParams = {})],
    [`${LNBTC}request_binding`, (one) => (one.extra.requestBindingParams = { headers: [], other: true })],
    [`${LNBTC}request_binding`, (one) => (one.extra.requestBindingParams = { headers: ['b', 'a'] })],
    [`${LNBTC}request_mismatch`, (one) => (one.extra.requestHash = HASH_B)],
    [`${LNBTC}request_mismatch`, (one) => (one.extra.requestBindingParams = { headers: ['accept'] })],
    [`${LNBTC}invoice_missing`, (one) => delete one.extra.invoice],
    [`${LNBTC}invoice_missing`, (one) => (one.extra.invoice = '')],
    [`${LNBTC}invoice_missing`, (one) => (one.extra.invoice = null)],
    [`${LNBTC}invoice_decode_failed`, (one) => (one.extra.invoice = 'lnbc1garbage')],
    [`${LNBTC}invoice_decode_failed`, (one) => (one.extra.invoice = [SPEC_INVOICE])],
    [`${LNBTC}invoice_decode_failed`, (one) => (one.extra.invoice = SPEC_INVOICE.toUpperCase())],
    [`${LNBTC}invoice_description`, (one) => (one.extra.invoice = withFields([13, 0, 2, 1, 1]))],
    [`${LNBTC}invoice_description`, (one) => (one.extra.invoice = withFields([23, 1, 20, ...Array(52).fill(0)]))],
  ])('C63: %s, for what the client has changed (%#)', (reason, change) => {
    expect(inAccepted(change)).toBe(reason)
  })

  test.each<[reason: string, made: Made]>([
    [`${LNBTC}invoice_description`, { description: 'article A' }],
    [`${LNBTC}invoice_request_mismatch`, { descriptionHash: HASH_B }],
    [`${LNBTC}invoice_payee_mismatch`, { privateKey: 2 }],
    [`${LNBTC}invoice_payee_mismatch`, { privateKey: 2, payee: OTHER_NODE_KEY }],
    [`${LNBTC}invoice_currency_mismatch`, { currency: 'tb' }],
    [`${LNBTC}invoice_amount_mismatch`, { millisatoshis: '26000' }],
    [`${LNBTC}invoice_amount_mismatch`, { millisatoshis: null }],
    [`${LNBTC}invoice_expiry_mismatch`, { expiry: 600 }],
    [`${LNBTC}invoice_created_in_future`, { timestamp: NOW + 61 }],
  ])('C63: %s, for an invoice with %o', (reason, made) => {
    expect(withInvoice(made)).toBe(reason)
  })

  test.each<[reason: string, preimage: unknown]>([
    [`${LNBTC}preimage_missing`, undefined],
    [`${LNBTC}preimage_missing`, null],
    [`${LNBTC}preimage_malformed`, 42],
    [`${LNBTC}preimage_malformed`, [PREIMAGE]],
    [`${LNBTC}preimage_malformed`, 'AB'.repeat(32)],
    [`${LNBTC}preimage_malformed`, `0x${PREIMAGE.slice(2)}`],
    [`${LNBTC}preimage_length`, ''],
    [`${LNBTC}preimage_length`, PREIMAGE.slice(1)],
    [`${LNBTC}preimage_length`, `${PREIMAGE}00`],
    [`${LNBTC}preimage_hash_mismatch`, 'ff'.repeat(32)],
  ])('C63: %s, for the preimage %o', (reason, preimage) => {
    const payload = preimage === undefined ? {} : { preimage }
    expect(reasonOf({ accepted: requirements(), payload })).toBe(reason)
  })
  test.each([undefined, null, 'x', [PREIMAGE]])('C63: without a payload (%o), the preimage is missing', (payload) => {
    expect(reasonOf({ accepted: requirements(), payload })).toBe(`${LNBTC}preimage_missing`)
  })

  test.each<[reason: string, change: Change]>([
    ['unsupported_scheme', (one) => (one.scheme = 'upto')],
    ['unsupported_network', (one) => (one.network = 'lnbtc:0000')],
    ['unsupported_network', (one) => (one.network = `${MAINNET} `)],
    ['unsupported_network', (one) => (one.network = 'constructor')],
    ['unsupported_network', (one) => (one.network = '__proto__')],
    [`${LNBTC}asset`, (one) => (one.asset = 'SAT')],
    ...['', '0', '-1', '+25000', '25000.0', '2.5e4', '25_000', ' 25000', '25000msat'].map((amount): [string, Change] => [
      `${LNBTC}amount`,
      (one) => (one.amount = amount),
    ]),
    [`${LNBTC}max_timeout`, (one) => (one.maxTimeoutSeconds = 0)],
    [`${LNBTC}max_timeout`, (one) => (one.maxTimeoutSeconds = 1.5)],
    [`${LNBTC}max_timeout`, (one) => (one.maxTimeoutSeconds = '300')],
    [`${LNBTC}pay_to_malformed`, (one) => (one.payTo = one.payTo.toUpperCase())],
    [`${LNBTC}pay_to_malformed`, (one) => (one.payTo = `04${'ab'.repeat(32)}`)],
    [`${LNBTC}pay_to_malformed`, (one) => (one.payTo = `02${'ff'.repeat(32)}`)],
    [`${LNBTC}pay_to_malformed`, (one) => (one.payTo = `03${'cd'.repeat(32)}`)],
    [`${LNBTC}payment_flow`, (one) => (one.extra.paymentFlow = 'authorization')],
  ])('C63: %s, if both sides agree on it (%#)', (reason, change) => {
    expect(inBoth(change)).toBe(reason)
  })

  test('C63: extra_mismatch, for a field of the server that did not come back as it was', () => {
    const required: Change = (one) => (one.extra.campaign = { id: 1, of: [1, 2] })
    const with_ = (campaign: unknown) => reasonOf(presented(changed((one) => (one.extra.campaign = campaign))), changed(required))
    expect(with_({ of: [1, 2], id: 1 })).toBeUndefined()
    for (const other of [{ id: 2, of: [1, 2] }, { id: 1, of: [2, 1] }, { id: 1 }, null, [], 'x'])
      expect(with_(other)).toBe(`${LNBTC}extra_mismatch`)
    expect(inRequired(required)).toBe(`${LNBTC}extra_mismatch`)
    // Inherited names are not fields.
    expect(inRequired((one) => Object.assign(one.extra, { toString: 'x' }))).toBe(`${LNBTC}extra_mismatch`)
    expect(inRequired((one) => delete one.extra.invoice)).toBe(`${LNBTC}invoice_missing`)
  })

  test('C63: an echo of the new hash does not help, because the invoice is signed', () => {
    expect(inBoth((one) => (one.extra.requestHash = HASH_B))).toBe(`${LNBTC}invoice_request_mismatch`)
  })
})

describe('C63: the order of the checks', () => {
  const x: Change = (one) => (one.extra.paymentFlow = 'x')
  test.each<[before: string, change: Change, reason: string]>([
    ['scheme, network', (one) => Object.assign(one, { scheme: 'x', network: TESTNET }), 'unsupported_scheme'],
    ['network, amount', (one) => Object.assign(one, { network: TESTNET, amount: '1' }), 'network_mismatch'],
    ['amount, asset', (one) => Object.assign(one, { amount: '1', asset: 'x' }), `${LNBTC}amount_mismatch`],
    ['asset, payTo', (one) => Object.assign(one, { asset: 'x', payTo: 'x' }), `${LNBTC}asset`],
    ['payTo, timeout', (one) => Object.assign(one, { payTo: 'x', maxTimeoutSeconds: 1 }), `${LNBTC}pay_to_mismatch`],
    ['timeout, flow', (one) => x(Object.assign(one, { maxTimeoutSeconds: 1 })), `${LNBTC}max_timeout_mismatch`],
    [
      'method, flow',
      (one) => Object.assign(one.extra, { assetTransferMethod: 'x', paymentFlow: 'x' }),
      `${LNBTC}asset_transfer_method`,
    ],
    ['flow, binding', (one) => Object.assign(one.extra, { paymentFlow: 'x', requestHash: 'x' }), `${LNBTC}payment_flow`],
    ['request, invoice', (one) => Object.assign(one.extra, { requestHash: HASH_B, invoice: '' }), `${LNBTC}request_mismatch`],
  ])('C63: %s', (_before, change, reason) => {
    expect(inAccepted(change)).toBe(reason)
  })
  test.each<[before: string, made: Made, reason: string]>([
    ['description, payee', { description: 'x', privateKey: 2 }, 'description'],
    ['request, payee', { descriptionHash: HASH_B, privateKey: 2 }, 'request_mismatch'],
    ['payee, currency', { privateKey: 2, currency: 'tb' }, 'payee_mismatch'],
    ['currency, amount', { currency: 'tb', millisatoshis: '1000' }, 'currency_mismatch'],
    ['amount, expiry', { millisatoshis: '1000', expiry: 1 }, 'amount_mismatch'],
    ['expiry, time', { expiry: 1, timestamp: NOW + 61 }, 'expiry_mismatch'],
  ])('C63: of the invoice: %s', (_before, made, reason) => {
    expect(withInvoice(made)).toBe(`${LNBTC}invoice_${reason}`)
  })

  test('C63: terms before extra fields, the invoice before the preimage, the preimage before the expiry', () => {
    expect(inBoth((one) => x(Object.assign(one, { amount: '0' })))).toBe(`${LNBTC}amount`)
    const ahead = presented(
      changed((one) => (one.extra.invoice = invoiceWith({ timestamp: NOW + 61 }))),
      'ff'.repeat(32),
    )
    expect(reasonOf(ahead)).toBe(`${LNBTC}invoice_created_in_future`)
    const late = NOW + EXPIRY + 61
    expect(reasonOf(presented(requirements(), 'ff'.repeat(32)), requirements(), late)).toBe(`${LNBTC}preimage_hash_mismatch`)
  })
})

test('C62: the signature is verified over every byte of an invoice', () => {
  expect(isSignedBy(SPEC_INVOICE, NODE_KEY)).toBe(true)
  expect(isSignedBy(SPEC_INVOICE, OTHER_NODE_KEY)).toBe(false)
  expect(isSignedBy(invoiceWith({ privateKey: 2 }), OTHER_NODE_KEY)).toBe(true)
  expect(isSignedBy(invoiceWith({ payee: NODE_KEY }), NODE_KEY)).toBe(true)
  expect(signatureOf(invoiceWith({ payee: NODE_KEY }))?.payee).toBe(NODE_KEY)
  for (const key of ['', 'x', `02${'ff'.repeat(32)}`]) expect(isSignedBy(SPEC_INVOICE, key)).toBe(false)
  for (const text of ['', 'lnbc', 'lnbc1garbage', 'x'.repeat(5_000)]) expect(isSignedBy(text, NODE_KEY)).toBe(false)
  // A field that is never read is signed as well.
  expect(isSignedBy(withFields([2, 0, 1, 0]), NODE_KEY)).toBe(false)
})

test('C63: the reason is `expired` only if the payment can be made again', () => {
  expect(new X402Refusal('invalid_exact_lnbtc_invoice_expired').reason).toBe('expired')
  expect(new X402Refusal('invalid_exact_lnbtc_asset').reason).toBe('invalid')
})
