import { BoltyardError, NotFoundError, TimeoutError } from './errors.ts'
import type { CallOptions, Transport } from './transport.ts'
import type { CreatedNode, CreateNodeParams, Node, NodeList, NodeStatus, NodeUpdates } from './types.ts'
import { pause } from './waiting.ts'

export type CreateOptions = CallOptions & {
  /** The same again, within 24 hours and with the same key, gives the same answer, credentials included. One is made up unless given. */
  idempotencyKey?: string | undefined
}
export type WaitOptions = {
  signal?: AbortSignal | undefined
  /** For the whole wait. */
  timeoutMs?: number | undefined
  onStatus?: ((node: Node) => void) | undefined
}

const LONGEST_WAIT_MS = 300_000
const FIRST_LOOK_MS = 200
const SLOWEST_LOOK_MS = 3_000

export class Nodes {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Store the credentials before anything else: they are given once. */
  create(
    params: CreateNodeParams = {},
    { idempotencyKey = crypto.randomUUID(), ...options }: CreateOptions = {},
  ): Promise<CreatedNode> {
    return this.#transport.call({ ...options, method: 'POST', path: '/nodes', body: params, idempotencyKey })
  }

  async list(options: CallOptions = {}): Promise<Node[]> {
    const { nodes } = await this.#transport.call<NodeList>({ ...options, method: 'GET', path: '/nodes' })
    return nodes
  }

  get(id: string, options: CallOptions = {}): Promise<Node> {
    return this.#transport.call({ ...options, method: 'GET', path: pathOf(id) })
  }

  rename(id: string, name: string, options: CallOptions = {}): Promise<Node> {
    return this.#transport.call({ ...options, method: 'PATCH', path: pathOf(id), body: { name } })
  }

  start(id: string, options: CallOptions = {}): Promise<Node> {
    return this.#move(id, 'start', ['provisioning', 'ready'], options)
  }

  stop(id: string, options: CallOptions = {}): Promise<Node> {
    return this.#move(id, 'stop', ['stopped'], options)
  }

  /** Never repeated by itself: a second restart would cut off whoever has just come back. */
  restart(id: string, options: CallOptions = {}): Promise<Node> {
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/restart`, whenUncertain: 'give up' })
  }

  updates(id: string, options: CallOptions = {}): Promise<NodeUpdates> {
    return this.#transport.call({ ...options, method: 'GET', path: `${pathOf(id)}/updates` })
  }

  /** To the newest version unless one is named. Never repeated by itself. */
  update(id: string, version?: string, options: CallOptions = {}): Promise<Node> {
    const body = version === undefined ? {} : { version }
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/update`, body, whenUncertain: 'give up' })
  }

  /** A node with money in it is not deleted, unless by force. */
  async delete(id: string, { force, ...options }: CallOptions & { force?: boolean | undefined } = {}): Promise<void> {
    let isRepeated = false
    const query = force ? { force: 'true' } : {}
    const whenUncertain = async (): Promise<undefined> => {
      isRepeated = true
    }
    try {
      await this.#transport.call({ ...options, method: 'DELETE', path: pathOf(id), query, whenUncertain })
    } catch (error) {
      // The first answer was lost, and this is what it did.
      if (!(isRepeated && error instanceof NotFoundError)) throw error
    }
  }

  /** Asks gently until it is ready. A node that has failed or was stopped will not be so by waiting. */
  async waitUntilReady(id: string, { signal, timeoutMs = LONGEST_WAIT_MS, onStatus }: WaitOptions = {}): Promise<Node> {
    const deadline = Date.now() + timeoutMs
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(SLOWEST_LOOK_MS, pauseMs * 1.5)) {
      const node = await this.get(id, { signal })
      onStatus?.(node)
      if (node.status === 'ready') return node
      if (node.status !== 'provisioning')
        throw new BoltyardError(node.failureMessage ?? `The node is ${node.status}.`, { code: `node_${node.status}` })
      if (Date.now() + pauseMs > deadline)
        throw new TimeoutError(`The node is still ${node.status} after ${timeoutMs} ms. It goes on by itself.`, {
          code: 'timeout',
        })
      await pause(pauseMs, signal)
    }
  }

  /** After a lost answer the node itself tells whether there is anything left to do. */
  #move(id: string, step: 'start' | 'stop', done: NodeStatus[], options: CallOptions): Promise<Node> {
    const whenUncertain = async (): Promise<Node | undefined> => {
      const node = await this.get(id, options)
      return done.includes(node.status) ? node : undefined
    }
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/${step}`, whenUncertain })
  }
}

const pathOf = (id: string): string => `/nodes/${encodeURIComponent(id)}`
