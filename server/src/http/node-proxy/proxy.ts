import type { Agent, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import type { LookUpNode } from '../../nodes/look-up.ts'
import type { ReportSilence } from '../../nodes/silence.ts'
import { freshAgent, keepingAgent, type NodeAddress } from '../../platform/node-agent.ts'
import { requestProbe } from '../../platform/probes.ts'
import { noSuchNode, Problem } from '../../problems.ts'
import type { Edge } from '../edge.ts'
import { problemOf, writeProblem } from '../hooks/errors.ts'
import { reportRequest } from '../hooks/measure.ts'
import type { Limits } from '../hooks/rate-limit.ts'
import { type Answering, answerTo, bodyTooLarge, nodeDown, relay, startExchange, writeSwitch } from './exchange.ts'
import { isAmbiguous, refuseKeys, refuseOtherSites } from './refusals.ts'
import type { NodeTarget, TargetOf } from './target.ts'
import { responseTo, tunnel, type Upgrading } from './upgrade.ts'

const MIB = 1024 * 1024
export const PROXY_LIMITS = {
  /** The time to wait for the response headers, and then for each further chunk. */
  answerMs: 10_000,
  /** The same for calls that pay: phoenixd may try for 90 s, and a payer who gets no response may pay twice. */
  payingAnswerMs: 120_000,
  websocketIdleMs: 120_000,
  requestBytes: 64 * 1024,
  responseBytes: 16 * MIB,
  /** Per node, at a time; requests and websockets separately. */
  concurrent: 64,
}
export type ProxyLimits = typeof PROXY_LIMITS

const PAYING = new Set(
  ['payinvoice', 'payoffer', 'paylnaddress', 'lnurlpay', 'sendtoaddress', 'bumpfee', 'closechannel'].map((call) => `/${call}`),
)

/** The status for a wrong password. Such a call comes from a stranger and must not use up the owner's limit. */
const REFUSED = 401

export type NodeProxyOptions = {
  targetOf: TargetOf
  lookUp: LookUpNode
  reportSilence: ReportSilence
  calls: Pick<Limits, 'nodeCalls' | 'nodeCallsOfAddress'>
  edge: Edge
  log: FastifyBaseLogger
}

type Call = Answering & {
  request: IncomingMessage
  target: NodeTarget
  /** Set if the client requested a websocket. */
  client: Upgrading | undefined
}

/** Forwards requests and websockets to nodes. */
export class NodeProxy {
  readonly targetOf: TargetOf
  readonly #options: NodeProxyOptions
  readonly #limits: ProxyLimits
  /**
   * Allows as many sockets per address as requests per node, and requests are limited first. So a slow node exhausts only its own sockets.
   */
  readonly #agent: Agent
  readonly #requests: CountByNode
  readonly #websockets: CountByNode
  readonly #open = new Set<Socket>()

  constructor(options: NodeProxyOptions, limits: ProxyLimits = PROXY_LIMITS) {
    this.targetOf = options.targetOf
    this.#options = options
    this.#limits = limits
    this.#agent = keepingAgent(limits.concurrent)
    this.#requests = countByNode(limits.concurrent)
    this.#websockets = countByNode(limits.concurrent)
  }

  handle(request: IncomingMessage, response: ServerResponse, target: NodeTarget, client?: Upgrading): void {
    requestProbe.run({ traceparent: undefined }, () => this.#handle(request, response, target, client))
  }

  #handle(request: IncomingMessage, response: ServerResponse, target: NodeTarget, client?: Upgrading): void {
    const { edge, reportSilence, log: parent } = this.#options
    const id = edge.requestIdOf(request)
    const log = parent.child({ reqId: id })
    const startedAt = performance.now()
    log.info({ req: { id, method: request.method, url: request.url, ip: edge.addressOf(request) } }, 'incoming request')
    response.once('finish', () => {
      const responseTime = performance.now() - startedAt
      log.info({ res: response, responseTime }, 'request completed')
      if (requestProbe.isWatched) reportRequest(request, { id, route: '(node)', milliseconds: responseTime }, response.statusCode)
    })
    const call = { request, response, target, client, headers: edge.headers(id), log }
    this.#forward(call).catch((error: unknown) => {
      // The client is gone, so nobody would read a response.
      if (request.socket.destroyed) return
      if (edge.isStopping()) response.shouldKeepAlive = false
      const problem = problemOf(error, { id, log })
      if (target.nodeId !== undefined && problem.code === 'payment_service_unavailable') reportSilence(target.nodeId)
      writeProblem(response, problem, call.headers)
    })
  }

  upgrade(request: IncomingMessage, client: Upgrading, target: NodeTarget): void {
    const response = responseTo(request, client)
    if (response) this.handle(request, response, target, client)
  }

  /** Requests end on their own. Websockets do not, and closing the server would wait for them. */
  closeWebsockets(): void {
    for (const socket of this.#open) socket.destroy()
  }

  close(): void {
    this.closeWebsockets()
    this.#agent.destroy()
  }

  async #forward(call: Call): Promise<void> {
    const { edge, lookUp, calls } = this.#options
    const { request, target, client } = call
    const { nodeId } = target
    if (isAmbiguous(request)) request.socket.destroy()
    // Destroyed just above, or by an earlier request on the same connection.
    if (request.socket.destroyed) return
    const refusal = edge.refusal(request)
    if (refusal) throw refusal
    if (nodeId === undefined) throw noSuchNode()
    refuseOtherSites(request)
    refuseKeys(request)
    if (Number(request.headers['content-length'] ?? 0) > this.#limits.requestBytes) throw bodyTooLarge()
    await calls.nodeCallsOfAddress(request, edge.addressOf(request))
    const address = await lookUp(nodeId)
    if (address === 'not found') throw noSuchNode()
    if (address === 'down') throw nodeDown('no address: stopped, or on another host')
    calls.nodeCalls.require(nodeId)
    // The client may have disconnected during the look-up.
    if (request.socket.destroyed) return
    const leave = (client ? this.#websockets : this.#requests).enter(nodeId)
    // Watch the connection, not the response: a response that is queued behind others on its connection gets no close event.
    const left = new AbortController()
    const abort = (): void => left.abort()
    request.socket.once('close', abort)
    try {
      await this.#exchange(call, nodeId, address, left.signal)
    } finally {
      request.socket.off('close', abort)
      leave()
    }
  }

  async #exchange(call: Call, nodeId: string, address: NodeAddress, left: AbortSignal): Promise<void> {
    const { request, response, target, client } = call
    const { path } = target
    const isWebsocket = client !== undefined
    const isPaying = request.method === 'POST' && PAYING.has(path.split('?')[0] ?? '')
    const limitMs = isPaying ? this.#limits.payingAnswerMs : this.#limits.answerMs
    const outgoing = startExchange(request, { address, path, agent: isWebsocket ? freshAgent : this.#agent, isWebsocket })
    const sending = { limitMs, maxBytes: this.#limits.requestBytes, left, isWebsocket }
    const answer = await answerTo(outgoing, request, response, sending)
    if (answer.response.statusCode !== REFUSED) this.#options.calls.nodeCalls.count(nodeId)
    if (!client || !answer.node)
      return relay(outgoing, answer.response, request, call, { limitMs, maxBytes: this.#limits.responseBytes, left })
    writeSwitch(answer.response, call, client)
    this.#open.add(client.socket)
    await tunnel(client, answer.node, this.#limits.websocketIdleMs)
    this.#open.delete(client.socket)
  }
}

type CountByNode = { enter: (nodeId: string) => () => void }
function countByNode(most: number): CountByNode {
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
