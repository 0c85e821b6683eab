import type { Protocol } from '../types.ts'

/** For logs and counters. There is no credential in it, no preimage, no challenge and no key. */
export type PaywallEvent = { amountSat: number; resource: string; description: string } & (
  | { type: 'challenged'; paymentIds: string[] }
  /** `paymentIds` is empty where the customer was told not to pay again. */
  | { type: 'refused'; code: string; presented: string | undefined; paymentIds: string[] }
  /** The answer was finished. */
  | { type: 'delivered'; paymentId: string; protocol: Protocol }
  /** It was not, and the same credential is served again. */
  | { type: 'undelivered'; paymentId: string; protocol: Protocol; reason: string }
  /** One client address has too many unpaid visits open. */
  | { type: 'limited'; clientAddress: string }
  /** `requestId` is the gateway's: name it when you ask its operator. */
  | { type: 'unavailable'; code: string; message: string; presented: string | undefined; requestId: string | undefined }
)

/** What each event adds to the terms of the request. */
export type EventDetail = PaywallEvent extends infer E
  ? E extends PaywallEvent
    ? Omit<E, 'amountSat' | 'resource' | 'description'>
    : never
  : never

export type EventHook = (event: PaywallEvent) => unknown

/** A log that is full must cost nobody what they paid for, also when it says so later. */
export function tell(hook: EventHook | undefined, event: PaywallEvent): void {
  try {
    const told = hook?.(event)
    if (told instanceof Promise) told.catch(() => undefined)
  } catch {
    // The hook's own affair.
  }
}
