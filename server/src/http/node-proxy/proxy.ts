import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LookUpNode } from '../../nodes/look-up.ts'
import { freshAgent, keepingAgent, type NodeAddress } from '../../platform/node-agent.ts'
import { noSuchNode, Problem } from '../../problems.ts'
import { nodeLabelOf } from '../hooks/hosts.ts'
import type { Limits } from '../hooks/rate-limit.ts'
import { answerTo, bodyTooLarge, nodeDown, relay, startExchange, writeSwitch } from './exchange.ts'
import { isAmbiguous, refuseKeys, refuseOtherSites } from './refusals.ts'
import { routeUpgrades, tunnel, type Upgrading } from './upgrade.ts'

const MIB = 1024 * 1024
export const PROXY_LIMITS = {
  /** For the head of the answer, and then between bytes. */
  answerMs: 10_000,
  /** The same for calls that pay: phoenixd may try for 90 s, and a payer who hears nothing may pay twice. */
  payingAnswerMs: 120_000,
  websocketIdleMs: 120_000,
  requestBytes: 64 * 1024,
  responseBytes: 16 * MIB,
  /** Of one node, at a time; requests and websockets each. */
  concurrent: 64,
}
export type ProxyLimits = typeof PROXY_LIMITS

const PAYING = new Set(
  ['payinvoice', 'payoffer', 'paylnaddress', 'lnurlpay', 'sendtoaddress', 'bumpfee', 'closechannel'].map((call) => `/${call}`),
)

/** A stranger's call, which must not use up what the owner may do. */
const REFUSED = 401

/** The id as it was written, undecoded: an id in any other spelling is none. Then everything else, byte for byte. */
const TARGET = /^\/n\/([A-Za-z0-9_-]+)(?![^/?])(.*)$/s

export type NodeProxyOptions = {
  lookUp: LookUpNode
  /** Set: a node answers under its own name only, and shares no origin with the service. */
  nodeDomain: string | undefined
  calls: Pick<Limits, 'nodeCalls' | 'nodeCallsOfAddress'>
}

/** Registers `/n/:nodeId` and everything below it, all methods, plus websocket upgrades on the app's server. */
export async function addNodeProxy(
  app: FastifyInstance,
  { lookUp, nodeDomain, calls }: NodeProxyOptions,
  limits: ProxyLimits = PROXY_LIMITS,
): Promise<{ close: () => void }> {
  // As many sockets per address as requests per node, which are counted first: a slow node exhausts only its own.
  const agent = keepingAgent(limits.concurrent)
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
    // The one that was just cut off, or the next one of its connection.
    if (raw.socket.destroyed) return void reply.hijack()
    const [, nodeId, rest = ''] = TARGET.exec(raw.url ?? '') ?? []
    if (nodeDomain !== undefined && nodeLabelOf(raw.headers.host, nodeDomain) === undefined)
      throw new Problem('not_found', 'This path does not exist.')
    if (nodeId === undefined) throw noSuchNode()
    refuseOtherSites(raw)
    refuseKeys(raw)
    if (Number(raw.headers['content-length'] ?? 0) > limits.requestBytes) throw bodyTooLarge()
    await calls.nodeCallsOfAddress(request)
    const address = await lookUp(nodeId)
    if (address === 'not found') throw noSuchNode()
    if (address === 'down') throw nodeDown('it is not running')
    calls.nodeCalls.require(nodeId)
    // The client may have left while we looked.
    if (raw.socket.destroyed) return void reply.hijack()
    const leave = (client ? websockets : requests).enter(nodeId)
    // The connection tells, not the answer: one that waits behind others of its connection does not hear of the end.
    const left = new AbortController()
    const abort = (): void => left.abort()
    raw.socket.once('close', abort)
    try {
      const path = rest.startsWith('/') ? rest : `/${rest}`
      await exchange(request, reply, { nodeId, address, path, client, left: left.signal })
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
    request: FastifyRequest,
    reply: FastifyReply,
    { nodeId, address, path, client, left }: Call,
  ): Promise<void> => {
    const { raw } = request
    const isWebsocket = client !== undefined
    const isPaying = raw.method === 'POST' && PAYING.has(path.split('?')[0] ?? '')
    const limitMs = isPaying ? limits.payingAnswerMs : limits.answerMs
    const outgoing = startExchange(raw, { address, path, agent: isWebsocket ? freshAgent : agent, isWebsocket })
    const sending = { limitMs, maxBytes: limits.requestBytes, left, isWebsocket }
    const { response, node } = await answerTo(outgoing, raw, reply.raw, sending)
    if (response.statusCode !== REFUSED) calls.nodeCalls.count(nodeId)
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

type Call = {
  nodeId: string
  address: NodeAddress
  path: string
  client: Upgrading | undefined
  left: AbortSignal
}

function countByNode(most: number): { enter: (nodeId: string) => () => void } {
  const counts = new Map<string, number>()
  return {
    enter: (nodeId) => {
      const now = counts.get(nodeId) ?? 0
      if (now >= most)
        throw new Problem('service_unavailable', 'Too many requests to this node are in progress. Try again shortly.', {
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
