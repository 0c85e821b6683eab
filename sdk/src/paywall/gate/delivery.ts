import type { RedeemedPayment } from '../../types.ts'

/** The payment behind a request, and the handler's say in whether it was delivered. */
export type RequestPayment = Omit<RedeemedPayment, 'redeemedAt'> & {
  /** When the delivery was claimed, in seconds; null for HEAD, which claims nothing. */
  redeemedAt: number | null
  /** Counts as delivered from now on, whatever becomes of the answer. */
  deliver(): void
  /** Counts as not delivered: the customer may send the same credential again. */
  release(reason?: string): void
}

export type Outcome = { delivered: true } | { delivered: false; reason: string }

/** Whether an answer reached its customer. The first call decides; later ones change nothing. */
export class Delivery {
  readonly payment: RequestPayment
  readonly releaseOnDisconnect: boolean
  /** Whether the customer has a part of the answer already; whoever writes the answer knows. */
  hasBegun: () => boolean = () => false
  readonly #settle: ((outcome: Outcome) => void) | undefined
  readonly #receipt: string | undefined
  #outcome: Outcome | undefined

  constructor(
    payment: Omit<RequestPayment, 'deliver' | 'release'>,
    { receipt, releaseOnDisconnect }: { receipt: string | undefined; releaseOnDisconnect: boolean },
    settle?: (outcome: Outcome) => void,
  ) {
    this.payment = {
      ...payment,
      deliver: () => this.deliver(),
      release: (reason) => this.release(reason ?? 'released by the handler'),
    }
    this.#receipt = receipt
    this.releaseOnDisconnect = releaseOnDisconnect
    this.#settle = settle
  }

  /** False: nobody wants to know, so nobody has to watch. */
  get isWatched(): boolean {
    return this.#settle !== undefined
  }

  get isDecided(): boolean {
    return this.#outcome !== undefined
  }

  /** The value of Payment-Receipt, unless there is nothing to give a receipt for. */
  receiptFor(status: number): string | undefined {
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
