import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { TryAgain } from '../../nodes/runtime.ts'
import type { ClusterAccess } from './access.ts'
import type { Pod, Resource, Stored } from './types.ts'

/** The API server refused: the request had no effect. */
export class Refused extends Error {
  readonly status: number
  readonly reason: string

  constructor(status: number, message: string, reason = '') {
    super(message)
    this.status = status
    this.reason = reason
  }
}

export type PatchOperation = { op: 'add' | 'replace' | 'remove'; path: string; value?: unknown }
export type WatchEvent<T extends Resource> = { type: string; object: Stored<T> }
type Query = Record<string, string>
type Call = { method: string; path: string; query?: Query; body?: unknown; contentType?: string }
type Reply = { status: number; retryAfterMs: number | undefined; text: string }

const CALL_TIMEOUT_MS = 10_000
const MAX_TRIES = 3
const LONGEST_RETRY_AFTER_MS = 3_000
/** No try begins later. With the timeout of the last try (10 s), a call then ends within the lease it was made under (30 s). */
const LATEST_TRY_MS = 13_000
const ALREADY_EXISTS = 'AlreadyExists'
const PAGE = '500'
/** A page of 500 pods is about 3 MB; more than this is not a response to any of our requests. */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * The few calls we make to the API server. Creating and updating are separate calls, because "apply" also creates missing
 * objects: a replica of the service that was paused during an update would bring back an object that was deleted meanwhile.
 */
export class KubernetesClient {
  readonly #access: ClusterAccess
  readonly #agent: Agent

  constructor(access: ClusterAccess) {
    this.#access = access
    const { ca, cert, key } = access
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 64,
      ...(ca ? { ca } : {}),
      ...(cert ? { cert } : {}),
      ...(key ? { key } : {}),
    })
  }

  async get<T extends Resource>(path: string): Promise<Stored<T> | undefined> {
    return this.#answer<Stored<T>>({ method: 'GET', path }, 'undefined if missing')
  }

  /** All pages, as of one moment. Without a resourceVersion, so that the API server does not answer from an old cache. */
  async list<T extends Resource>(
    path: string,
    query: Query,
    pick: (item: Stored<T>) => Stored<T> = (item) => item,
  ): Promise<{ items: Stored<T>[]; resourceVersion: string }> {
    const items: Stored<T>[] = []
    let more: Query = {}
    for (;;) {
      const page = await this.#answer<{ items: Stored<T>[]; metadata: { resourceVersion: string; continue?: string } }>({
        method: 'GET',
        path,
        query: { ...query, limit: PAGE, ...more },
      })
      items.push(...page.items.map(pick))
      if (!page.metadata.continue) return { items, resourceVersion: page.metadata.resourceVersion }
      more = { continue: page.metadata.continue }
    }
  }

  /** Undefined: an object with this name exists. */
  async create<T extends Resource>(path: string, body: T): Promise<Stored<T> | undefined> {
    try {
      return await this.#answer<Stored<T>>({ method: 'POST', path, query: { fieldManager: 'boltyard' }, body })
    } catch (error) {
      if (error instanceof Refused && error.reason === ALREADY_EXISTS) return undefined
      throw error
    }
  }

  /** Changes exactly the object that was read: if it was changed, deleted or replaced since, the API server refuses. */
  async patch<T extends Resource>(path: string, { metadata }: Stored<T>, operations: PatchOperation[]): Promise<Stored<T>> {
    const unchanged: PatchOperation[] = [
      { op: 'replace', path: '/metadata/uid', value: metadata.uid },
      { op: 'replace', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
    ]
    return this.#answer<Stored<T>>({
      method: 'PATCH',
      path,
      query: { fieldManager: 'boltyard' },
      body: [...unchanged, ...operations],
      contentType: 'application/json-patch+json',
    })
  }

  /** Deletes exactly the object that was read. */
  async delete({ metadata }: Stored<Resource>, path: string): Promise<void> {
    const { uid, resourceVersion } = metadata
    await this.#delete(path, { preconditions: { uid, resourceVersion }, propagationPolicy: 'Background' })
  }

  /** A pod's status changes all the time, so only its identity must be the same. */
  async deletePod({ metadata }: Stored<Pod>, path: string, gracePeriodSeconds: number): Promise<void> {
    await this.#delete(path, { preconditions: { uid: metadata.uid }, gracePeriodSeconds })
  }

  async #delete(path: string, body: object): Promise<void> {
    await this.#answer({ method: 'DELETE', path, body }, 'undefined if missing')
  }

  /** Yields events until the API server ends the response. If the API server goes silent, only the signal ends it. */
  async *watch<T extends Resource>(
    path: string,
    query: Query,
    signal: AbortSignal,
    heard: () => void,
  ): AsyncGenerator<WatchEvent<T>> {
    const response = await this.#send(
      { method: 'GET', path, query: { ...query, watch: '1', allowWatchBookmarks: 'true' } },
      signal,
    )
    heard()
    if (response.statusCode !== 200) {
      response.destroy()
      throw new Refused(response.statusCode ?? 0, `the watch was answered with status ${response.statusCode}`)
    }
    let rest = ''
    response.setEncoding('utf8')
    for await (const chunk of response) {
      heard()
      const lines = `${rest}${chunk}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const event = JSON.parse(line) as WatchEvent<T> & { object: { code?: number; message?: string } }
        if (event.type === 'ERROR') throw new Refused(event.object.code ?? 0, `the watch ended: ${event.object.message}`)
        yield event
      }
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  async #answer<T>(call: Call): Promise<T>
  async #answer<T>(call: Call, missing: 'undefined if missing'): Promise<T | undefined>
  async #answer<T>(call: Call, missing?: 'undefined if missing'): Promise<T | undefined> {
    const { status, text } = await this.#patiently(call)
    if (status >= 200 && status < 300) return JSON.parse(text) as T
    if (status === 404 && missing) return undefined
    const { reason, message } = statusIn(text)
    const what = `${call.method} ${call.path}: ${status} ${message ?? ''}`
    // A server error says nothing about whether the request had an effect, and after a conflict the object must be read again.
    if (status >= 500 || status === 429 || (status === 409 && reason !== ALREADY_EXISTS)) throw new TryAgain(what)
    throw new Refused(status, what, reason)
  }

  /** 429 means that the request was not executed, so even a write can be repeated. */
  async #patiently(call: Call): Promise<Reply> {
    const startedAtMs = performance.now()
    for (let attempt = 1; ; attempt++) {
      const reply = await this.#once(call)
      const pauseMs = Math.min(reply.retryAfterMs ?? 1_000, LONGEST_RETRY_AFTER_MS)
      const isTooLate = performance.now() + pauseMs - startedAtMs > LATEST_TRY_MS
      if (reply.status !== 429 || attempt === MAX_TRIES || isTooLate) return reply
      await pause(pauseMs)
    }
  }

  async #once(call: Call): Promise<Reply> {
    try {
      const response = await this.#send(call, AbortSignal.timeout(CALL_TIMEOUT_MS))
      let text = ''
      response.setEncoding('utf8')
      for await (const chunk of response) {
        text += chunk
        if (text.length > MAX_BYTES) throw new Error('the response is too large')
      }
      const retryAfterSeconds = Number(response.headers['retry-after'])
      const retryAfterMs = Number.isFinite(retryAfterSeconds) ? retryAfterSeconds * 1000 : undefined
      return { status: response.statusCode ?? 0, retryAfterMs, text }
    } catch (error) {
      throw new TryAgain(`${call.method} ${call.path}: ${(error as Error).message}`, { cause: error })
    }
  }

  #send({ method, path, query, body, contentType = 'application/json' }: Call, signal: AbortSignal): Promise<IncomingMessage> {
    const url = new URL(this.#access.server)
    url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`
    url.search = new URLSearchParams(query).toString()
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const token = this.#access.token()
    const headers = {
      accept: 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      // Without content-length, the API server ignores the body that node:https sends with a DELETE, preconditions included.
      ...(bytes ? { 'content-type': contentType, 'content-length': String(bytes.length) } : {}),
    }
    return new Promise((resolve, reject) => {
      const outgoing = request(url, { method, headers, signal, agent: this.#agent }, resolve)
      outgoing.on('error', reject)
      outgoing.end(bytes)
    })
  }
}

/** The body is a Status object. Its message is safe to log: it names objects and fields, not the data of a Secret. */
function statusIn(text: string): { reason?: string; message?: string } {
  try {
    return JSON.parse(text) as { reason?: string; message?: string }
  } catch {
    // not JSON, for example a proxy's error page
    return {}
  }
}
