import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { judgeL402, L402_SERVICE, readL402 } from '../../src/l402.ts'
import { claimIn, judgeMpp, readMpp } from '../../src/mpp.ts'
import type { Primitives } from '../../src/primitives.ts'
import { Refusal } from '../../src/refusal.ts'

/** Counts HMACs, so that a test can check that none was computed. */
export const asked = { hmacs: 0 }

export const primitives: Primitives = {
  sha256: (data) => hash('sha256', data, 'buffer'),
  hmacSha256: (key, data) => {
    asked.hmacs++
    return createHmac('sha256', key).update(data).digest()
  },
  isEqual: (one, other) => {
    const [a, b] = [Buffer.from(one), Buffer.from(other)]
    return a.length === b.length && timingSafeEqual(a, b)
  },
}

/** Verifies an MPP credential as the gateway does. */
export function mppRefusal(
  text: string,
  issued: { challenge: string; paymentHash: Uint8Array; amountSat: number },
  key: Uint8Array,
): Refusal | undefined {
  const read = readMpp(text)
  const claim = read instanceof Refusal ? read : claimIn(primitives, key, read)
  return claim instanceof Refusal ? claim : judgeMpp(primitives, claim, issued)
}

/** Verifies an L402 credential as the gateway does. */
export function l402Refusal(
  text: string,
  issued: { paymentId: string; paymentHash: Uint8Array; tokenId: Uint8Array },
  rootKey: Uint8Array,
  nowSeconds: number,
  service = L402_SERVICE,
): Refusal | undefined {
  const read = readL402(text)
  const judged = read instanceof Refusal ? read : judgeL402(primitives, read, issued, rootKey, nowSeconds, service)
  return judged instanceof Refusal ? judged : undefined
}
