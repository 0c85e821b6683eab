import { Agent, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IDLE_CONNECTION_MS, type NodeAddress } from '../lightning/phoenixd.ts'
import { Problem } from '../problems.ts'
import { answerTo, bodyTooLarge, nodeDown, relay, startExchange, writeSwitch } from './proxy-exchange.ts'
import { refuseKeys } from './proxy-headers.ts'
import { routeUpgrades, tunnel, type Upgrading } from './proxy-upgrade.ts'

export { rewriteNodeHost } from './proxy-headers.ts'

/** 'not found': no such (or a deleted) node. 'down': it exists but is not reachable here now. */
export type LookUpNode = (nodeId: string) => Promise<NodeAddress | 'not found' | 'down'>

const MIB = 1024 * 1024
export const PROXY_LIMITS = {
  /** For the head of the answer, and then between bytes. */
  answerMs: 10_000,
  /** The same for calls that pay: phoenixd may try for 90 s, and a payer who hears nothing may pay twice. */
  payingAnswerMs: 120_000,
  websocketIdleMs: 120_000,
  requestBytes: MIB,
  responseBytes: 16 * MIB,
  /** Of one node, at a time; requests and websockets each. */
  concurrent: 64,
}
export type ProxyLimits = typeof PROXY_LIMITS

const PAYING = new Set(
  ['payinvoice', 'payoffer', 'paylnaddress', 'lnurlpay', 'sendtoaddress', 'bumpfee', 'closechannel'].map((call) => `/${call}`),
)

/** The id as it was written, undecoded: an id in any other spelling is none. Then everything else, byte for byte. */
const TARGET = /^\/n\/([A-Za-z0-9_-]+)(?![^/?])(.*)$/s

/** Registers `/n/:nodeId` and everything below it, all methods, plus websocket upgrades on the app's server. */
export async function addNodeProxy(
  app: FastifyInstance,
  lookUp: LookUpNode,
  limits: ProxyLimits = PROXY_LIMITS,
): Promise<{ close: () => void }> {
  // Sockets are limited for each address, and requests for each node before they ask for one: a slow node exhausts only its own.
  const agent = new Agent({ keepAlive: true, maxSockets: limits.concurrent, timeout: IDLE_CONNECTION_MS })
  const requests = countByNode(limits.concurrent)
  const websockets = countByNode(limits.concurrent)
  const upgrading = new WeakMap<IncomingMessage, Upgrading>()
  const open = new Set<Socket>()
  const closeWebsockets = (): void => {
    for (const socket of open) socket.destroy()
  }

  const forward = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { raw } = request
    const client = upgrading.get(raw)
    if (isAmbiguous(raw)) raw.socket.destroy()
    const [, nodeId, rest = ''] = TARGET.exec(raw.url ?? '') ?? []
    if (nodeId === undefined) throw noSuchNode()
    refuseKeys(raw)
    if (Number(raw.headers['content-length'] ?? 0) > limits.requestBytes) throw bodyTooLarge()
    const address = await lookUp(nodeId)
    if (address === 'not found') throw noSuchNode()
    if (address === 'down') throw nodeDown('it is not running')
    // The client may have left while we looked; or it was cut off, and this request came right behind the ambiguous one.
    if (raw.socket.destroyed) return void reply.hijack()
    const leave = (client ? websockets : requests).enter(nodeId)
    // The connection tells, not the answer: one that waits behind others of its connection does not hear of the end.
    const left = new AbortController()
    const abort = (): void => left.abort()
    raw.socket.once('close', abort)
    try {
      await exchange(request, reply, address, rest.startsWith('/') ? rest : `/${rest}`, client, left.signal)
    } catch (error) {
      // Nobody is there to be told.
      if (raw.socket.destroyed) reply.hijack()
      else throw error
    } finally {
      raw.socket.off('close', abort)
      leave()
    }
  }

  const exchange = async (
    { raw }: FastifyRequest,
    reply: FastifyReply,
    address: NodeAddress,
    path: string,
    client: Upgrading | undefined,
    left: AbortSignal,
  ): Promise<void> => {
    const isWebsocket = client !== undefined
    const isPaying = raw.method === 'POST' && PAYING.has(path.split('?')[0] ?? '')
    const limitMs = isPaying ? limits.payingAnswerMs : limits.answerMs
    const outgoing = startExchange(raw, { address, path, agent: isWebsocket ? false : agent, isWebsocket })
    const sending = { limitMs, maxBytes: limits.requestBytes, left, isWebsocket }
    const { response, node } = await answerTo(outgoing, raw, reply.raw, sending)
    if (!client || !node) return relay(outgoing, response, raw, reply, { limitMs, maxBytes: limits.responseBytes, left })
    writeSwitch(response, reply, client)
    open.add(client.socket)
    await tunnel(client, node, limits.websocketIdleMs)
    open.delete(client.socket)
  }

  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    // Bodies and their types are the node's business. Fastify would refuse a type that it cannot read, and it reads this one; the
    // node is sent the raw headers, which nobody touches.
    scope.addHook('onRequest', async ({ raw }) => {
      raw.headers['content-type'] = 'application/octet-stream'
    })
    const schema = { hide: true }
    scope.all('/n/:nodeId', { schema }, forward)
    scope.all('/n/:nodeId/*', { schema }, forward)
  })
  routeUpgrades(app, upgrading)
  // Requests end by themselves while the app closes; websockets do not, and it would wait for them.
  app.addHook('preClose', async () => closeWebsockets())
  app.addHook('onClose', async () => agent.destroy())
  return {
    close: () => {
      closeWebsockets()
      agent.destroy()
    },
  }
}

const noSuchNode = (): Problem => new Problem('node_not_found', 'There is no such node.')

/**
 * Read one way here and perhaps another way by a server in front of us, so that the rest of the connection may be somebody else's
 * request. node:http takes HTTP/0.9 (a line feed in a path makes one) and HTTP/2.0 in plain text, and leaves codings other than
 * chunks on the body, which passed on as plain chunks would be another body.
 */
function isAmbiguous({ httpVersionMajor, headers }: IncomingMessage): boolean {
  return httpVersionMajor !== 1 || (headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked'
}

function countByNode(most: number): { enter: (nodeId: string) => () => void } {
  const counts = new Map<string, number>()
  return {
    enter: (nodeId) => {
      const now = counts.get(nodeId) ?? 0
      if (now >= most)
        throw new Problem('service_unavailable', 'The node has too many requests under way. Try again shortly.', {
          headers: { 'retry-after': '1' },
        })
      counts.set(nodeId, now + 1)
      return () => {
        const left = (counts.get(nodeId) ?? 1) - 1
        if (left === 0) counts.delete(nodeId)
        else counts.set(nodeId, left)
      }
    },
  }
}
