import { ApiError } from '../api/client.ts'
import { duration } from './format.ts'

/** What to do next, for each code of the contract that a person at the dashboard can meet. */
const NEXT: Record<string, string> = {
  no_answer: 'Check your connection. The page tries again by itself when the service is back.',
  uncertain: 'Check your connection, and look whether it was done before you repeat it.',
  bad_request: 'Change what you entered and send it again.',
  unauthorized: 'Sign in again. If you are signed in, open the dashboard at its own address.',
  insufficient_credit: 'Top up on the Credit page, then try again. Nothing was created or started.',
  node_not_found: 'It may have been deleted, in another tab or by somebody else. Go back to the list of nodes.',
  gateway_payment_not_found: 'Check the id, or go back to the list of payments.',
  not_found: 'Go back and try another way.',
  invalid_node_state: 'Wait until the node has reached the state that is needed, then try again.',
  no_update_available: 'There is nothing to do: the node runs the newest version.',
  node_has_funds: 'Send the funds elsewhere first, or confirm that the node may be deleted with them.',
  operation_in_progress: 'Wait until it has finished; this page shows when.',
  idempotency_conflict: 'The first attempt may have worked. Close this, look at the list, and start again if it is not there.',
  limit_reached: 'Remove one that you no longer need, or ask the operator for a higher limit.',
  payment_expired: 'Create a new challenge and pay that one.',
  invalid_payment_credential: 'Look at the step before: the credential must answer exactly this challenge.',
  rate_limited: 'Wait a moment, then try again.',
  internal_error: 'Try again. If it stays, give the request id to the operator: the log has the cause under it.',
  payment_service_unavailable: 'The node does not answer. See whether it is running, start it if not, then try again.',
  service_unavailable: 'Try again in a few seconds.',
  INVALID_EMAIL_OR_PASSWORD: 'Try again. If you have forgotten the password, ask the operator for a sign-in link.',
  INVALID_PASSWORD: 'Type the password that you signed in with.',
  USER_ALREADY_EXISTS: 'Sign in instead, or use another email address.',
  USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL: 'Sign in instead, or use another email address.',
  PASSWORD_TOO_SHORT: 'Choose a longer password.',
  PASSWORD_TOO_LONG: 'Choose a shorter password.',
  SESSION_NOT_FRESH: 'Sign out and in again, then repeat this within a few minutes.',
  PASSKEY_NOT_FOUND: 'Sign in with your password, then add this passkey in Settings.',
  passkey_cancelled: 'Nothing was changed. Try again when your device is at hand, or use your password.',
}

/** Where the API's own sentence speaks to a program. */
const WHY: Record<string, string> = { node_has_funds: 'There is money on this node.' }

export function explain(error: unknown): { why: string; next: string | null } {
  if (!(error instanceof ApiError)) {
    return {
      why: 'Something in this page went wrong.',
      next: 'Reload the page. Nothing is lost: all that counts is kept by the service.',
    }
  }
  const wait = error.retryAfterSeconds
  if (error.code === 'rate_limited' && wait) {
    return { why: 'Too many requests in a short time.', next: `Try again in ${duration(Math.max(60, wait))}.` }
  }
  return {
    why: WHY[error.code] ?? error.message,
    next: NEXT[error.code] ?? (error.status >= 500 ? (NEXT.internal_error ?? null) : null),
  }
}
