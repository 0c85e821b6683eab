import { MAX_AMOUNT_MSAT } from '../lightning/bolt11.ts'
import { ApiFault, badRequest } from './faults.ts'
import type { Parameters } from './parameters.ts'

/** Parameters whose values are checked beyond their type. The bounds are phoenixd's, including its overflows. */

const MAX_DESCRIPTION_UTF16 = 128
/** Half of the range in which milliseconds are exact as a double, so adding an expiry to the current time stays exact, too. */
const MAX_EXPIRY_SECONDS = BigInt(Math.floor(Number.MAX_SAFE_INTEGER / 1000 / 2))

/** Overflows at 64 bits, like phoenixd, but refuses values that a double cannot represent exactly. */
export function msatOf(sat: bigint | undefined): number | undefined {
  if (sat === undefined) return undefined
  return exactMsat(BigInt.asIntN(64, sat * 1000n))
}

function exactMsat(msat: bigint): number {
  if (msat > BigInt(MAX_AMOUNT_MSAT)) throw new ApiFault(500, 'amount is not valid')
  return Number(msat)
}

/**
 * phoenixd encodes an invoice's amount in tenths of a millisatoshi, which overflow at 64 bits, too. An amount that is not positive is
 * encoded as 0, which means any amount.
 */
export function requestedMsat(sat: bigint | undefined): number | undefined {
  if (sat === undefined) return undefined
  const tenths = BigInt.asIntN(64, sat * 10_000n)
  if (tenths <= 0n) return Math.max(0, msatOf(sat) ?? 0)
  if (tenths % 10n !== 0n) throw new ApiFault(500, 'invalid sub-millisatoshi precision')
  return exactMsat(tenths / 10n)
}

/** For a negative expiry, phoenixd fails with this error when it looks up the leading base-32 digit in its alphabet. */
export function expiryOf(expirySeconds: bigint | undefined): number | undefined {
  if (expirySeconds === undefined) return undefined
  let digit = expirySeconds
  while (digit <= -32n) digit /= 32n
  if (digit < 0n) throw new ApiFault(500, `String index out of range: ${digit}`)
  if (expirySeconds > MAX_EXPIRY_SECONDS) throw new ApiFault(500, 'expiry is not valid')
  return Number(expirySeconds)
}

/** phoenixd limits only the description of an invoice. The sandbox limits all its texts, because many nodes share a disk. */
export function keptText(parameters: Parameters, name: string, maxLength: number): string | undefined {
  const text = parameters.optional(name)
  if (text !== undefined && text.length > maxLength)
    throw badRequest(`Request parameter ${name} is too long (max ${maxLength} characters)`)
  return text
}

/** Selects the entries a query asks for. The list is oldest first, the response newest first. */
export function newestFirst<T>(
  list: T[],
  timeOf: (item: T) => number,
  query: Parameters,
  now: number,
  wanted: (item: T) => boolean,
): T[] {
  const page = pageOf(query, now)
  const found: T[] = []
  for (let at = list.length - 1, skipped = 0; at >= 0 && found.length < page.limit; at--) {
    const item = list[at] as T
    if (timeOf(item) < page.from || timeOf(item) > page.to || !wanted(item)) continue
    if (skipped++ >= page.offset) found.push(item)
  }
  return found
}

/** As in SQLite, a negative limit means no limit, and a negative offset means 0. */
export function pageOf(query: Parameters, now: number): { from: number; to: number; limit: number; offset: number } {
  const limit = query.optionalInteger('limit') ?? 20
  return {
    from: query.optionalInteger('from') ?? 0,
    to: query.optionalInteger('to') ?? now,
    limit: limit < 0 ? Number.POSITIVE_INFINITY : limit,
    offset: query.optionalInteger('offset') ?? 0,
  }
}

export const flag = (value: string | undefined): boolean => value?.toLowerCase() === 'true'

export function descriptionOf(parameters: Parameters): string | undefined {
  return keptText(parameters, 'description', MAX_DESCRIPTION_UTF16)
}
