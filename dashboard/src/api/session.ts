import { history } from '../history.ts'
import { isGate, safeNext } from '../next.ts'
import { meQuery, queryClient } from './queries.ts'

const HOME = '/dashboard/'
const MARK = 'boltyard-signed-in'
let hasEnded = false
/** While the person signs out: whether a request was refused meanwhile. */
let leaving: { wasRefused: boolean } | undefined

/** Stored in the browser, so that a person who returns after their session ended is told so. */
export function noteSignedIn(isSignedIn: boolean): void {
  hasEnded = false
  try {
    if (isSignedIn) localStorage.setItem(MARK, 'yes')
    else localStorage.removeItem(MARK)
  } catch {
    // Storage is unavailable, so only this tab knows.
  }
}

/** Whether this browser had a session that was not ended here. */
export function hasSessionEnded(): boolean {
  try {
    return hasEnded || localStorage.getItem(MARK) !== null
  } catch {
    return hasEnded
  }
}

/** After sign-in: clears everything another person may have left in memory, and loads who is signed in now. */
export async function enterSession(next?: string): Promise<void> {
  queryClient.clear()
  await queryClient.fetchQuery({ ...meQuery, staleTime: 0 })
  noteSignedIn(true)
  goOn(next)
}

/** Goes to the page the person wanted before they were asked to sign in. */
export function goOn(next?: string): void {
  history.replace(safeNext(next) ?? HOME)
}

/** Signs out. Requests that are refused before the response arrives do not make it look as if the session had ended by itself. */
export async function leaveAfter(end: () => Promise<unknown>): Promise<void> {
  const own = { wasRefused: false }
  leaving = own
  try {
    await end()
    leaveSession(true)
  } catch (error) {
    leaving = undefined
    if (own.wasRefused) leaveSession()
    throw error
  } finally {
    leaving = undefined
  }
}

/** The page to return to after the next sign-in, for a page that finds no session. None if the person is signing out right now. */
export function nextAfterSession(here: string): string | undefined {
  if (!leaving) return safeNext(here)
  queryClient.clear()
  noteSignedIn(false)
  return undefined
}

/** The session ended: go to the sign-in page, and back afterwards unless the person signed out. */
export function leaveSession(isWanted = false): void {
  const { pathname, search } = window.location
  if (isGate(pathname)) return
  if (leaving && !isWanted) {
    leaving.wasRefused = true
    return
  }
  queryClient.clear()
  if (isWanted) noteSignedIn(false)
  else hasEnded = true
  const next = isWanted ? undefined : safeNext(pathname + search)
  history.replace(`/dashboard/sign-in${next ? `?${new URLSearchParams({ next })}` : ''}`)
}
