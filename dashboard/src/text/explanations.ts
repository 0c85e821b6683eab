import { ApiError, isWrongOrigin } from '../api/client.ts'
import { duration } from './format.ts'

/**
 * What to do next, for the error codes whose messages do not say so. Each message of `limit_reached` does. The advice for
 * `insufficient_credit` contains a link, so it is in `Problem`.
 */
const NEXT: Record<string, string> = {
  no_answer: 'Check your connection. The page retries automatically when the service is back.',
  uncertain: 'Check your connection, then check whether it worked before you try again.',
  bad_request: 'Correct what you entered and try again.',
  unauthorized: 'Sign in again. If you are signed in, open the dashboard at its own address.',
  node_not_found: 'It may have been deleted in another tab or by someone else. Go back to the list of nodes.',
  gateway_payment_not_found: 'Check the id, or go back to the list of payments.',
  not_found: 'It may have been removed. Go back and reload the page.',
  invalid_node_state: 'Wait until the node is in the required state, then try again.',
  node_has_funds: 'Send the funds elsewhere first, or confirm that you want to delete the node with its funds.',
  operation_in_progress: 'Wait until it has finished. This page updates automatically.',
  idempotency_conflict:
    'The first attempt may have worked. Enter the same as before and try again: if it worked, you get its result.',
  payment_expired: 'Create a new challenge and pay that one.',
  invalid_payment_credential: 'Check the previous step: the credential must match this challenge exactly.',
  rate_limited: 'Wait a moment, then try again.',
  internal_error: 'Try again. If it keeps failing, give the operator the request id, which identifies the error in the log.',
  payment_service_unavailable: 'Check that the node is running, then try again.',
  service_unavailable: 'Try again in a few seconds.',
  passkey_cancelled: 'Nothing was changed. Try again when you have your device, or use your password.',
}

/** Replaces API messages that address programs rather than people. */
const WHY: Record<string, string> = {
  account_exists: 'This person already has an account. Use “Give access…” next to their account in the list.',
  node_has_funds: 'This node holds money.',
  idempotency_conflict: 'You have changed what you entered since the first attempt.',
}

export function explain(error: unknown): { why: string; next: string | null } {
  if (!(error instanceof ApiError)) {
    return {
      why: 'An error occurred on this page.',
      next: 'Reload the page.',
    }
  }
  const wait = error.retryAfterSeconds
  if (error.code === 'rate_limited' && wait) {
    // Rounded up: after a wait that is too short, the person would be refused again.
    return { why: 'Too many requests.', next: `Try again in ${duration(Math.ceil(wait / 60) * 60)}.` }
  }
  // The message says which address. Signing in again, the advice for other 401s, would be refused in the same way.
  if (isWrongOrigin(error)) return { why: error.message, next: 'Open the dashboard at that address and try again.' }
  if (error.isUncertain && error.status > 0) return { why: error.message, next: 'Check whether it worked before you try again.' }
  return {
    why: WHY[error.code] ?? error.message,
    next: NEXT[error.code] ?? (error.status >= 500 ? (NEXT.internal_error ?? null) : null),
  }
}
