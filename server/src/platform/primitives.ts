import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { Primitives } from '../../../protocol/src/primitives.ts'

export const primitives: Primitives = {
  sha256: (data) => hash('sha256', data, 'buffer'),
  hmacSha256: (key, data) => createHmac('sha256', key).update(data).digest(),
  isEqual: (one, other) => {
    const [a, b] = [bytesOf(one), bytesOf(other)]
    // timingSafeEqual throws if the lengths differ.
    return a.length === b.length && timingSafeEqual(a, b)
  },
}

const bytesOf = (data: Uint8Array | string): Uint8Array => (typeof data === 'string' ? Buffer.from(data) : data)
