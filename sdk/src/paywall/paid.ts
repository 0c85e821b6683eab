import type { RequestPayment } from './gate/delivery.ts'

const payments = new WeakMap<object, RequestPayment>()

/** The payment for this request. Takes the framework's request object, or the context in Hono. */
export function paymentOf(request: object): RequestPayment | undefined {
  return payments.get(request)
}

export function rememberPayment(request: object, payment: RequestPayment): void {
  payments.set(request, payment)
}
