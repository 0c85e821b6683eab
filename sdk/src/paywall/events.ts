import type { Protocol } from '../types.ts'

/** For logs and metrics. Contains no credential, preimage, challenge or key. */
export type PaywallEvent = { amountSat: number; resource: string; description: string } & (
  | { type: 'challenged'; paymentIds: string[] }
  /** `paymentIds` is empty if the customer was told not to pay again. */
  | { type: 'refused'; code: string; presented: string | undefined; paymentIds: string[] }
  /** The response counts as delivered. */
  | { type: 'delivered'; paymentId: string; protocol: Protocol }
  /** The response was an error or was not completed; the customer can send the same credential again. */
  | { type: 'undelivered'; paymentId: string; protocol: Protocol; reason: string }
  /** One client address has too many unpaid visits open. */
  | { type: 'limited'; clientAddress: string }
  /** `requestId` is the gateway's; quote it when you contact its operator. */
  | { type: 'unavailable'; code: string; message: string; presented: string | undefined; requestId: string | undefined }
)

/** The event's own fields, in addition to the request's terms. */
export type EventDetail = PaywallEvent extends infer E
  ? E extends PaywallEvent
    ? Omit<E, 'amountSat' | 'resource' | 'description'>
    : never
  : never

export type EventHook = (event: PaywallEvent) => unknown

/** A failing event hook must not cost a customer their delivery, even if it rejects later. */
export function tell(hook: EventHook | undefined, event: PaywallEvent): void {
  try {
    const told = hook?.(event)
    if (told instanceof Promise) told.catch(() => undefined)
  } catch {
    // Errors in the hook are ignored.
  }
}
