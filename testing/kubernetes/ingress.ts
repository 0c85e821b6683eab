import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Stands in for an ingress controller: forwards connections to a port of this machine to a Service. */
export class Ingress {
  readonly url: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #service: { host: string; port: number } | undefined

  private constructor(server: Server) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('connection', (client) => this.#forward(client))
  }

  static async start(): Promise<Ingress> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Ingress(server)
  }

  /** The address of a Service is known only after the chart, which needs the URL, has been installed. */
  forwardTo(host: string, port: number): void {
    this.#service = { host, port }
  }

  #forward(client: Socket): void {
    if (!this.#service) return void client.destroy()
    const service = connect(this.#service)
    for (const [socket, other] of [
      [client, service],
      [service, client],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => this.#sockets.delete(socket))
      socket.pipe(other)
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
