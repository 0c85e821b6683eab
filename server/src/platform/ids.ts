import { randomBytes } from 'node:crypto'

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz'
const LENGTH = 20

/**
 * Random bytes are drawn in advance, because every request gets an id, and a system call for each would take ten times as long as
 * formatting it.
 */
const POOL_BYTES = 12 * 256
let pool = randomBytes(POOL_BYTES)
let used = 0

export type IdPrefix = 'node' | 'pay' | 'key' | 'acct' | 'person' | 'req' | 'hook'

/**
 * 42 bits of milliseconds, then 58 random bits: sortable by creation time, not guessable. 100 bits are exactly 20 characters in base 32,
 * and the part after the prefix is a valid DNS label.
 */
export function newId(prefix: IdPrefix, nowMs = Date.now()): string {
  if (used + 12 > pool.length) {
    pool = randomBytes(POOL_BYTES)
    used = 0
  }
  const random = pool.subarray(used, used + 12)
  used += 12
  let text = `${prefix}_`
  for (let character = 0; character < LENGTH; character++) {
    // The first eight characters are the upper 40 bits of the time; the ninth has the lower two bits and three random ones.
    if (character < 8) text += CROCKFORD[Math.floor(nowMs / 2 ** (37 - 5 * character)) % 32]
    else if (character === 8) text += CROCKFORD[((nowMs % 4) << 3) | ((random[0] ?? 0) & 7)]
    else text += CROCKFORD[(random[character - 8] ?? 0) & 31]
  }
  return text
}

/** 42 bits of milliseconds end in the year 2109. */
const LAST_SECOND = Math.floor(2 ** 42 / 1000)

/** Sorts after every id of an earlier second, and before all others. */
export const idsFrom = (prefix: IdPrefix, seconds: number): string =>
  newId(prefix, Math.min(seconds, LAST_SECOND) * 1000).slice(0, prefix.length + 9)

export function isId(prefix: IdPrefix, text: string): boolean {
  return (
    text.length === prefix.length + 1 + LENGTH &&
    text.startsWith(`${prefix}_`) &&
    [...text.slice(prefix.length + 1)].every((c) => CROCKFORD.includes(c))
  )
}
