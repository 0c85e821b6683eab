export type WireRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body: string | undefined
  /** True if sending the request twice has the same effect as sending it once. */
  isRepeatable: boolean
}
export type WireAnswer = {
  status: number
  header: (name: string) => string | null
  text: string
  /** True if the request was sent twice because the first connection was lost. The first copy may have arrived too. */
  isResent?: boolean
}

/** Sends one request and reads the whole response. Redirects are not followed, because they would send the key elsewhere. */
export type Exchange = (request: WireRequest, signal: AbortSignal) => Promise<WireAnswer>

export function fetchExchange(fetch: typeof globalThis.fetch): Exchange {
  return async ({ method, url, headers, body }, signal) => {
    const response = await fetch(url, { method, headers, signal, redirect: 'manual', ...(body === undefined ? {} : { body }) })
    const { status } = response
    return { status, header: (name) => response.headers.get(name), text: await response.text() }
  }
}

/** A response that is read as it arrives. `read` returns undefined at the end. */
export type WireStream = Omit<WireAnswer, 'text'> & {
  text: () => Promise<string>
  read: () => Promise<Uint8Array | undefined>
}
export type OpenStream = (request: WireRequest, signal: AbortSignal) => Promise<WireStream>

/** Always uses `fetch`: one long response does not need the speed of `node:http`. */
export function fetchStream(fetch: typeof globalThis.fetch): OpenStream {
  return async ({ method, url, headers }, signal) => {
    const response = await fetch(url, { method, headers, signal, redirect: 'manual' })
    let reader: { read(): Promise<{ value?: Uint8Array | undefined }> } | undefined
    const read = async (): Promise<Uint8Array | undefined> => {
      reader ??= response.body?.getReader()
      return (await reader?.read())?.value
    }
    return { status: response.status, header: (name) => response.headers.get(name), text: () => response.text(), read }
  }
}
