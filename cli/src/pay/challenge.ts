import { Failure } from '../failure.ts'
import { type Invoice, readInvoice } from './invoice.ts'
import { type Challenge, readChallenges } from './www-authenticate.ts'

/** One way to pay for what was asked: an invoice, and how to say that it was paid. */
export type Offer = { protocol: 'mpp' | 'l402'; invoice: Invoice; amountSat: number; credentialFor: (preimage: string) => string }

/** What can be paid, in the server's order. Throws when it offers nothing that can: with what is wrong with the first one. */
export function readOffers(header: string, now = Date.now() / 1000): Offer[] {
  const challenges = readChallenges(header)
  if (!challenges) throw unusable('Its WWW-Authenticate header is malformed')
  const judged = challenges.map((challenge) => judge(challenge, now)).filter((one) => one !== undefined)
  const offers = judged.filter((one) => typeof one !== 'string')
  if (offers.length > 0) return offers
  throw unusable(judged.find((one) => typeof one === 'string') ?? 'It offers neither MPP over Lightning nor L402')
}

const unusable = (why: string): Failure =>
  new Failure(
    'other',
    'unusable_challenge',
    `The server asks for payment, but not so that it can be paid. ${why}. Nothing was paid.`,
  )

/** A string says why not; undefined: of another kind, which is not our business. */
function judge(challenge: Challenge, now: number): Offer | string | undefined {
  const scheme = challenge.scheme.toLowerCase()
  const offer = scheme === 'payment' ? mpp(challenge, now) : scheme === 'l402' || scheme === 'lsat' ? l402(challenge) : undefined
  if (offer === undefined || typeof offer === 'string') return offer
  if (offer.invoice.expiresAt <= now) return 'Its invoice has expired'
  return offer
}

function priced(invoiceText: string | undefined): { invoice: Invoice; amountSat: number } | string {
  const invoice = invoiceText === undefined ? undefined : readInvoice(invoiceText)
  if (!invoice) return 'Its invoice is malformed'
  if (invoice.amountMsat === undefined) return 'Its invoice names no amount'
  return { invoice, amountSat: Math.ceil(invoice.amountMsat / 1000) }
}

function l402({ scheme, params }: Challenge): Offer | string {
  const macaroon = params.get('macaroon') ?? params.get('token')
  if (macaroon === undefined || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(macaroon)) return 'Its L402 challenge has no macaroon'
  const price = priced(params.get('invoice'))
  return typeof price === 'string'
    ? price
    : { protocol: 'l402', ...price, credentialFor: (preimage) => `${scheme} ${macaroon}:${preimage}` }
}

/** What the client gives back of a challenge, and the merchant compares with what it sent. */
const ECHOED = ['id', 'realm', 'method', 'intent', 'request', 'expires', 'digest', 'opaque', 'description']

function mpp({ params }: Challenge, now: number): Offer | string | undefined {
  if (params.get('method') !== 'lightning' || params.get('intent') !== 'charge') return undefined
  const [id, realm, expires] = [params.get('id'), params.get('realm'), params.get('expires')]
  const request = requestIn(params.get('request') ?? '')
  if (!id || realm === undefined || !request) return 'Its Payment challenge is malformed'
  const { amount, currency, methodDetails } = request
  const details = (typeof methodDetails === 'object' && methodDetails !== null ? methodDetails : {}) as Record<string, unknown>
  if (currency !== 'sat' || typeof amount !== 'string' || !/^[1-9]\d{0,15}$/.test(amount)) return 'Its price is not in satoshi'
  if (expires !== undefined && !(Date.parse(expires) / 1000 > now)) return 'Its challenge has expired'
  const price = priced(typeof details.invoice === 'string' ? details.invoice : undefined)
  if (typeof price === 'string') return price
  // The invoice is what is paid. A challenge that says something else is a mistake or a trap.
  if (price.invoice.amountMsat !== Number(amount) * 1000) return `Its challenge says ${amount} sat and its invoice another amount`
  if (details.paymentHash !== undefined && details.paymentHash !== price.invoice.paymentHash)
    return 'Its challenge and its invoice differ'
  if ((details.network ?? 'mainnet') !== price.invoice.network) return 'Its challenge and its invoice are for different networks'
  const challenge = Object.fromEntries(ECHOED.flatMap((name) => (params.has(name) ? [[name, params.get(name)]] : [])))
  const credentialFor = (preimage: string): string =>
    `Payment ${Buffer.from(JSON.stringify({ challenge, payload: { preimage } })).toString('base64url')}`
  return { protocol: 'mpp', ...price, credentialFor }
}

function requestIn(text: string): Record<string, unknown> | undefined {
  // Node's decoder skips what is not of the alphabet, and so would read what nobody wrote.
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'base64url')))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
