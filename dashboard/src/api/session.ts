import { history } from '../history.ts'
import { isGate, safeNext } from '../next.ts'
import { meQuery, queryClient } from './queries.ts'

const HOME = '/dashboard/'
const MARK = 'boltyard-signed-in'
let hasEnded = false

/** Kept by the browser, so that somebody who comes back after the session has ended is told so, and not only asked for a password. */
export function noteSignedIn(isSignedIn: boolean): void {
  hasEnded = false
  try {
    if (isSignedIn) localStorage.setItem(MARK, 'yes')
    else localStorage.removeItem(MARK)
  } catch {
    // A browser that keeps nothing: only this tab knows then.
  }
}

/** A session was here, and nobody in this browser has ended it. */
export function hasSessionEnded(): boolean {
  try {
    return hasEnded || localStorage.getItem(MARK) !== null
  } catch {
    return hasEnded
  }
}

/** After sign-in: nothing of another person may be left in memory, and everything is asked anew. */
export async function enterSession(next?: string): Promise<void> {
  queryClient.clear()
  await queryClient.fetchQuery({ ...meQuery, staleTime: 0 })
  noteSignedIn(true)
  goOn(next)
}

/** To where somebody wanted to go before they were asked to sign in. */
export function goOn(next?: string): void {
  history.replace(safeNext(next) ?? HOME)
}

/** The session is over: to the sign-in page, and from there back to where one was, unless one wanted to leave. */
export function leaveSession(isWanted = false): void {
  const { pathname, search } = window.location
  if (isGate(pathname)) return
  queryClient.clear()
  if (isWanted) noteSignedIn(false)
  else hasEnded = true
  const next = isWanted ? undefined : safeNext(pathname + search)
  history.replace(`/dashboard/sign-in${next ? `?${new URLSearchParams({ next })}` : ''}`)
}
