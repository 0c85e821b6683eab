import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type { ApiRequest, KeyUsage } from '../../../contract/src/dashboard/developers.ts'
import { api } from './client.ts'

export type { ApiRequest, KeyUsage }

export const keyUsageQuery = queryOptions({
  queryKey: ['key-usage'],
  queryFn: ({ signal }) => api.get<KeyUsage>('/key-usage', { signal }),
  refetchInterval: 30_000,
})

export type RequestFilter = {
  keyId?: string | undefined
  status?: '2' | '4' | '5' | undefined
  route?: string | undefined
  requestId?: string | undefined
}
export const STATUS_CLASSES = ['2', '4', '5'] as const
/** The request ids that the service accepts or creates (C3). */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

export const requestFilterOf = (search: Record<string, unknown>): RequestFilter => {
  const requestId = textIn(search.requestId)
  return {
    keyId: textIn(search.keyId),
    status: STATUS_CLASSES.find((one) => one === String(search.status)),
    route: textIn(search.route),
    requestId: requestId !== undefined && REQUEST_ID.test(requestId) ? requestId : undefined,
  }
}

/** Polled only while just the first page is shown: new rows would move older pages while someone reads them. */
export const requestsQuery = ({ keyId, status, route, requestId }: RequestFilter) =>
  infiniteQueryOptions({
    queryKey: ['requests', keyId ?? null, status ?? null, route ?? null, requestId ?? null],
    queryFn: ({ pageParam, signal }) => {
      const all = { cursor: pageParam, keyId, statusClass: status, route, requestId }
      const set = Object.entries(all).filter((entry): entry is [string, string] => Boolean(entry[1]))
      return api.get<{ requests: ApiRequest[]; nextCursor: string | null }>(`/requests?${new URLSearchParams(set)}`, { signal })
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) <= 1 ? 5_000 : false),
  })
