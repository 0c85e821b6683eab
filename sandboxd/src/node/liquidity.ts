import type { Options } from '../options.ts'

/** How a received amount is handled: accepted as it is, accepted with a new or larger channel, kept as fee credit, or rejected. */
export type Admission =
  | { admitted: true; liquidityFeeMsat: number; feeCreditUsedMsat: number; toFeeCreditMsat: number; capacitySat: number | null }
  | { admitted: false; consoleLine: string }

export type LiquidityPolicy = Pick<Options, 'autoLiquiditySat' | 'maxMiningFeeSat' | 'maxFeeCreditSat' | 'maxRelativeFeePercent'>

/** `usedMsat`: the balance, plus pending payments in both directions, because they may still end up in the channel. */
export type ChannelUse = { usedMsat: number; capacitySat: number | null; feeCreditMsat: number }

const FUNDING_FEERATE_SAT_PER_BYTE = 10
const CHANNEL_CREATION_VBYTES = 271
const SPLICE_VBYTES = 190

export function liquidityFees(amountSat: number, hasChannel: boolean): { miningFeeSat: number; serviceFeeSat: number } {
  return {
    miningFeeSat: FUNDING_FEERATE_SAT_PER_BYTE * (hasChannel ? SPLICE_VBYTES : CHANNEL_CREATION_VBYTES),
    serviceFeeSat: Math.floor(amountSat / 100),
  }
}

export function admit(amountMsat: number, channel: ChannelUse, withFees: boolean, policy: LiquidityPolicy): Admission {
  const free = { admitted: true, liquidityFeeMsat: 0, feeCreditUsedMsat: 0, toFeeCreditMsat: 0 } as const
  const neededMsat = channel.usedMsat + amountMsat
  if (channel.capacitySat !== null && neededMsat <= channel.capacitySat * 1000)
    return { ...free, capacitySat: channel.capacitySat }
  const capacitySat = Math.ceil(neededMsat / 1000) + policy.autoLiquiditySat
  if (!withFees) return { ...free, capacitySat }

  const amountSat = Math.floor(amountMsat / 1000)
  const rejected = (why: string): Admission => ({
    admitted: false,
    consoleLine: `lightning payment rejected (amount=${amountSat} sat): ${why}`,
  })
  if (policy.autoLiquiditySat === 0) return { admitted: false, consoleLine: 'automated liquidity is disabled' }
  const fees = liquidityFees(policy.autoLiquiditySat, channel.capacitySat !== null)
  const feeMsat = (fees.miningFeeSat + fees.serviceFeeSat) * 1000
  const creditThenMsat = channel.feeCreditMsat + amountMsat
  if (creditThenMsat <= feeMsat && creditThenMsat <= policy.maxFeeCreditSat * 1000) {
    return { ...free, toFeeCreditMsat: amountMsat, capacitySat: channel.capacitySat }
  }
  const feeSat = feeMsat / 1000
  if (fees.miningFeeSat > policy.maxMiningFeeSat) {
    return rejected(`over absolute fee (fee=${fees.miningFeeSat} sat max=${policy.maxMiningFeeSat} sat)`)
  }
  if (feeSat * 100 > (amountSat + policy.autoLiquiditySat) * policy.maxRelativeFeePercent) {
    return rejected(`over relative fee (fee=${feeSat} sat max=${policy.maxRelativeFeePercent}%)`)
  }
  const feeCreditUsedMsat = Math.min(channel.feeCreditMsat, feeMsat)
  if (amountMsat < feeMsat - feeCreditUsedMsat) {
    return {
      admitted: false,
      consoleLine: `missing offchain amount is too low (missingOffChainAmount=${amountSat} sat currentFeeCredit=${Math.floor(channel.feeCreditMsat / 1000)} sat)`,
    }
  }
  return { admitted: true, liquidityFeeMsat: feeMsat, feeCreditUsedMsat, toFeeCreditMsat: 0, capacitySat }
}
