import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares digests, so that neither the place of the first difference nor the length can be timed. */
export function sameSecret(given: string, wanted: string): boolean {
  return timingSafeEqual(digest(given), digest(wanted))
}

export function newSecret(): string {
  return randomBytes(32).toString('hex')
}
