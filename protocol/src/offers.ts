import { type Invoice, invoiceExpiresAtSeconds, normalizedInvoice, readInvoice } from './bolt11.ts'
import { isObject, jsonObjectIn } from './bytes.ts'
import { MPP_HEADER, mppCredential } from './mpp.ts'
import { MSAT_PER_SAT, satFromMsat } from './units.ts'
import { type Challenge, readChallenges } from './www-authenticate.ts'

/** One way to pay: an invoice, and how to prove that it was paid. */
export type Offer = {
  protocol: 'mpp' | 'l402' | 'x402'
  /** The request header that carries the credential, in lower case. */
  header: CredentialHeader
  invoiceText: string
  invoice: Invoice
  amountSat: number
  credentialFor: (preimage: string) => string
}

export type CredentialHeader = 'authorization' | 'payment-authorization' | 'payment-signature'

/** The offers that can be paid, in the server's order; or why the first one cannot. */
export type Offers = { offers: [Offer, ...Offer[]] } | { unusable: string }

/** What the client can do: `obeysHeader`, if it sends each credential in its offer's `header`. */
type Abilities = { obeysHeader?: boolean }

/**
 * Reads the WWW-Authenticate header of a 402 for a client. The price is taken from the invoice: if the shop's claim were trusted,
 * a client's spending limit would not hold.
 */
export function readOffers(header: string, nowSeconds: number, { obeysHeader = false }: Abilities = {}): Offers {
  const challenges = readChallenges(header)
  if (!challenges) return { unusable: 'Its WWW-Authenticate header is malformed' }
  const judged = challenges.map((challenge) => judge(challenge, nowSeconds, obeysHeader)).filter((one) => one !== undefined)
  const [first, ...more] = judged.filter((one) => typeof one !== 'string')
  if (first) return { offers: [first, ...more] }
  return {
    unusable: judged.find((one) => typeof one === 'string') ?? 'It offers neither MPP over Lightning nor L402',
  }
}

/** The first offer of a challenge that was just issued. Its expiry is not checked, because the local clock may be wrong. */
export function offerIn(challenge: string): Offer {
  const read = readOffers(challenge, 0)
  if ('unusable' in read) throw new Error(`The challenge cannot be paid. ${read.unusable}.`)
  return read.offers[0]
}

/** A string says why the challenge cannot be paid; undefined means that it has another scheme, method or intent. */
function judge(challenge: Challenge, nowSeconds: number, obeysHeader: boolean): Offer | string | undefined {
  const scheme = challenge.scheme.toLowerCase()
  const offer =
    scheme === 'payment'
      ? mppOffer(challenge, nowSeconds, obeysHeader)
      : scheme === 'l402' || scheme === 'lsat'
        ? l402Offer(challenge)
        : undefined
  if (offer === undefined || typeof offer === 'string') return offer
  return invoiceExpiresAtSeconds(offer.invoice) <= nowSeconds ? 'Its invoice has expired' : offer
}

function priced(given: string | undefined): Pick<Offer, 'invoiceText' | 'invoice' | 'amountSat'> | string {
  const invoiceText = normalizedInvoice(given ?? '')
  const invoice = readInvoice(invoiceText)
  if (!invoice) return 'Its invoice is malformed'
  if (invoice.amountMsat === undefined) return 'Its invoice has no amount'
  return { invoiceText, invoice, amountSat: satFromMsat(invoice.amountMsat) }
}

function l402Offer({ scheme, params }: Challenge): Offer | string {
  const macaroon = params.get('macaroon') ?? params.get('token')
  if (macaroon === undefined || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(macaroon)) return 'Its L402 challenge has no macaroon'
  const price = priced(params.get('invoice'))
  if (typeof price === 'string') return price
  return { protocol: 'l402', header: 'authorization', ...price, credentialFor: (preimage) => `${scheme} ${macaroon}:${preimage}` }
}

/** The parameters that the client echoes and the shop compares. */
const ECHOED = ['id', 'realm', 'method', 'intent', 'request', 'expires', 'digest', 'opaque', 'description', 'header']

function mppOffer({ params }: Challenge, nowSeconds: number, obeysHeader: boolean): Offer | string | undefined {
  if (params.get('method') !== 'lightning' || params.get('intent') !== 'charge') return undefined
  const named = params.get('header')
  // A client that sent the credential in Authorization would pay and get nothing.
  if (named !== undefined && (!obeysHeader || named !== MPP_HEADER))
    return 'Its credential must be sent in a separate header, which is not supported'
  const [id, realm, expires] = [params.get('id'), params.get('realm'), params.get('expires')]
  const text = params.get('request') ?? ''
  // Require unpadded base64url: the shop would refuse any other encoding after the payment.
  const request = /^[A-Za-z0-9_-]+$/.test(text) ? jsonObjectIn(text) : undefined
  if (!id || realm === undefined || !request) return 'Its Payment challenge is malformed'
  const { amount, currency } = request
  const details = isObject(request.methodDetails) ? request.methodDetails : {}
  if (currency !== 'sat' || typeof amount !== 'string' || !/^[1-9]\d{0,15}$/.test(amount)) return 'Its price is not in satoshis'
  if (expires !== undefined && !(Date.parse(expires) / 1000 > nowSeconds)) return 'Its challenge has expired'
  const price = priced(typeof details.invoice === 'string' ? details.invoice : undefined)
  if (typeof price === 'string') return price
  // The client pays the invoice. A challenge that says something else is a mistake or a trap.
  if (price.invoice.amountMsat !== Number(amount) * MSAT_PER_SAT)
    return `Its challenge says ${amount} sat, but its invoice has a different amount`
  if (details.paymentHash !== undefined && details.paymentHash !== price.invoice.paymentHash)
    return 'Its challenge does not match its invoice'
  if ((details.network ?? 'mainnet') !== price.invoice.network) return 'Its challenge and its invoice are for different networks'
  const echoed = Object.fromEntries(ECHOED.flatMap((name) => (params.has(name) ? [[name, params.get(name)]] : [])))
  const header = named === undefined ? 'authorization' : 'payment-authorization'
  return { protocol: 'mpp', header, ...price, credentialFor: (preimage) => mppCredential(echoed, preimage) }
}
