import { randomInt } from 'node:crypto'

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz'
const LENGTH = 20

export type IdPrefix = 'node' | 'pay' | 'key' | 'acct' | 'req'

/**
 * 42 bits of milliseconds, then 58 random ones: sortable by creation, not guessable. 100 bits are exactly 20 characters of base 32,
 * and the part after the prefix is a DNS label.
 */
export function newId(prefix: IdPrefix, nowMs = Date.now()): string {
  const random = (BigInt(randomInt(2 ** 29)) << 29n) | BigInt(randomInt(2 ** 29))
  let bits = ((BigInt(nowMs) & (2n ** 42n - 1n)) << 58n) | random
  let text = ''
  for (let index = 0; index < LENGTH; index++) {
    text = CROCKFORD[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return `${prefix}_${text}`
}

export function isId(prefix: IdPrefix, text: string): boolean {
  return (
    text.length === prefix.length + 1 + LENGTH &&
    text.startsWith(`${prefix}_`) &&
    [...text.slice(prefix.length + 1)].every((c) => CROCKFORD.includes(c))
  )
}
