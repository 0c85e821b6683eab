const GATES = ['/dashboard/sign-in', '/dashboard/sign-up', '/dashboard/link']

export const isGate = (path: string): boolean => GATES.some((gate) => path.startsWith(gate))

/**
 * Accepts only dashboard pages: a foreign URL in `next` would send people who just entered their password to another site, and
 * `/dashboard/../n/…` to a node. So it is resolved the way the browser does it, and the result must still be below /dashboard.
 */
export function safeNext(next: unknown): string | undefined {
  const { origin } = window.location
  if (typeof next !== 'string' || !next.startsWith('/') || !URL.canParse(next, origin)) return undefined
  const url = new URL(next, origin)
  const isOurs = url.origin === origin && /^\/dashboard\/[^/]/.test(url.pathname) && !isGate(url.pathname)
  return isOurs ? url.pathname + url.search + url.hash : undefined
}
