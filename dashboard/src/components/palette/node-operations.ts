import type { DashboardNode } from '../../api/types.ts'

export const NODE_VERBS = { start: 'Start', stop: 'Stop', restart: 'Restart' } as const
export type NodeVerb = keyof typeof NODE_VERBS
const VERBS = Object.keys(NODE_VERBS) as NodeVerb[]

/** What can be done with a node of this status. */
export function verbsOf({ status }: Pick<DashboardNode, 'status'>): NodeVerb[] {
  const can = {
    start: status === 'stopped' || status === 'failed',
    stop: status === 'ready' || status === 'failed',
    restart: status === 'ready',
  }
  return VERBS.filter((verb) => can[verb])
}
