export const NODE_TABS = ['overview', 'payments', 'connect', 'invoice', 'send', 'log', 'settings'] as const
export type NodeTab = (typeof NODE_TABS)[number]
