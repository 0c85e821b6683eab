import type { CreditSummary } from '../api/types.ts'
import { dateName } from './days.ts'
import { duration, grouped } from './format.ts'

type Credit = Pick<CreditSummary, 'balanceMsat' | 'runwaySeconds' | 'nodesThatCost'>

export function creditLasts({ balanceMsat, runwaySeconds, nodesThatCost }: Credit): string {
  if (runwaySeconds === null)
    return balanceMsat < 0 ? 'This is what you owe. No running node adds to it.' : 'No running node uses it.'
  if (runwaySeconds <= 0) return 'Used up.'
  return `Will last ${lasting(runwaySeconds)} with ${nodesThatCost} running node${nodesThatCost === 1 ? '' : 's'}.`
}

const hours = (count: number): string => `${grouped(count)} hour${count === 1 ? '' : 's'}`

/** What happens when the credit is used up. The hours are the operator's setting. */
export const creditEnds = (graceHours: number): string =>
  graceHours === 0
    ? 'When the credit is used up, running nodes are stopped at once. Nothing is deleted.'
    : `When the credit is used up, nodes keep running for ${hours(graceHours)}, and are then stopped. Nothing is deleted.`

export const graceGiven = (graceHours: number): string =>
  graceHours === 0 ? '' : ` (${hours(graceHours)} after the credit ran out)`

const DAY_SECONDS = 86_400
const FAR_SECONDS = 10 * 365.25 * DAY_SECONDS
const FAR = 'more than 10 years'

/** How long credit lasts: "about 11 days". */
export const lasting = (seconds: number): string => (seconds > FAR_SECONDS ? FAR : duration(seconds))

/** Until when credit lasts once it is this much, if the same nodes keep running. Null: nothing is being used, so there is no such time. */
export function lastsUntil(msat: number, msatPerDay: number, now: number): string | null {
  if (msatPerDay <= 0) return null
  const seconds = (msat / msatPerDay) * DAY_SECONDS
  if (seconds <= 0) return 'does not cover what you owe'
  return `then lasts ${seconds > FAR_SECONDS ? FAR : `until about ${dateName(now + seconds)}`}`
}
