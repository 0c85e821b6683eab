import type { RedeemedPayment } from '../../types.ts'

/** The payment for a request. With its methods, the handler can decide whether the response counts as delivered. */
export type RequestPayment = Omit<RedeemedPayment, 'redeemedAt'> & {
  /** When the delivery was claimed, in Unix seconds; null for HEAD, which claims nothing. */
  redeemedAt: number | null
  /** Marks the response as delivered, whatever happens to it later. */
  deliver(): void
  /** Marks the response as not delivered, so that the customer can send the same credential again. */
  release(reason?: string): void
}

/** The header that tells a customer that their payment was accepted. L402 has none. */
export type Receipt = { header: 'payment-receipt' | 'payment-response'; value: string }

export function receiptOf({
  receipt,
  paymentResponse,
}: Pick<RedeemedPayment, 'receipt' | 'paymentResponse'>): Receipt | undefined {
  if (paymentResponse !== undefined) return { header: 'payment-response', value: paymentResponse }
  return receipt === undefined ? undefined : { header: 'payment-receipt', value: receipt }
}

const no = (): boolean => false

export type Outcome = { delivered: true } | { delivered: false; reason: string }

/** Records whether a response reached its customer. The first call decides; later ones are ignored. */
export class Delivery {
  readonly releaseOnDisconnect: boolean
  /**
   * Whether the customer already has part of the response. Adapters set this and `isKeptWaiting`, so that slow customers are not
   * served twice.
   */
  hasBegun: () => boolean = no
  /** Whether the delivery may be waiting for the customer, not for the handler. */
  isKeptWaiting: () => boolean = no
  readonly #redeemed: Omit<RequestPayment, 'deliver' | 'release'>
  #payment: RequestPayment | undefined
  readonly #settle: ((outcome: Outcome) => void) | undefined
  readonly #receipt: Receipt | undefined
  #outcome: Outcome | undefined

  constructor(
    redeemed: Omit<RequestPayment, 'deliver' | 'release'>,
    { receipt, releaseOnDisconnect }: { receipt: Receipt | undefined; releaseOnDisconnect: boolean },
    settle?: (outcome: Outcome) => void,
  ) {
    this.#redeemed = redeemed
    this.#receipt = receipt
    this.releaseOnDisconnect = releaseOnDisconnect
    this.#settle = settle
  }

  /** Created when it is first read, because most handlers do not use it. */
  get payment(): RequestPayment {
    this.#payment ??= {
      ...this.#redeemed,
      deliver: () => this.deliver(),
      release: (reason) => this.release(reason ?? 'released by the handler'),
    }
    return this.#payment
  }

  /** False if there is nothing to record, so the response need not be watched. */
  get isWatched(): boolean {
    return this.#settle !== undefined
  }

  get isDecided(): boolean {
    return this.#outcome !== undefined
  }

  /**
   * Whether the claim must not lapse at the end of its hold. Otherwise a customer who reads slowly could be served several times
   * for one payment; with `releaseOnDisconnect: false`, so could any customer of a slow handler.
   */
  get mustBeKept(): boolean {
    return !this.releaseOnDisconnect || this.hasBegun() || this.isKeptWaiting()
  }

  /** Errors and released deliveries get no receipt. */
  receiptFor(status: number): Receipt | undefined {
    return status >= 400 || this.#outcome?.delivered === false ? undefined : this.#receipt
  }

  deliver(): void {
    this.#decide({ delivered: true })
  }

  release(reason: string): void {
    this.#decide({ delivered: false, reason })
  }

  #decide(outcome: Outcome): void {
    if (this.#outcome) return
    this.#outcome = outcome
    this.#settle?.(outcome)
  }
}
