import { history } from './history.ts'
import { meQuery, queryClient } from './queries.ts'

const HOME = '/dashboard/'
const GATES = ['/dashboard/sign-in', '/dashboard/sign-up', '/dashboard/link']

/** Only a page of ours: an address from elsewhere in `next` would send people who just typed their password to somebody else. */
export const safeNext = (next: unknown): string | undefined =>
  typeof next === 'string' && /^\/dashboard\/[^/\\]/.test(next) && !GATES.some((gate) => next.startsWith(gate)) ? next : undefined

/** After sign-in: nothing of another person may be left in memory, and everything is asked anew. */
export async function enterSession(next?: string): Promise<void> {
  queryClient.clear()
  await queryClient.fetchQuery({ ...meQuery, staleTime: 0 })
  history.replace(safeNext(next) ?? HOME)
}

/** The session is over: to the sign-in page, and from there back to where one was, unless one wanted to leave. */
export function leaveSession(isWanted = false): void {
  const { pathname, search } = window.location
  if (GATES.some((gate) => pathname.startsWith(gate))) return
  queryClient.clear()
  const next = isWanted ? undefined : safeNext(pathname + search)
  history.replace(`/dashboard/sign-in${next ? `?${new URLSearchParams({ next })}` : ''}`)
}
