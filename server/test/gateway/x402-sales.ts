import { createHash } from 'node:crypto'
import { encode, sign } from 'bolt11'
import { charge, decoded, type Payment, pay, requirementsIn, sha256, x402Credential } from '../support/gateway.ts'
import type { Created, Owner } from '../support/nodes.ts'
import type { Answer } from '../support/server.ts'

/** What an x402 shop and its customer do. Nothing here uses the code under test. */

export const URL_OF_REPORT = 'https://shop.example/report'

/** The hash of a GET request without a body or bound headers. The members are written in the order of the canonical form. */
export function requestHashOf(url: string): string {
  const binding = { bodyHash: sha256(''), domain: 'x402:exact:lnbtc:bolt11:http:1', headers: [], method: 'GET', url }
  return createHash('sha256').update(JSON.stringify(binding)).digest('hex')
}
export const REPORT = requestHashOf(URL_OF_REPORT)

export const bound = (url = URL_OF_REPORT): object => ({
  resource: { url },
  requestHash: requestHashOf(url),
  requestBindingProfile: 'http:1',
  requestBindingParams: { headers: [] },
})

export type Sold = { payment: Payment; accepted: any; preimage: string; credential: string }

export const chargeX402 = (merchant: Owner, shop: Created, url = URL_OF_REPORT, more: object = {}): Promise<Payment> =>
  charge(merchant, shop, { protocol: 'x402', x402: bound(url), ...more })

/** A payment that the customer has paid, and that has not been redeemed. */
export async function sell(merchant: Owner, shop: Created, url = URL_OF_REPORT, more: object = {}): Promise<Sold> {
  const payment = await chargeX402(merchant, shop, url, more)
  return sold(payment, await pay(merchant.server, payment))
}

export function sold(payment: Payment, preimage: string): Sold {
  const accepted = requirementsIn(payment.challenge)
  return { payment, accepted, preimage, credential: x402Credential(accepted, preimage) }
}

/** A forged copy of a payment: for another request or price, but with the hash of the invoice that was paid. */
export function forged({ accepted, preimage }: Sold, change: { requestHash?: string; amount?: string }): Sold {
  const { paymentHash, timestamp, expiry } = decoded(accepted.extra.invoice)
  const { requestHash = accepted.extra.requestHash, amount = accepted.amount } = change
  const network = { bech32: 'bcrt', pubKeyHash: 0x6f, scriptHash: 0xc4, validWitnessVersions: [0] }
  const tags = [
    { tagName: 'payment_hash', data: paymentHash },
    { tagName: 'purpose_commit_hash', data: requestHash },
    { tagName: 'expire_time', data: expiry },
  ]
  const unsigned = encode({ network, millisatoshis: amount, timestamp, tags }, false)
  const invoice = sign(unsigned, '1'.repeat(64)).paymentRequest ?? ''
  const required = { ...accepted, amount, extra: { ...accepted.extra, requestHash, invoice } }
  return { payment: {} as Payment, accepted: required, preimage, credential: x402Credential(required, preimage) }
}

export const redeemX402 = (merchant: Owner, credential: unknown, more: object = {}): Promise<Answer> =>
  merchant.send('POST', '/gateway/payments/redeem', { json: { credential, requestHash: REPORT, ...more } })

export const validateX402 = (merchant: Owner, credential: unknown, more: object = {}): Promise<Answer> =>
  merchant.send('POST', '/gateway/payments/validate', { json: { credential, requestHash: REPORT, ...more } })

/** Status, code and x402's reason of a response that must be a refusal. */
export async function refusedX402(answer: Promise<Answer>): Promise<[status: number, code: string, errorReason?: string]> {
  const { status, text, json } = await answer
  if (status < 400) throw new Error(`${status} ${text}`)
  const { code, errorReason } = json().error
  return errorReason === undefined ? [status, code] : [status, code, errorReason]
}

export const DUPLICATE = [409, 'already_redeemed', 'duplicate_settlement']
export const WRONG = (reason: string) => [400, 'invalid_payment_credential', `invalid_exact_lnbtc_${reason}`]

export const facilitator = (merchant: Owner, path: 'verify' | 'settle', { accepted, preimage }: Sold, required = accepted) =>
  merchant.want<{ isValid?: boolean; success?: boolean; invalidReason?: string; errorReason?: string; transaction?: string }>(
    200,
    'POST',
    `/gateway/x402/${path}`,
    {
      json: {
        x402Version: 2,
        paymentPayload: { x402Version: 2, accepted, payload: { preimage } },
        paymentRequirements: required,
      },
    },
  )
