/**
 * The server could not be found or reached, or its TLS certificate was invalid, so the request was not sent. `bad port` is a port
 * that fetch refuses to use.
 */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|bad port)/

type Cause = { code?: unknown; message?: unknown; syscall?: unknown; cause?: unknown }

/** `fetch` puts the code in the error's cause; `node:http` in the error itself. */
function sourceOf(error: unknown): Cause {
  const { code, cause } = (error ?? {}) as Cause
  return typeof code === 'string' || typeof cause !== 'object' || cause === null ? (error as Cause) : cause
}

/** True if the request certainly had no effect. After any other failure, it may have. */
export function wasNeverSent(error: unknown): boolean {
  return sourceOf(error)?.syscall === 'connect' || NEVER_SENT.test(whyUnreachable(error))
}

/** A short reason for error messages, such as ECONNREFUSED. */
export function whyUnreachable(error: unknown): string {
  const { code, message } = sourceOf(error) ?? {}
  return typeof code === 'string' ? code : String(message ?? '')
}
