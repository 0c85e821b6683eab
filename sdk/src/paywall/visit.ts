import type { WaitUntil } from './gate/claims.ts'

/** What is asked for, whatever framework it came through. */
export type Target = {
  method: string
  /** The pattern that the router matched with the path it is mounted at, or the path where there is none. */
  route: string
  /** The path with its query. */
  url: string
}

/** A request, whatever framework it came through. */
export type Visit<R> = Target & {
  authorization: string | null | undefined
  /** As the framework's trusted-proxy setting has it. */
  clientAddress?: string | undefined
  /** For the answer to OPTIONS, where the framework knows. */
  methods?: readonly string[] | undefined
  /** Aborted when the customer leaves. */
  signal?: AbortSignal | undefined
  waitUntil?: WaitUntil | undefined
  /** Where a challenge and a credential travel, if not in HTTP's headers. */
  howToPay?: string | undefined
  /** What the functions of the options are given. */
  request: R
}
