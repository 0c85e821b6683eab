import { queryOptions } from '@tanstack/react-query'
import { DAYS_OF, type Span } from '../text/received.ts'
import { api } from './client.ts'
import { quarterHourEndsAt, untilNext } from './deadlines.ts'
import type { Received, ReceivedByNode } from './types.ts'

export const receivedQuery = (span: Span, nodeId?: string) =>
  queryOptions({
    // Payments cause events that invalidate "received". A month is too much to read again each time.
    queryKey: [span === 'month' ? 'received-in-month' : 'received', span, nodeId ?? null],
    queryFn: ({ signal }) =>
      api.get<Received>(`/received?days=${DAYS_OF[span]}${nodeId ? `&nodeId=${encodeURIComponent(nodeId)}` : ''}`, { signal }),
    refetchInterval: ({ state: { data } }) =>
      span === 'month' ? 30_000 : data ? untilNext([quarterHourEndsAt(data.now)]) : false,
  })

/** Up to a minute old; `now` says when the sums were taken. */
export const receivedByNodeQuery = queryOptions({
  queryKey: ['received-by-node'],
  queryFn: ({ signal }) => api.get<ReceivedByNode>('/received/nodes', { signal }),
  refetchInterval: 60_000,
})
