import type { CreatedPayment } from '../types.ts'
import type { Terms } from './terms.ts'

/** A whole answer. A header with several values is several lines. */
export type Answer = { status: number; headers: Record<string, string | string[]>; body: string }

/** Why what was presented does not count. */
export type Refusal = { code: string; problem: string; detail: string }

const PROBLEMS = 'https://paymentauth.org/problems/'

export const MALFORMED: Refusal = {
  code: 'malformed_credential',
  problem: `${PROBLEMS}malformed-credential`,
  detail: 'The credential cannot be read.',
}
export const OTHER_TERMS: Refusal = {
  code: 'other_terms',
  problem: `${PROBLEMS}invalid-challenge`,
  // Not what it was for: whoever found an id in somebody's receipt would learn what that person bought.
  detail: 'The credential is not for this request, at this price. It was not used up.',
}
const BY_CODE: Record<string, [problem: string, detail: string]> = {
  invalid_payment_credential: ['verification-failed', 'The credential does not prove this payment.'],
  gateway_payment_not_found: ['invalid-challenge', 'The credential is of no payment that is known here.'],
  already_redeemed: ['invalid-challenge', 'The credential was used already: one payment is one delivery.'],
  payment_expired: ['payment-expired', 'The payment was not made in time, or the credential has lapsed.'],
}

/** What the gateway says of the problem is finer than what its code says. */
export function refusalOf(code: string, problem?: unknown): Refusal {
  const [kind, detail] = BY_CODE[code] ?? ['verification-failed', 'The credential was refused.']
  const isKnown = typeof problem === 'string' && problem.startsWith(PROBLEMS)
  return { code, problem: isKnown ? problem : PROBLEMS + kind, detail }
}

const HOW_IN_HTTP =
  'Pay an invoice from WWW-Authenticate over Lightning, and send the request again with the credential in Authorization.'

export function paymentRequired(
  { amountSat, description }: Terms,
  payments: readonly CreatedPayment[],
  refusal: Refusal | undefined,
  howToPay = HOW_IN_HTTP,
): Answer {
  const problem = {
    type: refusal?.problem ?? `${PROBLEMS}payment-required`,
    title: 'Payment Required',
    status: 402,
    detail: `${refusal ? `${refusal.detail} ` : ''}"${description}" costs ${amountSat} sat. ${howToPay}`,
    amountSat,
    description,
    protocols: payments.map(({ protocol }) => protocol),
  }
  return {
    status: 402,
    headers: {
      'WWW-Authenticate': payments.map(({ challenge }) => challenge),
      // A challenge is for one customer: from a cache, two would pay the same invoice.
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json',
    },
    body: JSON.stringify(problem),
  }
}

/** Without a challenge, and without a word about why: the reason may be the merchant's key or credit, which is no customer's business. */
export function unavailable(hasCredential: boolean, retryAfterSeconds: number): Answer {
  const detail = hasCredential
    ? `Whether this was paid cannot be told right now. Do not pay again: send the same credential again in ${retryAfterSeconds} seconds.`
    : `Payments cannot be taken right now. Try again in ${retryAfterSeconds} seconds.`
  return problemAnswer(503, 'Service Unavailable', detail, { retryAfterSeconds })
}

/** The customer has paid for exactly this, and less than it costs by now. Many clients pay every challenge they see, so there is none. */
export function priceChanged({ amountSat }: Terms, paymentId: string): Answer {
  const detail =
    `The price has risen to ${amountSat} sat since this was quoted, and the payment does not cover it. Do not pay again: nothing was ` +
    `used up. Send the same credential again when the price is lower, or name payment ${paymentId} to the seller.`
  return problemAnswer(409, 'Conflict', detail, { amountSat, paymentId })
}

export function deliveryInProgress(retryAfterSeconds: number): Answer {
  const detail =
    'A request with this credential is being answered, or its answer was lost a moment ago. Do not pay again: if you did not get ' +
    `the answer, send the same credential again in ${retryAfterSeconds} seconds.`
  return problemAnswer(409, 'Conflict', detail, { retryAfterSeconds })
}

export function tooManyVisits(retryAfterSeconds: number): Answer {
  const detail = `Too many requests from this address were not paid. Pay one of them, or try again in ${retryAfterSeconds} seconds.`
  return problemAnswer(429, 'Too Many Requests', detail, { retryAfterSeconds })
}

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function allowed(methods: readonly string[] = METHODS): Answer {
  return { status: 204, headers: { Allow: methods.join(', ') }, body: '' }
}

function problemAnswer(
  status: number,
  title: string,
  detail: string,
  { retryAfterSeconds, ...more }: { retryAfterSeconds?: number; amountSat?: number; paymentId?: string },
): Answer {
  return {
    status,
    headers: {
      ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json',
    },
    body: JSON.stringify({ type: 'about:blank', title, status, detail, ...more }),
  }
}

/**
 * The handler's own wish, as far as it keeps what was paid for out of caches that others are served from. `express.static` says `public`,
 * which would let a proxy give the next one for nothing.
 */
export function privately(cacheControl: string | null | undefined): string {
  const directives = (cacheControl ?? '')
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(?:public|s-maxage\b.*)$/i.test(directive))
  if (!directives.some((directive) => /^(?:private|no-store)$/i.test(directive))) directives.push('private')
  return directives.join(', ')
}
