/** Nothing was listening, or it could not show whose it is; and `bad port` is one that fetch does not even try. */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|bad port)/

/** Then nothing can have been done. Of any other failure that is not known. */
export const wasNeverSent = (error: unknown): boolean => NEVER_SENT.test(whyUnreachable(error))

export function whyUnreachable(error: unknown): string {
  const { code, message } = ((error as { cause?: unknown }).cause ?? {}) as { code?: string; message?: string }
  return code ?? message ?? ''
}

export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal.addEventListener('abort', abort, { once: true })
  })
}
