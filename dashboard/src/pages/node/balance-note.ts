import type { DashboardNode } from '../../api/types.ts'

/** What the page says about the money of a node that is not ready. A failed node may be running, and may have lost its data. */
export function balanceNote({ status, balanceSat }: Pick<DashboardNode, 'status' | 'balanceSat'>): string {
  const state = status === 'stopped' ? 'stopped' : 'not ready'
  const known = balanceSat === null ? `The balance is unknown while the node is ${state}.` : `The node is ${state}.`
  const safe = status === 'stopped' ? ' Your money is safe.' : ''
  return `${known}${safe} The current balance appears when the node is ready.`
}
