import type { EventFilter, EventType, Webhook } from '../api/types.ts'

/** When each event happens. */
const TYPES: Record<EventType, string> = {
  'payment.settled': 'The node has received the money.',
  'payment.paid': 'A credential was validated for the first time.',
  'payment.redeemed': 'The delivery is final.',
  'payment.released': 'A delivery failed. The payment can be redeemed again.',
  'node.ready': 'The node runs and can receive payments.',
  'node.stopped': 'The node was stopped.',
  'node.failed': 'The node does not run. The service is trying to restart it.',
  'node.updated': 'An update is complete.',
  'node.rolled_back': 'An update failed, and the node was returned to its previous version.',
  'node.deleted': 'The node was deleted.',
  'credit.low': 'The credit will run out within a week, or within a day.',
  'credit.grace': 'The credit is used up. Nodes still run.',
  'credit.exhausted': 'Nodes are being stopped for lack of credit.',
  'credit.topped_up': 'A top-up was paid.',
  'key.created': 'An API key was created.',
  'key.disabled': 'An API key was disabled.',
  'key.revoked': 'An API key was revoked.',
}
export const EVENT_TYPES = Object.keys(TYPES) as EventType[]
export const whenOf = (type: EventType): string => TYPES[type]

const GROUP_NAMES = { 'payment.*': 'Payments', 'node.*': 'Nodes', 'credit.*': 'Credit', 'key.*': 'API keys' } as const
export type EventGroup = keyof typeof GROUP_NAMES
export const EVENT_GROUPS = (Object.keys(GROUP_NAMES) as EventGroup[]).map((filter) => ({
  filter,
  name: GROUP_NAMES[filter],
  types: EVENT_TYPES.filter((type) => type.startsWith(filter.slice(0, -1))),
}))

export const describeTypes = ({ types }: Pick<Webhook, 'types'>): string => types?.join(', ') ?? 'All events'

/** Adds or removes a filter. A group replaces its types, because it includes them. */
export function withFilter(filters: EventFilter[], filter: EventFilter, isWanted: boolean): EventFilter[] {
  const others = filters.filter((one) => one !== filter && !(filter.endsWith('.*') && one.startsWith(filter.slice(0, -1))))
  return isWanted ? [...others, filter] : others
}
