import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { HeaderList } from './headers.ts'
import { hasBody } from './respond.ts'

/** Shorter than the keep-alive timeout of most servers, so that usually this side closes an idle connection. */
const IDLE_MS = 4_000
const CONNECT_MS = 5_000
/** Without a body, requests with these methods have no `Content-Length`. */
const BODILESS = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])

/** The program behind the proxy. */
export class Upstream {
  readonly #options: { host: string; port: number }
  readonly #isTls: boolean
  readonly #send: typeof httpRequest
  readonly #kept: HttpAgent
  readonly #fresh: HttpAgent
  /** The host and port, as in the header `Host`. */
  readonly host: string

  constructor({ protocol, hostname, port, host }: URL) {
    const isTls = protocol === 'https:'
    const name = hostname.replace(/^\[|\]$/g, '')
    this.host = host
    this.#options = { host: name, port: Number(port) || (isTls ? 443 : 80) }
    this.#isTls = isTls
    this.#send = isTls ? httpsRequest : httpRequest
    const Agent = isTls ? HttpsAgent : HttpAgent
    this.#kept = new Agent({ keepAlive: true, timeout: IDLE_MS, scheduling: 'lifo' })
    this.#fresh = new Agent({ keepAlive: false })
  }

  /** `isFresh`: uses a new connection. The caller writes the body. */
  send(request: IncomingMessage, url: string, headers: HeaderList, isFresh = false): ClientRequest {
    const { method = 'GET' } = request
    return this.#send({
      ...this.#options,
      agent: isFresh ? this.#fresh : this.#kept,
      method,
      path: url,
      headers: headers.concat(framing(request, method)),
      insecureHTTPParser: false,
      setHost: false,
    })
  }

  /** Rejects if the upstream does not accept a connection, or its certificate is not valid. */
  reach(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = this.#isTls
        ? connectTls({ servername: serverNameOf(this.#options.host), ...this.#options })
        : connect(this.#options)
      socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error(`no connection within ${CONNECT_MS / 1000} s`)))
      socket.once('error', reject)
      socket.once(this.#isTls ? 'secureConnect' : 'connect', () => {
        socket.destroy()
        resolve()
      })
    })
  }

  close(): void {
    this.#kept.destroy()
    this.#fresh.destroy()
  }
}

/** TLS does not allow an IP address as the server name. */
const serverNameOf = (host: string): string => (isIP(host) === 0 ? host : '')

/** The headers that frame the body. They are written again, so that the body has exactly one length. */
function framing(request: IncomingMessage, method: string): HeaderList {
  if (request.headers['transfer-encoding'] !== undefined) return ['transfer-encoding', 'chunked']
  if (hasBody(request)) return ['content-length', request.headers['content-length'] ?? '']
  return BODILESS.has(method) ? [] : ['content-length', '0']
}
