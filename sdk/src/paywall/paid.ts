import type { RedeemedPayment } from '../types.ts'

const payments = new WeakMap<object, RedeemedPayment>()

/** The payment that opened the way for this request: of the framework's own request object, or the context in Hono. */
export function paymentOf(request: object): RedeemedPayment | undefined {
  return payments.get(request)
}

export function rememberPayment(request: object, payment: RedeemedPayment): void {
  payments.set(request, payment)
}
