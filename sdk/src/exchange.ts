export type WireRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body: string | undefined
  /** Sending it twice does no more than sending it once. */
  isRepeatable: boolean
}
export type WireAnswer = { status: number; header: (name: string) => string | null; text: string }

/** One request and its whole answer. Redirections are not followed: they would take the key along to wherever they point. */
export type Exchange = (request: WireRequest, signal: AbortSignal) => Promise<WireAnswer>

export function fetchExchange(fetch: typeof globalThis.fetch): Exchange {
  return async ({ method, url, headers, body }, signal) => {
    const response = await fetch(url, { method, headers, signal, redirect: 'manual', ...(body === undefined ? {} : { body }) })
    const { status } = response
    return { status, header: (name) => response.headers.get(name), text: await response.text() }
  }
}
