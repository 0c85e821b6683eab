import type { Boltyard } from '../../boltyard.ts'
import { CredentialError } from '../../errors.ts'
import type { ExpectedTerms, PaidPayment, Payment, Protocol, RedeemedPayment } from '../../types.ts'
import type { Visit } from '../visit.ts'
import type { Claims, WaitUntil } from './claims.ts'
import { isOutcomeUnknown, patiently } from './patience.ts'

/** A credential as it was presented, and how to find its payment: by its id or, for x402, by its invoice. */
export type Presented = {
  protocol: Protocol
  credential: string
  /** Undefined for x402, unless this process has redeemed the payment before. */
  id: string | undefined
  isReusable: boolean
  /** The SHA-256 of a reusable credential; empty for any other. */
  digest: string
  /** x402 only. */
  bound?: { requestHash: string; invoice: string } | undefined
}

const ATTEMPT_MS = 5_000
/** The gateway itself waits up to 10 s for the money of an x402 payment. */
const X402_MS = 12_000
const MOST_INVOICES = 10_000

/** Asks the gateway about credentials, for as long as the customer should wait. */
export class Redemptions {
  readonly #client: Boltyard
  readonly #patienceMs: number
  readonly #holdSeconds: number
  readonly #claims: Claims
  /** The ids of x402 payments that this process has redeemed. */
  readonly #ids = new Map<string, string>()

  constructor(client: Boltyard, claims: Claims, { patienceMs, holdSeconds }: { patienceMs: number; holdSeconds: number }) {
    this.#client = client
    this.#claims = claims
    this.#patienceMs = patienceMs
    this.#holdSeconds = holdSeconds
  }

  idOf(invoice: string): string | undefined {
    return this.#ids.get(invoice)
  }

  async redeem(
    presented: Presented,
    { requestId, expect }: { requestId: string; expect: ExpectedTerms },
    { signal: left, waitUntil }: Pick<Visit<unknown>, 'signal' | 'waitUntil'>,
  ): Promise<RedeemedPayment> {
    const { id, credential, isReusable, bound } = presented
    const { payments } = this.#client
    const claim = { credential, requestId, expect, holdSeconds: this.#holdSeconds }
    try {
      const payment = await this.#patiently(presented, left, (options) =>
        bound
          ? payments.redeemByInvoice({ ...claim, requestHash: bound.requestHash }, options)
          : payments.redeem(id ?? '', { ...claim, singleUse: !isReusable }, options),
      )
      if (bound) this.#remember(bound.invoice, payment.id)
      return payment
    } catch (error) {
      // The claim may have succeeded although the response was lost.
      if (!isReusable && isOutcomeUnknown(error)) this.#releaseLost(presented, requestId, waitUntil)
      throw error
    }
  }

  /** Claims nothing. */
  async validate(presented: Presented, expect: ExpectedTerms, left: AbortSignal | undefined): Promise<PaidPayment & Payment> {
    const { payments } = this.#client
    return this.#patiently(presented, left, async (options) => {
      const paid = await this.#validate(presented, expect, options)
      return { ...(await payments.get(paid.id, options)), ...paid }
    })
  }

  #validate({ id, credential, bound }: Presented, expect: ExpectedTerms | undefined, options: object): Promise<PaidPayment> {
    const { payments } = this.#client
    const more = expect ? { expect } : {}
    if (bound) return payments.validateByInvoice({ credential, requestHash: bound.requestHash, ...more }, options)
    return payments.validate(id ?? '', credential, { ...options, ...more })
  }

  #patiently<T>({ bound }: Presented, left: AbortSignal | undefined, ask: (options: object) => Promise<T>): Promise<T> {
    const patienceMs = bound ? Math.max(this.#patienceMs, X402_MS) : this.#patienceMs
    const timeoutMs = bound ? X402_MS : ATTEMPT_MS
    return patiently(patienceMs, left, (signal) => ask({ signal, timeoutMs, totalTimeoutMs: patienceMs }))
  }

  #releaseLost(presented: Presented, requestId: string, waitUntil: WaitUntil | undefined): void {
    const { id, bound } = presented
    const findId = async (): Promise<string> => id ?? (await this.#validate(presented, undefined, { timeoutMs: X402_MS })).id
    const lost = { key: id ?? requestId, requestId, findId }
    const releasing = this.#claims.releaseLost(lost, 'the response of the gateway was lost', bound ? X402_MS : ATTEMPT_MS)
    waitUntil?.(releasing)
  }

  #remember(invoice: string, id: string): void {
    this.#ids.set(invoice, id)
    if (this.#ids.size <= MOST_INVOICES) return
    const [oldest] = this.#ids.keys()
    if (oldest !== undefined) this.#ids.delete(oldest)
  }
}

/** The id of a refused payment. If it is not in the credential, the gateway's error may contain it. */
export function refusedId({ id }: Presented, error: unknown): string | undefined {
  const { paymentId } = (error as { details?: { paymentId?: unknown } }).details ?? {}
  return id ?? (typeof paymentId === 'string' ? paymentId : undefined)
}

/** An unsettled credential is not the seller's problem, and anyone can send one. */
export const isCustomers = (error: unknown): boolean => error instanceof CredentialError
