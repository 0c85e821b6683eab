import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { KubernetesClient } from '../../server/src/runtimes/kubernetes/client.ts'
import type { Resource } from '../../server/src/runtimes/kubernetes/types.ts'

type Service = Resource & { spec: { clusterIP: string } }

const HEADER_BYTES = 12
const TYPE_A = 1
const NOT_FOUND = 3
const SERVER_FAILURE = 2
const NAME = /^([\w-]+)\.([\w-]+)\.svc\.cluster\.local$/

/** Stands in for the cluster's DNS: pods find Services by name. It knows nothing else, so names outside the cluster do not resolve. */
export class ClusterDns {
  readonly #client: KubernetesClient
  readonly #socket: Socket

  private constructor(client: KubernetesClient, socket: Socket) {
    this.#client = client
    this.#socket = socket
    socket.on('message', (query, { address, port }) => {
      const send = (reply: Buffer): void => this.#socket.send(reply, port, address)
      this.#answer(query)
        .catch(() => replyTo(query, SERVER_FAILURE))
        .then(send)
        // The query could not be read, or the socket has been closed since. As with any DNS server, the client asks again.
        .catch(() => undefined)
    })
  }

  static async start(client: KubernetesClient, address: string): Promise<ClusterDns> {
    const socket = createSocket('udp4').bind(53, address)
    await once(socket, 'listening')
    return new ClusterDns(client, socket)
  }

  async close(): Promise<void> {
    this.#socket.close()
    await once(this.#socket, 'close')
  }

  async #answer(query: Buffer): Promise<Buffer> {
    const { name, type } = questionOf(query)
    const [, service, namespace] = NAME.exec(name) ?? []
    if (service === undefined) return replyTo(query, NOT_FOUND)
    const found = await this.#client.get<Service>(`/api/v1/namespaces/${namespace}/services/${service}`)
    if (!found) return replyTo(query, NOT_FOUND)
    // A Service has no IPv6 address. The response is then empty, because "not found" would also deny the IPv4 address.
    return replyTo(query, 0, type === TYPE_A ? found.spec.clusterIP : undefined)
  }
}

/** A question has labels, each preceded by its length, and an empty one at the end; then type and class. */
function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function replyTo(query: Buffer, code: number, address?: string): Buffer {
  const reply = Buffer.from(query.subarray(0, questionOf(query).end))
  // A response with recursion available. Only the question is repeated; additional records are left out.
  reply.writeUInt16BE(0x8180 | code, 2)
  for (const [index, count] of [1, address === undefined ? 0 : 1, 0, 0].entries()) reply.writeUInt16BE(count, 4 + 2 * index)
  if (address === undefined) return reply
  // The name is a pointer to the question; type A, class IN, 5 s to live, 4 bytes.
  const record = Buffer.from('c00c00010001000000050004', 'hex')
  return Buffer.concat([reply, record, Buffer.from(address.split('.').map(Number))])
}
