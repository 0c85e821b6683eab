import type { CreditSummary } from '../../api/types.ts'

type Debt = { sat: number; label: string }

/**
 * What is owed, and a day of the nodes that are charged for, or of one node if all were stopped: the least that lets people go on.
 * Null without a debt.
 */
export function debtAndOneDay(
  { balanceMsat, nodesThatCost }: Pick<CreditSummary, 'balanceMsat' | 'nodesThatCost'>,
  satPerDay: number,
): Debt | null {
  if (balanceMsat >= 0) return null
  const nodes = Math.max(nodesThatCost, 1)
  const day = nodes === 1 ? 'a day of one node' : `a day of ${nodes} nodes`
  return {
    sat: Math.ceil(-balanceMsat / 1000) + nodes * satPerDay,
    label: satPerDay === 0 ? 'what you owe' : `what you owe, and ${day}`,
  }
}
