import { invoiceExpiresAtSeconds } from '../../../../protocol/src/bolt11.ts'
import { isObject, jsonObjectIn, toBase64Url, toHex, utf8Of } from '../../../../protocol/src/bytes.ts'
import { jcs } from '../../../../protocol/src/jcs.ts'
import { MPP_HEADER, mppCredential } from '../../../../protocol/src/mpp.ts'
import { MSAT_PER_SAT } from '../../../../protocol/src/units.ts'
import type { Challenge } from '../../../../protocol/src/www-authenticate.ts'
import { type Note, shown } from '../findings.ts'
import { primitives } from '../signer.ts'
import { checkInvoice, type LiveOffer, nowSeconds, type PricedInvoice, price } from './offer.ts'

const MAX_CHALLENGE_LENGTH = 8_192
const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** Other methods and intents of the scheme are not for Lightning. */
export const isLightningCharge = ({ scheme, params }: Challenge): boolean =>
  scheme.toLowerCase() === 'payment' && params.get('method') === 'lightning' && params.get('intent') === 'charge'

export function checkMpp({ params }: Challenge, note: Note): LiveOffer | undefined {
  const missing = ['id', 'realm', 'request'].filter((name) => !params.get(name))
  if (missing.length > 0) note('mpp-malformed', `a challenge without ${missing.join(', ')}`)
  const size = [...params].reduce((sum, [name, value]) => sum + name.length + value.length + 5, 'Payment '.length)
  if (size > MAX_CHALLENGE_LENGTH) note('mpp-size', `${size} bytes`)
  const text = params.get('request') ?? ''
  const request = jsonObjectIn(text)
  if (!request) {
    if (text !== '') note('mpp-malformed', 'a request that is not base64url of a JSON object')
    return undefined
  }
  if (!isCanonical(text, request)) note('mpp-not-canonical', text)
  const details = isObject(request.methodDetails) ? request.methodDetails : {}
  const priced = checkInvoice(details.invoice, 'mpp', note)
  if (!priced) return undefined
  checkRequest(request, details, priced, note)
  checkExpires(params.get('expires'), priced, note)
  const header = params.get('header')
  if (header !== undefined && header !== MPP_HEADER) note('mpp-header', `header="${header}"`)
  const name = header === MPP_HEADER ? MPP_HEADER.toLowerCase() : 'authorization'
  return {
    protocol: 'mpp',
    ...priced,
    challengeId: params.get('id') ?? '',
    present: (preimage) => ({ [name]: mppCredential(Object.fromEntries(params), preimage) }),
  }
}

function isCanonical(text: string, request: object): boolean {
  try {
    return toBase64Url(jcs(request)) === text
  } catch {
    // No canonical form, or nested too deeply.
    return false
  }
}

function checkRequest(
  { amount, currency, description }: Record<string, unknown>,
  { paymentHash, network = 'mainnet' }: Record<string, unknown>,
  { invoice, amountMsat }: PricedInvoice,
  note: Note,
): void {
  if (currency !== 'sat') note('mpp-currency', `currency ${shown(currency)}`)
  else if (amount !== String(amountMsat / MSAT_PER_SAT))
    note('mpp-amount', `amount ${shown(amount)}, but an invoice of ${price(amountMsat)}`)
  if (paymentHash !== undefined && paymentHash !== invoice.paymentHash)
    note('mpp-payment-hash', `paymentHash ${shown(paymentHash).slice(0, 66)}, but the invoice has ${invoice.paymentHash}`)
  if (network !== invoice.network) note('mpp-network', `network ${shown(network)}, but an invoice of ${invoice.network}`)
  if (typeof description !== 'string') return
  const isSame =
    invoice.descriptionHash === undefined
      ? invoice.description === description
      : invoice.descriptionHash === toHex(primitives.sha256(utf8Of(description)))
  if (isSame) return
  const other = invoice.description === undefined ? 'the hash of another text' : `“${invoice.description}”`
  note('mpp-description', `“${description}”, but the invoice has ${other}`)
}

function checkExpires(expires: string | undefined, { invoice }: PricedInvoice, note: Note): void {
  if (expires === undefined) return note('mpp-no-expires', 'a challenge without expires')
  const atSeconds = RFC_3339.test(expires) ? Date.parse(expires) / 1000 : Number.NaN
  const invoiceEnd = invoiceExpiresAtSeconds(invoice)
  if (Number.isNaN(atSeconds)) note('mpp-expires', `expires="${expires}", which is not an RFC 3339 time`)
  else if (atSeconds <= nowSeconds()) note('mpp-expires', `expires="${expires}", which is in the past`)
  else if (atSeconds > invoiceEnd)
    note('mpp-expires', `expires="${expires}", ${Math.ceil(atSeconds - invoiceEnd)} s after the invoice’s expiry`)
}
