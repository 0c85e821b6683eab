import { AuthenticationError, BoltyardError, InsufficientCreditError, RateLimitError } from '../errors.ts'

/** Which program writes the message: the seller's settings have different names in the paywall and the proxy. */
export type Speaker = 'paywall' | 'proxy'

const QUIET_MS = 60_000
const MOST_CAUSES = 1_000
const lastTold = new Map<string, number>()

/**
 * Writes one line to stderr, at most once a minute per cause, so that the seller learns what is wrong but visitors cannot flood the log.
 */
export function warn(cause: string, text: string, speaker: Speaker = 'paywall', now = Date.now()): void {
  const last = lastTold.get(cause)
  if (last !== undefined && now - last < QUIET_MS) return
  if (lastTold.size >= MOST_CAUSES) lastTold.clear()
  lastTold.set(cause, now)
  // biome-ignore lint/suspicious/noConsole: the only way to stderr in every runtime
  console.error(`boltyard ${speaker}: ${text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')}`)
}

/** What the seller needs to change, as far as the error shows it. */
export function adviceFor(error: unknown, nodeId: string, speaker: Speaker = 'paywall'): string {
  if (!(error instanceof BoltyardError)) return error instanceof Error ? error.message : String(error)
  if (error instanceof AuthenticationError)
    return 'The gateway refused the API key. Set SERVICE_API_KEY (or `client`) to a key with the scope gateway:write.'
  if (error.code === 'not_found' || (error.code === 'unexpected_answer' && (error.status ?? 0) < 500))
    return 'There is no Boltyard API at the base URL. Set SERVICE_BASE_URL (or `client`) to a URL that ends in /v1.'
  if (error.code === 'node_not_found')
    return `The account of this API key has no node ${nodeId}. Set \`${speaker === 'proxy' ? 'node' : 'nodeId'}\` to the id of one of its nodes (node_…), not to a name.`
  if (error instanceof InsufficientCreditError) return "The account's credit is used up. Top it up."
  if (error instanceof RateLimitError) return `The gateway has rate limited this API key (${error.code}). ${error.message}`
  if (error.status === 400) return `The gateway rejected the payment's terms. ${error.message}`
  return `Payments cannot be accepted right now (${error.code}). ${error.message}`
}
