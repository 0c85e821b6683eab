import { queryOptions } from '@tanstack/react-query'
import type { Span } from '../received.ts'
import { api } from './client.ts'
import { quarterHourEndsAt, untilNext } from './deadlines.ts'
import type { NodeLog, NodeReceiving, Received, ReceivedByNode } from './types.ts'

const DAYS: Record<Span, number> = { day: 1, week: 7, month: 30 }

export const receivedQuery = (span: Span, nodeId?: string) =>
  queryOptions({
    // Payments cause events that invalidate "received". A month is too much to read again each time.
    queryKey: [span === 'month' ? 'received-in-month' : 'received', span, nodeId ?? null],
    queryFn: ({ signal }) =>
      api.get<Received>(`/received?days=${DAYS[span]}${nodeId ? `&nodeId=${encodeURIComponent(nodeId)}` : ''}`, { signal }),
    refetchInterval: ({ state: { data } }) =>
      span === 'month' ? 30_000 : data ? untilNext([quarterHourEndsAt(data.now)]) : false,
  })

/** Up to a minute old; `now` says when the sums were taken. */
export const receivedByNodeQuery = queryOptions({
  queryKey: ['received-by-node'],
  queryFn: ({ signal }) => api.get<ReceivedByNode>('/received/nodes', { signal }),
  refetchInterval: 60_000,
})

/** Not below "nodes": every payment invalidates those, and neither of these changes with it. */
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
