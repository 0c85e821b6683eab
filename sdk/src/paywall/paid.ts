import type { Delivery, RequestPayment } from './gate/delivery.ts'

const deliveries = new WeakMap<object, Delivery>()

/** The payment for this request. Takes the framework's request object, or the context in Hono. */
export function paymentOf(request: object): RequestPayment | undefined {
  return deliveries.get(request)?.payment
}

export function rememberDelivery(request: object, delivery: Delivery): void {
  deliveries.set(request, delivery)
}
