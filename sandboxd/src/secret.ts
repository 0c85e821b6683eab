import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares digests, so that timing reveals neither the first difference nor the length. */
export function sameSecret(given: string, wanted: string): boolean {
  return timingSafeEqual(digest(given), digest(wanted))
}

export function newSecret(): string {
  return randomBytes(32).toString('hex')
}
