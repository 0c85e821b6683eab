import type { PaywallOptions } from '../options.ts'
import { rememberPayment } from '../paid.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { follow, type NodeResponse, whileConnected } from './node-response.ts'

export { paymentOf } from '../paid.ts'

/** The parts of Fastify's request that are needed here or useful for a price. For more, annotate your function with Fastify's own type. */
export type FastifyRequest = {
  method: string
  url: string
  ip: string
  is404: boolean
  routeOptions: { url?: string | undefined }
  headers: { authorization?: string | undefined; [name: string]: string | string[] | undefined }
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
    if (request.is404) return undefined
    const { method, headers, routeOptions, url, ip } = request
    const route = routeOptions.url ?? url
    const visit = { method, route, url, authorization: headers.authorization, clientAddress: ip, request: request as R }
    const decision = gate.recall(visit) ?? (await whileConnected(reply.raw, (signal) => gate.decide({ ...visit, signal })))
    // The customer has disconnected. Without hijack(), Fastify would continue to the handler.
    if (!decision) return reply.hijack()
    if (decision.pass) {
      if (!decision.delivery) return undefined
      rememberPayment(request, decision.delivery.payment)
      follow(reply.raw, decision.delivery)
      return undefined
    }
    reply.code(decision.status)
    for (const [name, value] of Object.entries(decision.headers)) reply.header(name, value)
    return reply.send(decision.body)
  }
  return Object.assign(hook, { ready: gate.ready })
}
