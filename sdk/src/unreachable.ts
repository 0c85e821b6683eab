/**
 * Nothing was listening, or it could not prove who it is: the request was not sent. `bad port` is one that fetch refuses to try.
 */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|bad port)/

type Cause = { code?: unknown; message?: unknown; syscall?: unknown; cause?: unknown }

/** `fetch` hides it in the error's cause; `node:http` does not. */
function sourceOf(error: unknown): Cause {
  const { code, cause } = (error ?? {}) as Cause
  return typeof code === 'string' || typeof cause !== 'object' || cause === null ? (error as Cause) : cause
}

/** True: nothing can have been done. Of any other failure that is not known. */
export function wasNeverSent(error: unknown): boolean {
  return sourceOf(error)?.syscall === 'connect' || NEVER_SENT.test(whyUnreachable(error))
}

/** A word for people, such as ECONNREFUSED. */
export function whyUnreachable(error: unknown): string {
  const { code, message } = sourceOf(error) ?? {}
  return typeof code === 'string' ? code : String(message ?? '')
}
