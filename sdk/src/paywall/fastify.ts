import { Gate, type PaywallOptions } from './gate.ts'
import { finishHead, type NodeResponse, whileConnected } from './node-response.ts'
import { rememberPayment } from './paid.ts'

export { paymentOf } from './paid.ts'

/** As much of Fastify's request as is needed here and is of use for a price; annotate your function with Fastify's own type for more. */
export type FastifyRequest = {
  method: string
  url: string
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

/** `app.get('/joke', { onRequest: paywall({ nodeId, amountSat: 10 }) }, async () => …)`; `preHandler` where the price depends on the body. */
export function paywall<R extends FastifyRequest = FastifyRequest>(
  options: PaywallOptions<R>,
): (request: R, reply: FastifyReply) => Promise<unknown> {
  const gate = new Gate(options)
  return async (request, reply) => {
    // A hook of all routes also runs where there is none. Nothing is sold there.
    if (request.is404) return
    const { method, headers, routeOptions, url } = request
    const visit = { method, route: routeOptions.url ?? url, authorization: headers.authorization, request }
    const decision = await whileConnected(reply.raw, (signal) => gate.decide({ ...visit, signal }))
    // Otherwise Fastify would go on to the handler.
    if (!decision) return reply.hijack()
    if (decision.pass) {
      rememberPayment(request, decision.payment)
      finishHead(reply.raw, decision)
      return
    }
    reply.code(decision.status)
    for (const [name, value] of Object.entries(decision.headers)) reply.header(name, value)
    return reply.send(decision.body)
  }
}
