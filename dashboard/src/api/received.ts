import { queryOptions } from '@tanstack/react-query'
import { type Month, monthStart } from '../text/months.ts'
import { DAYS_OF, type Span } from '../text/received.ts'
import { api } from './client.ts'
import { quarterHourEndsAt, untilNext } from './deadlines.ts'
import type { Received, ReceivedByNode } from './types.ts'

const ofNode = (id: string | undefined): string => (id ? `&nodeId=${encodeURIComponent(id)}` : '')

export const receivedQuery = (span: Span, nodeId?: string) =>
  queryOptions({
    // Payments cause events that invalidate "received". A month is too much to read again each time.
    queryKey: [span === 'month' ? 'received-in-month' : 'received', span, nodeId ?? null],
    queryFn: ({ signal }) => api.get<Received>(`/received?days=${DAYS_OF[span]}${ofNode(nodeId)}`, { signal }),
    refetchInterval: ({ state: { data } }) =>
      span === 'month' ? 30_000 : data ? untilNext([quarterHourEndsAt(data.now)]) : false,
  })

/** The month, and the one before it for comparison. */
export const receivedInMonthQuery = (month: Month, nodeId?: string) =>
  queryOptions({
    queryKey: ['received-in-month', month, nodeId ?? null],
    queryFn: ({ signal }) =>
      api.get<Received>(`/received?from=${monthStart(month, -1)}&to=${monthStart(month, 1)}${ofNode(nodeId)}`, { signal }),
    refetchInterval: ({ state: { data } }) => (data && data.now < monthStart(month, 1) ? 30_000 : false),
  })

/** Up to a minute old; `now` says when the sums were taken. */
export const receivedByNodeQuery = queryOptions({
  queryKey: ['received-by-node'],
  queryFn: ({ signal }) => api.get<ReceivedByNode>('/received/nodes', { signal }),
  refetchInterval: 60_000,
})
