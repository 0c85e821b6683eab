import { infiniteQueryOptions, QueryClient, queryOptions } from '@tanstack/react-query'
import { rangeOf } from '../text/periods.ts'
import { ApiError, api } from './client.ts'
import { creditChangesAt, invoiceChangesAt, untilNext } from './deadlines.ts'
import type {
  ApiKey,
  DashboardNode,
  Delivery,
  DeliveryStatus,
  Me,
  NodeLive,
  NodePayment,
  NodeUpdates,
  Overview,
  Webhook,
} from './types.ts'

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // Events invalidate data (events.ts). The limit covers events that were missed.
      staleTime: 30_000,
      // Otherwise queries pause while the browser is offline, but a server on localhost needs no network.
      networkMode: 'always',
      retry: (count, error) => count < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 502),
      retryDelay: (count) => 500 * 2 ** count,
    },
  },
})

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => api.get<Me>('/me', { signal, keepsSession: true }),
  refetchOnWindowFocus: 'always',
})

export const overviewQuery = queryOptions({
  queryKey: ['overview'],
  // The same days as in the chart of what was received, and in the list of payments.
  queryFn: ({ signal }) => api.get<Overview>(`/overview?from=${rangeOf('7d', {}, new Date()).from}`, { signal }),
  refetchInterval: ({ state: { data } }) => (data ? untilNext([creditChangesAt(data.credit)]) : false),
})

export const nodesQuery = queryOptions({
  queryKey: ['nodes'],
  queryFn: async ({ signal }) => (await api.get<{ nodes: DashboardNode[] }>('/nodes', { signal })).nodes,
})

/** Polled, because balance changes do not cause events. */
export const nodeBalancesQuery = queryOptions({ ...nodesQuery, refetchInterval: 30_000 })

export const nodeQuery = (id: string) =>
  queryOptions({
    queryKey: ['nodes', id],
    queryFn: ({ signal }) => api.get<DashboardNode>(`/nodes/${encodeURIComponent(id)}`, { signal }),
  })

/** Polled, because channel changes do not cause events. */
export const liveQuery = (id: string) =>
  queryOptions({
    queryKey: ['nodes', id, 'live'],
    queryFn: ({ signal }) => api.get<NodeLive>(`/nodes/${encodeURIComponent(id)}/live`, { signal }),
    refetchInterval: 10_000,
  })

export const updatesQuery = (id: string) =>
  queryOptions({
    queryKey: ['nodes', id, 'updates'],
    queryFn: ({ signal }) => api.get<NodeUpdates>(`/nodes/${encodeURIComponent(id)}/updates`, { signal }),
  })

export const nodePaymentsQuery = (id: string) =>
  queryOptions({
    queryKey: ['nodes', id, 'payments'],
    queryFn: async ({ signal }) =>
      (await api.get<{ payments: NodePayment[] }>(`/nodes/${encodeURIComponent(id)}/payments`, { signal })).payments,
    refetchInterval: ({ state }) => untilNext((state.data ?? []).map(invoiceChangesAt)),
  })

export const keysQuery = queryOptions({
  queryKey: ['keys'],
  queryFn: async ({ signal }) => (await api.get<{ keys: ApiKey[] }>('/keys', { signal })).keys,
})

export const webhooksQuery = queryOptions({
  queryKey: ['webhooks'],
  queryFn: async ({ signal }) => (await api.get<{ webhooks: Webhook[] }>('/webhooks', { signal })).webhooks,
})

/** Polled, because deliveries do not cause events. */
export const webhookQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhooks', id],
    queryFn: ({ signal }) => api.get<Webhook>(`/webhooks/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: 10_000,
  })

export const DELIVERY_STATUSES: DeliveryStatus[] = ['pending', 'delivered', 'failed']

export const deliveriesQuery = (webhook: Pick<Webhook, 'id' | 'enabled'>, status: DeliveryStatus | undefined) =>
  infiniteQueryOptions({
    queryKey: ['webhooks', webhook.id, 'deliveries', status ?? null],
    queryFn: ({ pageParam, signal }) => {
      const query = parameters({ limit: '20', cursor: pageParam, status })
      return api.get<{ deliveries: Delivery[]; nextCursor: string | null }>(
        `/webhooks/${encodeURIComponent(webhook.id)}/deliveries${query}`,
        { signal },
      )
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
    // Attempts do not cause events either. Nothing changes before the next attempt is due.
    refetchInterval: ({ state }) => {
      const pages = state.data?.pages ?? []
      const dueAt = pages.flatMap(({ deliveries }) => deliveries.map(({ nextAttemptAt }) => nextAttemptAt))
      return webhook.enabled && untilNext(dueAt, pages.length)
    },
  })

/** The server rejects empty parameters, so leave out what is not set. */
export function parameters(values: Record<string, string | null | undefined>): string {
  const set = Object.entries(values).filter((entry): entry is [string, string] => Boolean(entry[1]))
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`
}
