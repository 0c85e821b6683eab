import { Agent, request } from 'node:http'

/** A failed call, and whether it may have been carried out anyway. */
export class CallFailed extends Error {
  readonly mayHaveArrived: boolean

  constructor(message: string, mayHaveArrived: boolean) {
    super(message)
    this.mayHaveArrived = mayHaveArrived
  }
}

export type Target = { host: string; port: number; token: string }

/** With these errors, nothing was sent. They are the only failures after which the call was certainly not carried out. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'EADDRNOTAVAIL'])
const MAX_ANSWER_BYTES = 1024 * 1024

export class JsonClient {
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 32 })

  /** Returns the status and the parsed body. Throws CallFailed if there is no valid response. */
  post(
    target: Target,
    path: string,
    body: unknown,
    timeoutMs: number,
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    return new Promise((resolve, reject) => {
      const text = JSON.stringify(body)
      const outgoing = request(
        {
          host: target.host,
          port: target.port,
          path,
          method: 'POST',
          agent: this.#agent,
          headers: {
            authorization: `Bearer ${target.token}`,
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(text),
          },
          signal: AbortSignal.timeout(timeoutMs),
        },
        (response) => {
          const chunks: Buffer[] = []
          let size = 0
          response.on('data', (chunk: Buffer) => {
            size += chunk.length
            if (size > MAX_ANSWER_BYTES) response.destroy(new Error('response too large'))
            else chunks.push(chunk)
          })
          response.on('error', (error) => reject(new CallFailed(error.message, true)))
          response.on('end', () => {
            try {
              const parsed = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>
              resolve({ status: response.statusCode ?? 0, body: parsed })
            } catch {
              reject(new CallFailed('the response is not JSON', true))
            }
          })
        },
      )
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        reject(new CallFailed(error.code ?? error.message, !NEVER_SENT.has(error.code ?? '')))
      })
      outgoing.end(text)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}
