import type { DashboardNode } from './api/types.ts'

export const NODE_TABS = ['overview', 'payments', 'connect', 'invoice', 'send', 'log', 'settings'] as const
export type NodeTab = (typeof NODE_TABS)[number]

/** Hides the tab Send if the dashboard cannot send from the node. A link to that tab still opens it, and the tab says why. */
export const nodeTabs = ({ accessMode }: Pick<DashboardNode, 'accessMode'>, open: NodeTab): NodeTab[] =>
  NODE_TABS.filter((tab) => tab !== 'send' || accessMode === 'full' || open === 'send')
