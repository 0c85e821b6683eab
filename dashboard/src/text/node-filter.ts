import type { DashboardNode } from '../api/types.ts'
import { hasUpdate } from './updates.ts'

type Filtered = Pick<
  DashboardNode,
  'id' | 'name' | 'status' | 'operation' | 'isSilent' | 'updateAvailable' | 'updateStatus' | 'version'
>

/** What a list of nodes can be limited to. The names match the words of the badges. */
export const NODE_FILTERS = {
  ready: { name: 'Ready', matches: ({ status, isSilent, operation }) => status === 'ready' && !isSilent && operation === null },
  silent: { name: 'Not responding', matches: ({ isSilent }) => isSilent },
  stopped: { name: 'Stopped', matches: ({ status, operation }) => status === 'stopped' && operation === null },
  failed: { name: 'Failed', matches: ({ status, operation }) => status === 'failed' && operation === null },
  busy: { name: 'In progress', matches: ({ status, operation }) => status === 'provisioning' || operation !== null },
  update: { name: 'Update available', matches: hasUpdate },
} satisfies Record<string, { name: string; matches: (node: Filtered) => boolean }>
export type NodeFilter = keyof typeof NODE_FILTERS
export const NODE_FILTER_NAMES = Object.keys(NODE_FILTERS) as NodeFilter[]

/** Nodes whose name, id or version contains the text, in any case. */
export function filteredNodes<N extends Filtered>(nodes: N[], show: NodeFilter | undefined, text: string): N[] {
  const wanted = text.trim().toLowerCase()
  return nodes.filter(
    (node) =>
      (show === undefined || NODE_FILTERS[show].matches(node)) &&
      [node.name, node.id, node.version ?? ''].some((one) => one.toLowerCase().includes(wanted)),
  )
}
