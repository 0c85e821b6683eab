import { PAYMENT_REQUIRED, WWW_AUTHENTICATE } from './dialects/offers.ts'
import type { Note } from './findings.ts'
import type { Answer } from './visit.ts'

/** Caching, and what a browser lets scripts read and send. */

export const ORIGIN = 'https://shop-visitor.example'

const namesIn = (list: string): string[] =>
  list
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
const directives = (answer: Answer): string[] => namesIn(answer.header('cache-control'))
const cacheControl = (answer: Answer): string => `Cache-Control: ${answer.header('cache-control') || '(none)'}`

export function checkCaching(answer: Answer, note: Note): void {
  if (!directives(answer).includes('no-store')) note('402-cacheable', cacheControl(answer))
}

export function checkPaidCaching(answer: Answer, note: Note): void {
  const [isPrivate, isPublic] = [/^(private|no-store)\b/, /^(public|s-maxage)\b/].map((one) =>
    directives(answer).some((name) => one.test(name)),
  )
  if (!isPrivate || isPublic) note('paid-cacheable', cacheControl(answer))
}

/** A seller without CORS does not sell to scripts in browsers. That is not a fault. */
export const usesCors = (answer: Answer): boolean => answer.header('access-control-allow-origin') !== ''

export function checkExposed(answer: Answer, names: string[], note: Note): void {
  if (!usesCors(answer)) return
  const exposed = namesIn(answer.header('access-control-expose-headers'))
  const isAny = exposed.includes('*') && answer.header('access-control-allow-credentials') !== 'true'
  const hidden = names.filter((name) => answer.header(name) !== '' && !isAny && !exposed.includes(name))
  if (hidden.length > 0) note('cors-expose', `not exposed: ${hidden.join(', ')}`)
}

export const checkExposedChallenge = (answer: Answer, note: Note): void =>
  checkExposed(answer, [WWW_AUTHENTICATE, PAYMENT_REQUIRED], note)

/** `*` does not cover Authorization, as the Fetch standard says. */
export function checkPreflight(preflight: Answer, credentialHeaders: string[], note: Note): void {
  const allowed = namesIn(preflight.header('access-control-allow-headers'))
  const isAllowed = (name: string): boolean => allowed.includes(name) || (allowed.includes('*') && name !== 'authorization')
  const refused = credentialHeaders.filter((name) => !isAllowed(name))
  if (preflight.status < 200 || preflight.status > 299) note('cors-allow', `the preflight request got HTTP ${preflight.status}`)
  else if (refused.length > 0) note('cors-allow', `not allowed: ${refused.join(', ')}`)
}

const MAX_SKEW_MS = 60_000

export function checkDate(answer: Answer, note: Note): void {
  const differsMs = Date.parse(answer.header('date')) - Date.now()
  if (Math.abs(differsMs) > MAX_SKEW_MS)
    note('clock-skew', `Date: ${answer.header('date')}, ${Math.round(differsMs / 1000)} s from this machine’s clock`)
}

/** Traffic within this machine cannot be read by others, and Tor encrypts connections to onion services. */
export function checkTls({ protocol, hostname }: URL, note: Note): void {
  const isExempt = /^(127\.[\d.]+|localhost|\[::1\]|.*\.(localhost|onion))$/.test(hostname)
  if (protocol === 'http:' && !isExempt) note('plain-http', `http://${hostname}`)
}
