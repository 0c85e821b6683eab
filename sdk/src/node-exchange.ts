import type { Exchange, WireAnswer, WireRequest } from './exchange.ts'
import { wasNeverSent } from './unreachable.ts'

/** The parts of `node:http` that we use. Declared here, so that users do not have to install Node's types. */
type Http = {
  Agent: new (options: { keepAlive: boolean; timeout: number }) => object
  request(options: object, onAnswer: (answer: Incoming) => void): Outgoing
}
type Outgoing = {
  reusedSocket: boolean
  on(event: 'error', listener: (error: Error & { code?: string }) => void): unknown
  on(event: 'close', listener: () => void): unknown
  end(body?: string): unknown
  destroy(): unknown
}
type Incoming = {
  statusCode: number
  headers: Record<string, string | string[] | undefined>
  setEncoding(encoding: 'utf8'): unknown
  on(event: 'data', listener: (chunk: string) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
}
type Runtime = {
  process?: { versions?: { node?: string }; getBuiltinModule?: (name: string) => unknown }
  navigator?: { userAgent?: string }
}
type Pool = { http: Http; agent: object }

/** Shorter than the idle timeout of load balancers and our service, so that usually this side closes the connection. */
const IDLE_MS = 30_000
/** One agent per scheme, shared by all clients: a program that creates a client per request must not open a connection per request. */
const pools = new Map<string, Pool>()

/**
 * Uses `node:http`, which takes a fraction of `fetch`'s CPU time. Undefined outside Node: other runtimes also offer its modules, but work
 * best with their own `fetch`. Not imported statically, because bundlers for Workers and browsers reject that.
 */
export function nodeExchange(): Exchange | undefined {
  const { process, navigator } = globalThis as Runtime
  // Node 20 has no `navigator`; every other runtime identifies itself there.
  const isNode = process?.versions?.node !== undefined && (navigator === undefined || navigator.userAgent?.startsWith('Node.js/'))
  const load = process?.getBuiltinModule
  if (!isNode || load === undefined) return undefined
  return async (request, signal) => {
    const pool = poolOf(new URL(request.url).protocol, load)
    // A reused connection may be closing, and then it is unknown whether the request got through.
    if (!request.isRepeatable) return send(request, signal, pool.http, false)
    try {
      return await send(request, signal, pool.http, pool.agent)
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error
      const answer = await send(request, signal, pool.http, false).catch((second) => {
        // The service may have received the first request before it stopped, so the call must not count as never sent.
        throw wasNeverSent(second) ? error : second
      })
      return { ...answer, isResent: true }
    }
  }
}

/** A reused connection was closed before any response arrived. */
class StaleConnection extends Error {}

function poolOf(protocol: string, load: (name: string) => unknown): Pool {
  let pool = pools.get(protocol)
  if (!pool) {
    const http = load(`node:${protocol.slice(0, -1)}`) as Http
    pool = { http, agent: new http.Agent({ keepAlive: true, timeout: IDLE_MS }) }
    pools.set(protocol, pool)
  }
  return pool
}

/** Without an agent, the request uses a new connection. */
function send(request: WireRequest, signal: AbortSignal, http: Http, agent: object | false): Promise<WireAnswer> {
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname, search } = new URL(request.url)
    const { method, headers, body } = request
    const target = { hostname: hostname.replace(/^\[|\]$/g, ''), port, path: pathname + search }
    let isAnswered = false
    const outgoing = http.request({ ...target, method, headers, agent }, (incoming) => {
      isAnswered = true
      let text = ''
      incoming.setEncoding('utf8')
      incoming.on('data', (chunk) => {
        text += chunk
      })
      incoming.on('error', reject)
      incoming.on('end', () => {
        const header = (name: string): string | null => incoming.headers[name]?.toString() ?? null
        resolve({ status: incoming.statusCode, header, text })
      })
    })
    const abort = (): unknown => outgoing.destroy()
    signal.addEventListener('abort', abort, { once: true })
    outgoing.on('error', (error) => {
      const isStale = outgoing.reusedSocket && !isAnswered && !signal.aborted && /^(ECONNRESET|EPIPE)$/.test(error.code ?? '')
      reject(isStale ? new StaleConnection('connection closed') : error)
    })
    outgoing.on('close', () => {
      signal.removeEventListener('abort', abort)
      reject(new Error('The connection was closed before the response was complete.'))
    })
    outgoing.end(body)
    if (signal.aborted) abort()
  })
}
