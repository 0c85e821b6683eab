import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type { OperatorSession } from '../../../contract/src/dashboard/operator.ts'
import type { LedgerEntry, OperatorAccount, OperatorAccountDetail } from '../../../contract/src/operator/accounts.ts'
import type { BackgroundWork, DailyStats, Host, VersionCatalog } from '../../../contract/src/operator/installation.ts'
import type { OneLink } from '../../../contract/src/operator/links.ts'
import type { OperatorNode, Stats } from '../../../contract/src/operator/nodes.ts'
import { ApiError, api } from './client.ts'
import { sendOnce } from './credit-attempts.ts'
import { queryClient } from './queries.ts'
import type { Activity } from './types.ts'

export type {
  BackgroundWork,
  DailyStats,
  Host,
  LedgerEntry,
  OneLink,
  OperatorAccount,
  OperatorAccountDetail,
  OperatorNode,
  VersionCatalog,
}

/** The public operator API: whatever the pages do can also be done with curl and the token. */
const OPERATOR = { base: '/operator/v1', keepsSession: true }
const PAGE = '50'

export const operatorSessionQuery = queryOptions({
  queryKey: ['operator', 'session'],
  queryFn: ({ signal }) => api.get<OperatorSession>('/operator/session', { signal, keepsSession: true }),
  refetchOnWindowFocus: 'always',
})

/** Forgets everything that was loaded with the session. */
function forget(session: OperatorSession): void {
  queryClient.removeQueries({ predicate: ({ queryKey: [area, what] }) => area === 'operator' && what !== 'session' })
  queryClient.setQueryData(operatorSessionQuery.queryKey, session)
}

export async function signInAsOperator(token: string): Promise<void> {
  forget(await api.post<OperatorSession>('/operator/session', { token }, { keepsSession: true }))
}

export async function signOutAsOperator(): Promise<void> {
  await api.delete('/operator/session', { keepsSession: true })
  endOperatorSession()
}

export const endOperatorSession = (): void => forget({ isConfigured: true, isSignedIn: false, expiresAt: null })

/** The session may end at any request: then the sign-in page is shown in place of the page. */
async function watched<T>(request: Promise<T>): Promise<T> {
  try {
    return await request
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) void queryClient.invalidateQueries(operatorSessionQuery)
    throw error
  }
}

const get = <T>(path: string, signal: AbortSignal): Promise<T> => watched(api.get<T>(path, { ...OPERATOR, signal }))
const post = <T>(path: string, body: unknown, idempotencyKey?: string): Promise<T> =>
  watched(api.post<T>(path, body, { ...OPERATOR, ...(idempotencyKey ? { idempotencyKey } : {}) }))
const idIn = encodeURIComponent

function parameters(values: Record<string, string | null | undefined>): string {
  const set = Object.entries(values).filter((entry): entry is [string, string] => Boolean(entry[1]))
  return `?${new URLSearchParams(set)}`
}

export const accountsQuery = (search: string | undefined) =>
  infiniteQueryOptions({
    queryKey: ['operator', 'accounts', search ?? null],
    queryFn: ({ pageParam, signal }) =>
      get<{ accounts: OperatorAccount[]; nextCursor: string | null }>(
        `/accounts${parameters({ search, limit: PAGE, order: 'newest', cursor: pageParam })}`,
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
  })

export const accountQuery = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'account', id],
    queryFn: ({ signal }) => get<OperatorAccountDetail>(`/accounts/${idIn(id)}`, signal),
  })

export const accountActivityQuery = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'account', id, 'activity'],
    queryFn: async ({ signal }) =>
      (await get<{ activity: Omit<Activity, 'id'>[] }>(`/accounts/${idIn(id)}/activity`, signal)).activity,
  })

export type NodeState = 'live' | 'failed' | 'restorable'
export type NodeFilter = { search?: string | undefined; accountId?: string | undefined; state?: NodeState | undefined }

/** Polled, because the operator's pages get no events. */
export const operatorNodesQuery = ({ search, accountId, state }: NodeFilter) =>
  infiniteQueryOptions({
    queryKey: ['operator', 'nodes', search ?? null, accountId ?? null, state ?? null],
    queryFn: ({ pageParam, signal }) =>
      get<{ nodes: OperatorNode[]; nextCursor: string | null }>(
        `/nodes${parameters({ search, accountId, state, limit: PAGE, order: 'newest', cursor: pageParam })}`,
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
    refetchInterval: 10_000,
  })

export const hostsQuery = queryOptions({
  queryKey: ['operator', 'hosts'],
  queryFn: async ({ signal }) => (await get<{ hosts: Host[] }>('/hosts', signal)).hosts,
})

export const versionsQuery = queryOptions({
  queryKey: ['operator', 'versions'],
  queryFn: ({ signal }) => get<VersionCatalog>('/versions', signal),
})

export const statsQuery = queryOptions({
  queryKey: ['operator', 'stats'],
  queryFn: ({ signal }) => get<Stats>('/stats', signal),
})

export const daysQuery = (days: number) =>
  queryOptions({
    queryKey: ['operator', 'days', days],
    queryFn: async ({ signal }) => (await get<{ days: DailyStats[] }>(`/stats/days?days=${days}`, signal)).days,
  })

export const backgroundQuery = queryOptions({
  queryKey: ['operator', 'background'],
  queryFn: ({ signal }) => get<BackgroundWork>('/background-work', signal),
  refetchInterval: 10_000,
})

export async function giveCredit(accountId: string, amountSat: number, reason: string): Promise<LedgerEntry> {
  try {
    return await sendOnce({ accountId, amountSat, reason }, (key) =>
      post<LedgerEntry>(`/accounts/${idIn(accountId)}/credit`, { amountSat, reason }, key),
    )
  } finally {
    // Also after a failure: the change may have been made, and the shown balance would be out of date.
    void queryClient.invalidateQueries({ queryKey: ['operator'], predicate: ({ queryKey }) => queryKey[1] !== 'session' })
  }
}

export async function createSignInLink(id: string): Promise<OneLink> {
  const link = await post<OneLink>(`/accounts/${idIn(id)}/sign-in-link`, {})
  void queryClient.invalidateQueries({ queryKey: ['operator', 'account', id, 'activity'] })
  return link
}

export const createInvitation = (email: string | undefined): Promise<OneLink> =>
  post<OneLink>('/invitations', email === undefined ? {} : { email })

export async function undeleteNode(id: string): Promise<void> {
  await post(`/nodes/${idIn(id)}/undelete`, {})
  await queryClient.invalidateQueries({ queryKey: ['operator'] })
}
