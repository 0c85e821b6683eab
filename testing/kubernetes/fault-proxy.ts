import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, request, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { accessOfFile, type ClusterAccess } from '../../server/src/runtimes/kubernetes/access.ts'

/** What happens to the events of a watch. Undefined: they are forwarded unchanged. */
type EventFault = 'dropped' | 'duplicated' | 'reordered' | undefined

/** A proxy between a client and the API server that causes the faults a test asks for. */
export class FaultProxy {
  readonly access: ClusterAccess
  readonly #server: Server
  readonly #upstream: ClusterAccess
  readonly #watches = new Set<ServerResponse>()
  readonly #lists = new Map<string, Buffer>()
  /** The TCP sockets by the client's port. They are needed because a TLS socket cannot be reset. */
  readonly #connections = new Map<number | undefined, Socket>()
  events: EventFault
  /** Every list request gets the same response as the first time. */
  staleLists = false
  /** How many of the next requests are refused with 429. */
  refusals = 0
  /** How many of the next writes take effect but are answered with 500. */
  lostAnswers = 0
  /** The connection of every request is closed, as if the API server were down. */
  isDown = false
  readonly seen = { watches: 0, lists: 0, reads: 0, refused: 0, lost: 0 }

  private constructor(server: Server, upstream: ClusterAccess) {
    this.#server = server
    this.#upstream = upstream
    const { port } = server.address() as AddressInfo
    this.access = { ...upstream, server: new URL(`https://127.0.0.1:${port}`) }
    server.on('connection', (socket: Socket) => {
      const { remotePort } = socket
      this.#connections.set(remotePort, socket)
      socket.on('close', () => this.#connections.delete(remotePort))
    })
    server.on('request', (incoming: IncomingMessage, outgoing: ServerResponse) => this.#handle(incoming, outgoing))
  }

  /** Uses the API server's own certificate, which is valid for every port of 127.0.0.1. */
  static async start(kubeconfig: string): Promise<FaultProxy> {
    const file = (name: string): Buffer => readFileSync(join(dirname(kubeconfig), name))
    const server = createServer({ key: file('tls.key'), cert: file('tls.crt') }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new FaultProxy(server, accessOfFile(kubeconfig))
  }

  /** Resets the connections of all watches. Returns how many there were. */
  resetWatches(): number {
    const open = this.#watches.size
    for (const watch of this.#watches) this.#connections.get(watch.socket?.remotePort)?.resetAndDestroy()
    return open
  }

  get openWatches(): number {
    return this.#watches.size
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const url = new URL(incoming.url ?? '', this.#upstream.server)
    const isWatch = url.searchParams.has('watch')
    const isList = incoming.method === 'GET' && url.searchParams.has('limit')
    if (this.isDown) return void incoming.socket.destroy()
    if (!isWatch && this.refusals > 0) {
      this.refusals--
      this.seen.refused++
      incoming.resume()
      outgoing.writeHead(429, { 'retry-after': '0', 'content-type': 'application/json' }).end('{"kind":"Status","code":429}')
      return
    }
    if (isWatch) this.seen.watches++
    if (isList) this.seen.lists++
    if (incoming.method === 'GET' && !isWatch && !isList) this.seen.reads++
    const { ca } = this.#upstream
    const upstream = request(url, {
      method: incoming.method ?? 'GET',
      headers: { ...incoming.headers, host: url.host },
      ...(ca ? { ca } : {}),
    })
    upstream.on('response', (answer) => {
      if (isWatch) this.#forwardWatch(answer, outgoing)
      else void this.#forward(answer, outgoing, incoming.method ?? '', isList ? url.pathname + url.search : undefined)
    })
    upstream.on('error', () => outgoing.destroy())
    outgoing.on('close', () => upstream.destroy())
    incoming.pipe(upstream)
  }

  async #forward(answer: IncomingMessage, outgoing: ServerResponse, method: string, list: string | undefined): Promise<void> {
    let body: Buffer = Buffer.concat(await answer.toArray())
    const status = answer.statusCode ?? 500
    if (method !== 'GET' && status < 300 && this.lostAnswers > 0) {
      this.lostAnswers--
      this.seen.lost++
      outgoing.writeHead(500, { 'content-type': 'application/json' }).end('{"kind":"Status","code":500}')
      return
    }
    if (list !== undefined && status === 200) {
      if (!this.#lists.has(list)) this.#lists.set(list, body)
      if (this.staleLists) body = this.#lists.get(list) ?? body
    }
    outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  }

  #forwardWatch(answer: IncomingMessage, outgoing: ServerResponse): void {
    this.#watches.add(outgoing)
    outgoing.on('close', () => this.#watches.delete(outgoing))
    outgoing.writeHead(answer.statusCode ?? 500, { 'content-type': 'application/json' })
    outgoing.flushHeaders()
    let rest = ''
    let held = ''
    answer.setEncoding('utf8')
    answer.on('data', (chunk: string) => {
      const lines = `${rest}${chunk}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines.map((one) => `${one}\n`)) {
        if (this.events === 'dropped') continue
        if (this.events === 'duplicated') outgoing.write(line + line)
        // Every second event arrives after its successor.
        else if (this.events === 'reordered' && held === '') held = line
        else {
          outgoing.write(line + held)
          held = ''
        }
      }
    })
    answer.on('end', () => outgoing.end())
    answer.on('error', () => outgoing.destroy())
  }
}
