import type { CreditSummary } from '../api/types.ts'
import { duration } from './format.ts'

export function creditLasts({ runwaySeconds, nodesThatCost }: Pick<CreditSummary, 'runwaySeconds' | 'nodesThatCost'>): string {
  if (runwaySeconds === null) return 'Not in use.'
  if (runwaySeconds <= 0) return 'Used up.'
  return `Will last ${duration(runwaySeconds)} with ${nodesThatCost} running node${nodesThatCost === 1 ? '' : 's'}.`
}
