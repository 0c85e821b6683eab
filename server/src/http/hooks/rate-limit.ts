import type { IncomingMessage } from 'node:http'
import rateLimit, { normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { rateLimited } from '../../problems.ts'
import { type CountHit, NodeCalls } from '../node-proxy/node-calls.ts'

const MAX_FAILURES = 30
const FAILURE_WINDOW_MS = 60_000
const MAX_FROM_STRANGERS = 60
/** Twice what one node accepts. Calls that a node refuses count only here. */
const MAX_NODE_CALLS_OF_ADDRESS = 1_200
/** Addresses counted per process; beyond that, the least recently seen is forgotten. */
const MOST_CLIENTS = 100_000

type Check = (request: FastifyRequest) => Promise<void>
export type Limits = {
  /** Node operations, per client address. */
  nodes: Check
  /**
   * Node operations of the dashboard, including its try-it panel: a separate limit of the same size, so that neither uses up the other's.
   */
  dashboardNodes: Check
  /** Searches in the log of API requests, which may be long. */
  requestLog: Check
  /** Failed authentications, per client address: a valid key is never refused because of others behind the same address. */
  failures: Check
  /** What unauthenticated clients can make us store: accounts and passkey challenges, per client address. */
  strangers: Check
  /** Reads and uses of sign-in links and invitations, per client address. */
  links: Check
  /** Calls to nodes through the proxy, per client address. */
  nodeCallsOfAddress: (request: IncomingMessage, ip: string) => Promise<void>
  /** Calls to one node through the proxy: checked before a call, and counted once the node has accepted it. */
  nodeCalls: { require: (nodeId: string) => void; count: (nodeId: string) => void }
  /** Payment creations, per API key and minute; undefined if the deployment sets no limit. */
  creations: Check | undefined
}

/** Addresses are counted as the library does: IPv4 as is, IPv6 by /64, because one internet connection has at least that many. */
export async function addLimits(
  app: FastifyInstance,
  settings: { max: number; windowSeconds: number; gatewayMax: number },
  countHit: CountHit | undefined,
): Promise<Limits> {
  // biome-ignore lint/suspicious/noExplicitAny: the library's type for a store is its own class, whose constructor does not take our client
  const store = countHit && { store: sharedStore(countHit) as any }
  await app.register(rateLimit, { global: false, cache: MOST_CLIENTS, ...store })
  const limit = (name: string, max: number, timeWindow: number, keyGenerator?: (request: FastifyRequest) => string): Check => {
    const options = { max, timeWindow, nameSpace: name, ...(keyGenerator ? { keyGenerator } : {}) }
    const check = app.createRateLimit(options as { max: number; timeWindow: number })
    return async (request) => {
      // The connection is closed: its address is no longer known, and nobody would read the response.
      if (request.raw.socket.destroyed) return
      const result = await check(request)
      if (!result.isAllowed && result.isExceeded) throw rateLimited(max, result.ttlInSeconds)
    }
  }
  const windowMs = settings.windowSeconds * 1000
  const calls = new NodeCalls(countHit)
  const callsOfAddress = limit('node calls of address', MAX_NODE_CALLS_OF_ADDRESS, 60_000)
  return {
    // These requests never reach Fastify. The library reads only these fields.
    nodeCallsOfAddress: (raw, ip) => callsOfAddress({ raw, ip, routeOptions: {} } as FastifyRequest),
    nodeCalls: {
      require: (nodeId) => {
        const seconds = calls.secondsUntilFree(nodeId)
        if (seconds !== undefined) throw rateLimited(calls.max, seconds)
      },
      count: (nodeId) => calls.count(nodeId),
    },
    nodes: limit('nodes', settings.max, windowMs),
    dashboardNodes: limit('dashboard nodes', settings.max, windowMs),
    requestLog: limit('request log', settings.max, windowMs),
    failures: limit('failures', MAX_FAILURES, FAILURE_WINDOW_MS),
    strangers: limit('strangers', MAX_FROM_STRANGERS, 60_000),
    links: limit('links', MAX_FROM_STRANGERS, 60_000),
    creations: settings.gatewayMax === 0 ? undefined : limit('gateway', settings.gatewayMax, 60_000, ({ caller }) => caller.id),
  }
}

/** The client's address as all limits count it. */
export const addressOf = ({ ip }: FastifyRequest): string => normalizeIP(ip)

type Counted = (error: Error | null, result?: { current: number; ttl: number }) => void

/**
 * Counts across all replicas. If the count fails because PostgreSQL is down, the request is not counted: a limit must not cause
 * an outage.
 */
function sharedStore(countHit: CountHit) {
  return class SharedStore {
    readonly #name: string

    constructor({ nameSpace = '' }: { nameSpace?: string }) {
      this.#name = nameSpace
    }

    incr(key: string, counted: Counted, timeWindow: number): void {
      countHit(`${this.#name} ${key}`, timeWindow).then(
        ({ hits, remainingMs }) => counted(null, { current: hits, ttl: remainingMs }),
        () => counted(null, { current: 0, ttl: timeWindow }),
      )
    }

    child(options: { nameSpace?: string }): SharedStore {
      return new SharedStore(options)
    }
  }
}
