const PAGE = '/dashboard/link'

let token: string | null = null

/**
 * Removed from the address bar before anything else runs: anyone who sees the token on screen, in the history or in a screenshot could
 * sign in with it. It is kept only in memory, so after a reload the link must be opened again.
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
