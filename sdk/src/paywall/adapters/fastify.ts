import { type BindOptions, type Bound, bindRequest, type HttpRequest } from '../binding.ts'
import type { PaywallOptions } from '../options.ts'
import { rememberDelivery } from '../paid.ts'
import { type LazyGate, lazyGate, type Ready } from './lazy-gate.ts'
import { bodyOf, discardBody, linesOf, type NodeHeaders, type NodeRequest, paymentFieldsOf } from './node-request.ts'
import { follow, keepPrivate, type NodeResponse, whileConnected } from './node-response.ts'

export { discovery } from '../../discovery/adapters/fastify.ts'
export { paymentOf } from '../paid.ts'

/** The parts of Fastify's request that are needed here or useful for a price. For more, annotate your function with Fastify's own type. */
export type FastifyRequest = {
  method: string
  url: string
  ip: string
  protocol: string
  /** Fastify 4 has it only in `headers`. */
  host?: string | undefined
  raw: NodeRequest
  is404: boolean
  routeOptions: { url?: string | undefined }
  headers: NodeHeaders
  params: unknown
  query: unknown
  body: unknown
}
export type FastifyReply = {
  raw: NodeResponse
  hijack(): unknown
  code(status: number): unknown
  header(name: string, value: string | string[]): unknown
  send(body: string): unknown
}

/**
 * Charges for a route: `app.get('/joke', { onRequest: paywall({ nodeId, amountSat: 10 }) }, async () => …)`. Use `preHandler` instead of
 * `onRequest` if the price depends on the body.
 */
export function paywall<R = FastifyRequest>(
  options: PaywallOptions<R>,
): ((request: FastifyRequest, reply: FastifyReply) => Promise<unknown>) & Ready {
  const gate = lazyGate(options)
  const hook = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    // A global hook also runs for 404s, where nothing is sold.
    if (request.is404 || (await mayPass(gate, request, reply))) return undefined
    // If the hook did not return the reply, Fastify would continue to the handler.
    return reply
  }
  return Object.assign(hook, { ready: gate.ready })
}

/** False if a response was sent, or the customer has disconnected. */
async function mayPass<R>(gate: LazyGate<R>, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
  const { method, headers, routeOptions, url, ip } = request
  const route = routeOptions.url ?? url
  const bind = (options: BindOptions): Promise<Bound> => bindRequest(httpRequestOf(request), options)
  const visit = { method, route, url, ...paymentFieldsOf(headers), clientAddress: ip, bind, request: request as R }
  const decision = gate.recall(visit) ?? (await whileConnected(reply.raw, (signal) => gate.decide({ ...visit, signal })))
  if (!decision) {
    reply.hijack()
    return false
  }
  if (decision.pass) {
    if (decision.isPrivate) keepPrivate(reply.raw)
    if (!decision.delivery) return true
    rememberDelivery(request, decision.delivery)
    follow(reply.raw, decision.delivery)
    return true
  }
  reply.code(decision.status)
  for (const [name, value] of Object.entries(decision.headers)) reply.header(name, value)
  discardBody(request.raw)
  reply.send(decision.body)
  return false
}

function httpRequestOf(request: FastifyRequest): HttpRequest {
  const { method, url, raw, protocol } = request
  const host = request.host ?? request.headers.host
  return {
    method,
    url,
    origin: host === undefined ? undefined : `${protocol}://${host}`,
    header: (name) => linesOf(raw, name),
    body: (limits) => bodyOf(rawBodyOf(request) ?? raw, limits),
  }
}

/** In later hooks, such as `preHandler`, the body is already parsed. `fastify-raw-body` keeps its bytes in the request. */
function rawBodyOf(request: FastifyRequest): NodeRequest | undefined {
  const { rawBody } = request as { rawBody?: unknown }
  return rawBody instanceof Uint8Array ? { ...request.raw, headers: request.headers, rawBody } : undefined
}
