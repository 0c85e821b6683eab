export const MSAT_PER_SAT = 1000

/** The price in whole satoshis, rounded up, because clients limit their spending in whole satoshis. */
export const satFromMsat = (amountMsat: number): number => Math.ceil(amountMsat / MSAT_PER_SAT)

/** BOLT 11's units in tenths of a millisatoshi, the smallest unit. */
const TENTHS_OF_MSAT: Record<string, bigint> = { '': 10n ** 12n, m: 10n ** 9n, u: 10n ** 6n, n: 10n ** 3n, p: 1n }

/** Undefined if the amount has a fraction of a millisatoshi, or is too large for an exact number. */
export function msatFromBolt11(digits: string, unit: string): number | undefined {
  const tenths = BigInt(digits) * (TENTHS_OF_MSAT[unit] ?? 0n)
  if (tenths % 10n !== 0n || tenths / 10n > BigInt(Number.MAX_SAFE_INTEGER)) return undefined
  return Number(tenths / 10n)
}
