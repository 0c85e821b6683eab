import type { Protocol } from '../types.ts'

/** For logs and counters. There is no credential in it, no preimage, no challenge and no key. */
export type PaywallEvent = { amountSat: number; description: string } & (
  | { type: 'challenged'; paymentIds: string[] }
  | { type: 'refused'; code: string; presented: string | undefined; paymentIds: string[] }
  | { type: 'delivered'; paymentId: string; protocol: Protocol }
  /** `requestId` is the gateway's: name it when you ask its operator. */
  | { type: 'unavailable'; code: string; message: string; presented: string | undefined; requestId: string | undefined }
)

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
