import type { BindOptions, Bound } from './binding.ts'
import type { WaitUntil } from './gate/claims.ts'

/** The requested resource, independent of the framework. */
export type Target = {
  method: string
  /** The matched route pattern including its mount path, or the path if there is none. */
  route: string
  /** Path and query. */
  url: string
}

/** The header fields of a request that are about payment, or about the form of the response. */
export type PaymentFields = {
  authorization: string | null | undefined
  paymentAuthorization?: string | null | undefined
  paymentSignature?: string | null | undefined
  acceptPayment?: string | null | undefined
  accept?: string | null | undefined
}

/** A request, independent of the framework. */
export type Visit<R> = Target &
  PaymentFields & {
    /** Determined by the framework's trusted-proxy setting. */
    clientAddress?: string | undefined
    /** Advice for the seller if `clientAddress` is the address of a proxy. */
    trustAdvice?: string | undefined
    /** The route's methods, for the response to OPTIONS. Undefined if the framework does not know them. */
    methods?: readonly string[] | undefined
    /** Aborted when the customer disconnects. After a decision, it may also be aborted when the response is over. */
    signal?: AbortSignal | undefined
    waitUntil?: WaitUntil | undefined
    /** Payment instructions for the customer, if challenges and credentials are not in HTTP headers. */
    howToPay?: string | undefined
    /** Binds an x402 payment to this request. Without it, x402 cannot be offered. */
    bind?: ((options: BindOptions) => Promise<Bound>) | undefined
    /** Passed to functions in the options. */
    request: R
  }
