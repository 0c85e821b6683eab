import type { WaitUntil } from './gate/claims.ts'

/** The requested resource, independent of the framework. */
export type Target = {
  method: string
  /** The matched route pattern including its mount path, or the path if there is none. */
  route: string
  /** Path and query. */
  url: string
}

/** A request, independent of the framework. */
export type Visit<R> = Target & {
  authorization: string | null | undefined
  /** Determined by the framework's trusted-proxy setting. */
  clientAddress?: string | undefined
  /** The route's methods, for the response to OPTIONS. Undefined if the framework does not know them. */
  methods?: readonly string[] | undefined
  /** Aborted when the customer disconnects. */
  signal?: AbortSignal | undefined
  waitUntil?: WaitUntil | undefined
  /** Payment instructions for the customer, if challenges and credentials are not in HTTP headers. */
  howToPay?: string | undefined
  /** Passed to functions in the options. */
  request: R
}
