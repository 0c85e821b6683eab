import { watched } from './delivery.ts'
import { inProgress, PurchaseError } from './errors.ts'
import { finished, type KeptPurchases } from './kept-purchases.ts'
import { credentialOf, infoOf, type Purchase, type PurchaseInfo } from './purchase.ts'
import type { RepeatableRequest } from './request.ts'

/** A request whose credential is presented. With `isOnce`, its purchase is not made again after its delivery. */
export type Presentation = { key: string; request: RepeatableRequest; isOnce: boolean }

/**
 * For MPP and x402. Only the paywall sends a receipt: a response that has one does not come from a proxy in front of the paywall.
 */
export const hasReceipt = ({ headers }: Response): boolean => headers.has('payment-receipt') || headers.has('payment-response')

const bought = new WeakMap<Response, PurchaseInfo>()

/** The purchase that paid for this response, made by this call or an earlier one. Undefined if the response was free. */
export const purchaseOf = (response: Response): PurchaseInfo | undefined => bought.get(response)

/** The payment hashes of the responses that this process is still reading. */
const reading = new Set<string>()

export const isBeingRead = ({ paymentHash }: Purchase): boolean => reading.has(paymentHash)

/** Presents credentials, and watches what was bought until it was read to the end. Pays nothing. */
export class Presenting {
  readonly #kept: KeptPurchases

  constructor(kept: KeptPurchases) {
    this.#kept = kept
  }

  /**
   * Presents the L402 credential of a delivered purchase, because many sellers accept such a credential until it expires. If
   * there is no such credential, sends the request without one.
   */
  async withoutPaying(request: RepeatableRequest, delivered: Purchase | undefined): Promise<Response> {
    const proof = delivered?.protocol === 'l402' && !request.has(delivered.header) ? credentialOf(delivered) : undefined
    if (!delivered || !proof) return request.ask()
    if (!request.isAt(delivered.url)) {
      // The purchase was made behind a redirect, which may now lead elsewhere.
      const refusal = await request.ask()
      if (refusal.status !== 402 || !request.isAt(delivered.url)) return refusal
      await refusal.body?.cancel()
    }
    const response = await request.send(proof)
    const isChallenge = response.headers.has('www-authenticate') || response.headers.has('payment-required')
    if (response.status === 402 && isChallenge) return response
    // An error other than 401 and 402, without a challenge, is about the request: a new credential would not change it.
    const isLapsed = [401, 402].includes(response.status) || (isChallenge && !response.ok)
    if (isLapsed) await response.body?.cancel()
    else if (response.ok) bought.set(response, infoOf(delivered))
    return isLapsed ? request.ask() : response
  }

  async present({ key, request, isOnce }: Presentation, purchase: Purchase, isMeanwhile: boolean): Promise<Response> {
    const { paymentHash } = purchase
    const proof = credentialOf(purchase)
    if (!proof) throw new TypeError('The purchase has no credential.')
    const response = await request
      .moveTo(new URL(purchase.url))
      .present(proof)
      .catch((cause) => {
        throw unanswered(request, purchase, cause)
      })
    if (response.status === 402) {
      await response.body?.cancel()
      throw isMeanwhile ? inProgress() : paidAgain(purchase)
    }
    bought.set(response, infoOf(purchase))
    // A proxy in front of the paywall may redirect, for example to a maintenance page, so a redirect is a delivery only with a
    // receipt.
    if (!response.ok) {
      if (response.status < 400 && hasReceipt(response)) await this.#kept.advance(key, finished(purchase, isOnce))
      return response
    }
    await this.#kept.advance(key, { ...purchase, state: 'answered' })
    reading.add(paymentHash)
    const ended = async (next: Purchase): Promise<void> => {
      await this.#kept.advance(key, next)
      reading.delete(paymentHash)
    }
    const answer = await watched(response, {
      onEnd: () => ended(finished(purchase, isOnce)),
      onBreak: () => ended({ ...purchase, state: 'paid' }),
    })
    bought.set(answer, infoOf(purchase))
    return answer
  }
}

function unanswered({ signal, url }: RepeatableRequest, { paymentHash }: Purchase, cause: unknown): unknown {
  if (signal.aborted) return cause
  if (cause instanceof PurchaseError) return cause.about(paymentHash, false)
  const message = `You paid, but ${url.host} did not respond. The next call presents the same credential.`
  return new PurchaseError('paid', 'connection_failed', message, { details: { paymentHash }, cause })
}

const paidAgain = ({ paymentHash }: Purchase): PurchaseError =>
  new PurchaseError(
    'paid',
    'credential_refused',
    'You paid, but the server asks for payment again. No second payment was made. The next call presents the same credential; to buy again, forget this purchase.',
    { details: { paymentHash } },
  )
