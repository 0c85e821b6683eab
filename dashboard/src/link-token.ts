const PAGE = '/dashboard/link'

let token: string | null = null

/**
 * Taken out of the address bar before anything else runs: it is worth a session to whoever reads it over a shoulder, in the history or in
 * a screenshot. It stays in memory only, so that a reload needs the link again.
 */
export function takeLinkToken(): void {
  if (location.pathname.replace(/\/$/, '') !== PAGE || location.hash.length < 2) return
  token = location.hash.slice(1)
  history.replaceState(history.state, '', PAGE)
}

export const linkToken = (): string | null => token

export function forgetLinkToken(): void {
  token = null
}
