import { createHmac, timingSafeEqual } from 'node:crypto'
import { fieldsOf, isHash, valueIn } from './client.ts'

/** Whether the holder of the node's webhook secret signed exactly these bytes. */
export function isSignedWith(secret: string, body: Buffer, signature: string): boolean {
  const expected = createHmac('sha256', secret).update(body).digest()
  // Buffer.from accepts upper case and stops at the first non-hex character: one signature would have many spellings.
  return isHash(signature) && timingSafeEqual(Buffer.from(signature, 'hex'), expected)
}

/** The payment hash of an event that reports a received payment; undefined for any other event. */
export function receivedPaymentIn(body: Buffer): Buffer | undefined {
  const { type, paymentHash } = fieldsOf(valueIn(body.toString('utf8')))
  return type === 'payment_received' && isHash(paymentHash) ? Buffer.from(paymentHash, 'hex') : undefined
}
