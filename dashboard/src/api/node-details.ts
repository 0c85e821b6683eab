import { queryOptions } from '@tanstack/react-query'
import { api } from './client.ts'
import type { NodeLog, NodeReceiving } from './types.ts'

/** These keys are not below "nodes", which every payment invalidates: a payment changes neither the log nor the addresses. */
export const nodeLogQuery = (id: string) =>
  queryOptions({
    queryKey: ['node-log', id],
    queryFn: ({ signal }) => api.get<NodeLog>(`/nodes/${encodeURIComponent(id)}/log`, { signal }),
    refetchInterval: 10_000,
  })

export const nodeReceivingQuery = (id: string) =>
  queryOptions({
    queryKey: ['node-receiving', id],
    queryFn: ({ signal }) => api.get<NodeReceiving>(`/nodes/${encodeURIComponent(id)}/receiving`, { signal }),
    // The address comes with the first channel, and a node that did not answer may answer later.
    refetchInterval: ({ state: { data } }) => (data?.offer && data.lightningAddress ? false : 15_000),
  })
