import { jsonObjectIn, toBase64, utf8Of } from '../../../protocol/src/bytes.ts'
import type { CreatedPayment } from '../types.ts'
import type { Terms } from './terms.ts'

/** A complete response. A header with several values is written as several lines. */
export type Answer = { status: number; headers: Record<string, string | string[]>; body: string }

/** Why a credential was not accepted. `errorReason` is the same in the terms of x402. */
export type Refusal = { code: string; problem: string; detail: string; errorReason?: string | undefined }

const PROBLEMS = 'https://paymentauth.org/problems/'

export const MALFORMED: Refusal = {
  code: 'malformed_credential',
  problem: `${PROBLEMS}malformed-credential`,
  detail: 'The credential is malformed.',
}
/** The same as `MALFORMED`, in the terms of x402. */
export const INVALID_PAYLOAD: Refusal = {
  code: 'malformed_credential',
  problem: `${PROBLEMS}invalid-payload`,
  detail: 'The x402 payment is malformed.',
  errorReason: 'invalid_payload',
}
export const OTHER_TERMS: Refusal = {
  code: 'other_terms',
  problem: `${PROBLEMS}invalid-challenge`,
  // Does not say what the credential was for: someone who found a payment id in a receipt could learn what was bought.
  detail: 'The credential is not for this request at this price. This request did not use it up.',
}
const BY_CODE: Record<string, [problem: string, detail: string]> = {
  invalid_payment_credential: ['verification-failed', 'The credential does not prove this payment.'],
  gateway_payment_not_found: ['invalid-challenge', 'The credential does not belong to a known payment.'],
  already_redeemed: ['invalid-challenge', 'The credential was already used. A payment buys one delivery.'],
  payment_expired: ['payment-expired', 'The challenge or the credential has expired.'],
}

/** Uses the gateway's `problem` if there is one, because it is more specific than the code. */
export function refusalOf(code: string, { problem, errorReason }: { problem?: unknown; errorReason?: unknown } = {}): Refusal {
  const [kind, detail] = BY_CODE[code] ?? ['verification-failed', 'The credential was refused.']
  const isKnown = typeof problem === 'string' && problem.startsWith(PROBLEMS)
  return {
    code,
    problem: isKnown ? problem : PROBLEMS + kind,
    detail,
    errorReason: typeof errorReason === 'string' ? errorReason : undefined,
  }
}

/** Where a customer finds an invoice, and where to send the proof of its payment. */
function howToPayIn(payments: readonly CreatedPayment[], requiresAuth: boolean): string {
  const offered = payments.map(({ protocol }) => protocol)
  const ownField = requiresAuth && offered.includes('mpp') ? ['Payment-Authorization'] : []
  const fields = [
    ...(offered.some((one) => one === 'l402' || (one === 'mpp' && !requiresAuth)) ? ['Authorization'] : []),
    ...ownField,
  ]
  const ways = [
    ...(fields.length > 0 ? [['an invoice from WWW-Authenticate', `the credential in ${fields.join(' or ')}`]] : []),
    ...(offered.includes('x402') ? [['the invoice from PAYMENT-REQUIRED', 'PAYMENT-SIGNATURE']] : []),
  ]
  return ways.map(([invoice, proof]) => `Pay ${invoice} over Lightning, then send the request again with ${proof}.`).join(' Or: ')
}

export function paymentRequired(
  { amountSat, description }: Terms,
  payments: readonly CreatedPayment[],
  refusal: Refusal | undefined,
  {
    howToPay,
    requiresAuth = false,
    link,
  }: { howToPay?: string | undefined; requiresAuth?: boolean | undefined; link?: string | undefined } = {},
): Answer {
  const challenges = payments.filter(({ protocol }) => protocol !== 'x402').map(({ challenge }) => challenge)
  const x402 = payments.find(({ protocol }) => protocol === 'x402')
  const problem = {
    type: refusal?.problem ?? `${PROBLEMS}payment-required`,
    title: 'Payment Required',
    status: 402,
    detail: `${refusal ? `${refusal.detail} ` : ''}"${description}" costs ${amountSat} sat. ${howToPay ?? howToPayIn(payments, requiresAuth)}`,
    amountSat,
    description,
    protocols: payments.map(({ protocol }) => protocol),
  }
  return {
    status: 402,
    headers: {
      ...(challenges.length > 0 ? { 'WWW-Authenticate': challenges } : {}),
      ...(x402 ? { 'PAYMENT-REQUIRED': withError(x402.challenge, refusal?.errorReason) } : {}),
      ...(link === undefined ? {} : { Link: link }),
      // A challenge is for one customer. From a cache, two customers would pay the same invoice.
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json',
    },
    body: JSON.stringify(problem),
  }
}

/** x402 clients read the reason from the challenge itself. */
function withError(challenge: string, error: string | undefined): string {
  if (error === undefined) return challenge
  const { x402Version, ...others } = jsonObjectIn(challenge) ?? {}
  return toBase64(utf8Of(JSON.stringify({ x402Version, error, ...others })))
}

/** Contains no challenge and no reason: the reason may be the seller's key or credit, which customers should not see. */
export function unavailable(hasCredential: boolean, retryAfterSeconds: number): Answer {
  const detail = hasCredential
    ? `The payment cannot be verified right now. Do not pay again: send the same credential again in ${retryAfterSeconds} s.`
    : `Payments cannot be accepted right now. Try again in ${retryAfterSeconds} s.`
  return problemAnswer(503, 'Service Unavailable', detail, { retryAfterSeconds })
}

/** The customer paid for this resource, but the price has risen. No challenge, because many clients pay every challenge they see. */
export function priceChanged({ amountSat }: Terms, paymentId: string | undefined): Answer {
  const detail =
    `The price has risen to ${amountSat} sat since the quote, and the payment does not cover it. Do not pay again: the payment was not ` +
    `used up. Send the same credential again when the price is lower, or ${refundHint(paymentId)}.`
  return problemAnswer(409, 'Conflict', detail, { amountSat, paymentId })
}

const refundHint = (paymentId: string | undefined): string =>
  paymentId === undefined ? 'ask the seller for a refund' : `ask the seller for a refund, with the payment id ${paymentId}`

/** x402 accepts a payment for a limited time, even if it was made in time. */
export function presentedTooLate(paymentId: string | undefined): Answer {
  const detail =
    'The payment was received, but it was presented after the time in which x402 accepts it. Do not pay again: ask the seller for ' +
    `a refund${paymentId === undefined ? '' : `, with the payment id ${paymentId}`}.`
  return problemAnswer(409, 'Conflict', detail, { paymentId })
}

/** The shop itself may be the cause: its public URL or its bound headers may have changed since the quote. */
export function paidForOther(paymentId: string | undefined): Answer {
  const detail =
    'The payment was made for a different request: the method, URL, body or a header differs. Do not pay again: the payment was ' +
    `not used up. Send the request as it was quoted, or ${refundHint(paymentId)}.`
  return problemAnswer(409, 'Conflict', detail, { paymentId })
}

/** The request itself is wrong. No challenge, because its credential may be paid. */
export function badRequest(detail: string): Answer {
  return problemAnswer(400, 'Bad Request', detail, { type: `${PROBLEMS}bad-request` })
}

export function bodyTooLarge(maxBodyBytes: number): Answer {
  const detail = `A payment can be bound to a body of at most ${maxBodyBytes} bytes. Send a smaller one.`
  return problemAnswer(413, 'Content Too Large', detail, {})
}

/** 503 and not 408, because clients that have paid retry after a 503. */
export function bodyTooSlow(hasCredential: boolean, retryAfterSeconds: number): Answer {
  const advice = hasCredential
    ? 'Do not pay again: send the same request with the same credential again'
    : 'Send the request again'
  const detail = `The body of the request did not arrive in time. Nothing was used up. ${advice}.`
  const answer = problemAnswer(503, 'Service Unavailable', detail, { retryAfterSeconds })
  // The rest of the body may never arrive.
  return { ...answer, headers: { ...answer.headers, Connection: 'close' } }
}

export function deliveryInProgress(retryAfterSeconds: number): Answer {
  const detail =
    'Another request with this credential is in progress, or its response was just lost. Do not pay again: if you did not get ' +
    `the response, send the same credential again in ${retryAfterSeconds} s.`
  return problemAnswer(409, 'Conflict', detail, { retryAfterSeconds })
}

export function tooManyVisits(retryAfterSeconds: number): Answer {
  const detail = `Too many unpaid requests from this address. Pay for one of them, or try again in ${retryAfterSeconds} s.`
  return problemAnswer(429, 'Too Many Requests', detail, { retryAfterSeconds })
}

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function allowed(methods: readonly string[] = METHODS): Answer {
  return { status: 204, headers: { Allow: methods.join(', ') }, body: '' }
}

export function problemAnswer(
  status: number,
  title: string,
  detail: string,
  {
    retryAfterSeconds,
    type = 'about:blank',
    ...more
  }: { retryAfterSeconds?: number; type?: string; amountSat?: number; paymentId?: string | undefined },
): Answer {
  return {
    status,
    headers: {
      ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json',
    },
    body: JSON.stringify({ type, title, status, detail, ...more }),
  }
}

/**
 * Keeps the handler's Cache-Control, except for directives that allow shared caches: with `public`, as set by `express.static`, a proxy
 * would serve the paid response to others for free.
 */
export function privately(cacheControl: string | null | undefined): string {
  if (!cacheControl) return 'private'
  const directives = cacheControl
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(?:public|s-maxage\b.*)$/i.test(directive))
  if (!directives.some((directive) => /^(?:private|no-store)$/i.test(directive))) directives.push('private')
  return directives.join(', ')
}

/** The headers that caches of CDNs, nginx (`X-Accel-Expires`), Akamai (`Edge-Control`) and LiteSpeed obey before Cache-Control. */
const FOR_SHARED_CACHES = new Set([
  'cdn-cache-control',
  'surrogate-control',
  'x-accel-expires',
  'edge-control',
  'x-litespeed-cache-control',
])

/** Each CDN may also have a header of its own, such as `Cloudflare-CDN-Cache-Control`. */
export function isForSharedCaches(header: string): boolean {
  const name = header.toLowerCase()
  return FOR_SHARED_CACHES.has(name) || name.endsWith('-cdn-cache-control')
}
