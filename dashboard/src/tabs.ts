import type { DashboardNode } from './api/types.ts'

export const NODE_TABS = ['overview', 'payments', 'connect', 'invoice', 'send', 'log', 'settings'] as const
export type NodeTab = (typeof NODE_TABS)[number]

/** What cannot be done is not offered. A link to it still opens, and says why. */
export const nodeTabs = ({ accessMode }: Pick<DashboardNode, 'accessMode'>, open: NodeTab): NodeTab[] =>
  NODE_TABS.filter((tab) => tab !== 'send' || accessMode === 'full' || open === 'send')
