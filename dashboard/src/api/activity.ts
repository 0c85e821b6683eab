import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { ActivityEntry, ActivitySubjects, ACTIVITY_KINDS as KINDS } from '../../../contract/src/dashboard/activity.ts'
import { type DatePeriod, dateIn, hourStartMinute, timesOf } from '../text/days.ts'
import { api } from './client.ts'
import { parameters } from './queries.ts'

export type { ActivityEntry, ActivitySubjects }
export type ActivityKind = (typeof KINDS)[number]
/** Not imported from the contract, because that would also load its schemas. */
export const ACTIVITY_KINDS: ActivityKind[] = ['nodes', 'payments', 'keys', 'credit', 'people', 'webhooks']
/** The filter as it is in the URL. The dates are local, and both are included. */
export type ActivityFilter = DatePeriod & {
  kind?: ActivityKind | undefined
  nodeId?: string | undefined
  keyId?: string | undefined
  actor?: string | undefined
}
type Page = { activity: ActivityEntry[]; nextCursor: string | null }

const idIn = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(value) ? value : undefined

export const activityFilterIn = (search: Record<string, unknown>): ActivityFilter => ({
  kind: ACTIVITY_KINDS.find((kind) => kind === search.kind),
  nodeId: idIn(search.nodeId),
  keyId: idIn(search.keyId),
  actor: idIn(search.actor),
  from: dateIn(search.from),
  to: dateIn(search.to),
})

export const isActivityFiltered = (filter: ActivityFilter): boolean => Object.values(filter).some((value) => value !== undefined)

export const activityPagesQuery = (filter: ActivityFilter) =>
  infiniteQueryOptions({
    queryKey: ['activity', 'pages', filter],
    queryFn: ({ pageParam, signal }) => {
      const query = parameters({
        ...filter,
        ...timesOf(filter),
        folded: 'true',
        hourStartMinute: hourStartMinute(),
        cursor: pageParam,
      })
      return api.get<Page>(`/activity${query}`, { signal })
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
    placeholderData: keepPreviousData,
  })

/** The entries behind a fold (one line for many payments) that match the filter of the list. They never change. */
export function foldQuery({ keyId, actor }: ActivityFilter, { id, nodeId, fold }: Pick<ActivityEntry, 'id' | 'nodeId' | 'fold'>) {
  const period = { from: String(fold?.from ?? 0), to: String((fold?.to ?? 0) + 1) }
  const wanted = { kind: 'payments', nodeId, keyId, actor, ...period }
  return infiniteQueryOptions({
    queryKey: ['activity-fold', id, wanted],
    queryFn: ({ pageParam, signal }) => api.get<Page>(`/activity${parameters({ ...wanted, cursor: pageParam })}`, { signal }),
    initialPageParam: String(id + 1),
    getNextPageParam: (last) => last.nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export const subjectsQuery = queryOptions({
  queryKey: ['activity', 'subjects'],
  queryFn: ({ signal }) => api.get<ActivitySubjects>('/activity/subjects', { signal }),
})
