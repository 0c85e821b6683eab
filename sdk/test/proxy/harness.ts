import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterAll } from 'vitest'
import { Boltyard } from '../../src/boltyard.ts'
import { createProxy, type ProxyConfig, type ProxyOptions, type ProxyServer } from '../../src/proxy/index.ts'

const opened: (() => unknown)[] = []
afterAll(async () => {
  for (const close of opened) await close()
})

export type Seen = { method: string; url: string; headers: IncomingMessage['headers']; names: string[]; body: string }

/** The program behind the proxy, on a real socket. It echoes what it gets, unless a test sets `handler`. */
export class Backend {
  readonly server: Server
  readonly seen: Seen[] = []
  handler: RequestListener | undefined

  constructor() {
    this.server = createServer(async (request, response) => {
      if (this.handler) return this.handler(request, response)
      const { method = '', url = '', headers, rawHeaders } = request
      let body = ''
      try {
        for await (const chunk of request) body += chunk
      } catch {
        return // The client left.
      }
      this.seen.push({ method, url, headers, names: rawHeaders.filter((_, at) => at % 2 === 0), body })
      response.setHeader('content-type', 'text/plain').end(`${method} ${url} ${body}`)
    })
    this.server.keepAliveTimeout = 0
  }

  static async open(): Promise<Backend> {
    const backend = new Backend()
    backend.server.listen(0, '127.0.0.1')
    await once(backend.server, 'listening')
    opened.push(() => {
      backend.server.close()
      backend.server.closeAllConnections()
    })
    return backend
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get last(): Seen {
    const seen = this.seen.at(-1)
    if (!seen) throw new Error('nothing arrived')
    return seen
  }
}

export type OpenProxy = { proxy: ProxyServer; port: number; url: (path: string) => string }

export async function openProxy(
  config: Omit<ProxyConfig, 'node'> & { node?: string },
  options: ProxyOptions = {},
): Promise<OpenProxy> {
  const nowhere = (): Boltyard => new Boltyard({ apiKey: 'none', baseUrl: 'http://127.0.0.1:9/v1' })
  const client = options.client ?? nowhere()
  const proxy = createProxy({ listen: '127.0.0.1:0', node: 'node_1', ...config }, { ...options, client })
  const { port } = await proxy.listen()
  opened.push(() => proxy.close({ graceMs: 0 }))
  return { proxy, port, url: (path) => `http://127.0.0.1:${port}${path}` }
}

/** A connection on which the test writes its own bytes. */
export class Raw {
  text = ''
  readonly socket: Socket
  readonly closed: Promise<unknown>

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => this.socket.once('close', resolve))
    this.socket.on('data', (chunk) => {
      this.text += chunk.toString('latin1')
    })
    opened.push(() => this.socket.destroy())
  }

  write(...lines: string[]): this {
    this.socket.write(lines.join('\r\n'))
    return this
  }

  /** Resolves when the text has arrived. */
  async shows(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.text)
      if (found) return found
      if (this.socket.destroyed) throw new Error(`closed without ${pattern}: ${this.text}`)
      await Promise.race([once(this.socket, 'data'), this.closed])
    }
  }
}

/** Writes the lines unchanged, and returns everything that arrives until the connection is closed. */
export async function rawAnswer(port: number, ...lines: string[]): Promise<string> {
  const raw = new Raw(port).write(...lines)
  await raw.closed
  return raw.text
}

export const statusIn = (answer: string): number => Number(answer.split(' ')[1])
