import type { CreatedPayment } from '../types.ts'
import type { Terms } from './terms.ts'

/** A complete response. A header with several values is written as several lines. */
export type Answer = { status: number; headers: Record<string, string | string[]>; body: string }

/** Why a credential was not accepted. */
export type Refusal = { code: string; problem: string; detail: string }

const PROBLEMS = 'https://paymentauth.org/problems/'

export const MALFORMED: Refusal = {
  code: 'malformed_credential',
  problem: `${PROBLEMS}malformed-credential`,
  detail: 'The credential is malformed.',
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
export function refusalOf(code: string, problem?: unknown): Refusal {
  const [kind, detail] = BY_CODE[code] ?? ['verification-failed', 'The credential was refused.']
  const isKnown = typeof problem === 'string' && problem.startsWith(PROBLEMS)
  return { code, problem: isKnown ? problem : PROBLEMS + kind, detail }
}

const HOW_IN_HTTP =
  'Pay an invoice from WWW-Authenticate over Lightning, then send the request again with the credential in Authorization.'

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
      // A challenge is for one customer. From a cache, two customers would pay the same invoice.
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json',
    },
    body: JSON.stringify(problem),
  }
}

/** Contains no challenge and no reason: the reason may be the seller's key or credit, which customers should not see. */
export function unavailable(hasCredential: boolean, retryAfterSeconds: number): Answer {
  const detail = hasCredential
    ? `The payment cannot be verified right now. Do not pay again: send the same credential again in ${retryAfterSeconds} s.`
    : `Payments cannot be accepted right now. Try again in ${retryAfterSeconds} s.`
  return problemAnswer(503, 'Service Unavailable', detail, { retryAfterSeconds })
}

/** The customer paid for this resource, but the price has risen. No challenge, because many clients pay every challenge they see. */
export function priceChanged({ amountSat }: Terms, paymentId: string): Answer {
  const detail =
    `The price has risen to ${amountSat} sat since the quote, and the payment does not cover it. Do not pay again: the payment was not ` +
    `used up. Send the same credential again when the price is lower, or give the seller the payment id ${paymentId}.`
  return problemAnswer(409, 'Conflict', detail, { amountSat, paymentId })
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
 * Keeps the handler's Cache-Control, except for directives that allow shared caches: with `public`, as set by `express.static`, a proxy
 * would serve the paid response to others for free.
 */
export function privately(cacheControl: string | null | undefined): string {
  const directives = (cacheControl ?? '')
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(?:public|s-maxage\b.*)$/i.test(directive))
  if (!directives.some((directive) => /^(?:private|no-store)$/i.test(directive))) directives.push('private')
  return directives.join(', ')
}
