export const MSAT_PER_SAT = 1000

/** What a payment costs in whole satoshis, which is all that a wallet can hold to. */
export const satFromMsat = (amountMsat: number): number => Math.ceil(amountMsat / MSAT_PER_SAT)

/** Tenths of a millisatoshi in one of each unit of BOLT 11: the smallest unit is one of them. */
const TENTHS_OF_MSAT: Record<string, bigint> = { '': 10n ** 12n, m: 10n ** 9n, u: 10n ** 6n, n: 10n ** 3n, p: 1n }

/** Undefined: a fraction of a millisatoshi, or more than a number counts exactly. */
export function msatFromBolt11(digits: string, unit: string): number | undefined {
  const tenths = BigInt(digits) * (TENTHS_OF_MSAT[unit] ?? 0n)
  if (tenths % 10n !== 0n || tenths / 10n > BigInt(Number.MAX_SAFE_INTEGER)) return undefined
  return Number(tenths / 10n)
}
