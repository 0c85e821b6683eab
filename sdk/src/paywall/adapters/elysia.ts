import type { Delivery } from '../gate/delivery.ts'
import type { PaywallOptions } from '../options.ts'
import { rememberDelivery } from '../paid.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { awaitBody, delivered, privateResponse, refused } from './request.ts'
import { bindWebRequest, paymentFieldsOf } from './web-request.ts'

export { discovery } from '../../discovery/adapters/elysia.ts'
export { paymentOf } from '../paid.ts'

/** The parts of Elysia's context that are needed here or useful for a price. For more, annotate your function with Elysia's own type. */
export type ElysiaContext = {
  request: Request
  path: string
  route: string
  /** Bun only. */
  server?: { requestIP?(request: Request): { address: string } | null } | null | undefined
}
type MapContext = ElysiaContext & { responseValue?: unknown; set: object }
type MapResponse = (value: unknown, set: object, request: Request) => Response

export type ElysiaHooks = Ready & {
  parse(context: { request: Request }): undefined
  beforeHandle(context: ElysiaContext): Promise<Response | undefined>
  mapResponse(context: MapContext): Promise<Response | undefined>
  error(context: { request: Request }): undefined
}

/** Charges for a route: `app.get('/joke', () => …, paywall({ nodeId, amountSat: 10 }))`. With other hooks: `{ ...paywall(…), detail }`. */
export function paywall<C = ElysiaContext>(options: PaywallOptions<C>): ElysiaHooks {
  const gate = lazyGate(options)
  const deliveries = new WeakMap<Request, Delivery>()
  /** Requests that are free for this caller, but not for everyone. */
  const privately = new WeakSet<Request>()
  /** Made before Elysia reads the body, which can be read only once. */
  const copies = new WeakMap<Request, Request>()
  const isBound = [options.protocols, options.protocol].flat().includes('x402')
  return {
    ready: gate.ready,
    parse({ request }) {
      if (isBound && !request.bodyUsed) copies.set(request, request.clone())
      return undefined
    },
    async beforeHandle(context) {
      const { request, path, route, server } = context
      const copy = copies.get(request) ?? request
      const decision = await gate.decide({
        method: request.method,
        // A wildcard matches every page, so a payment is bound to the path instead.
        route: route.includes('*') ? path : route,
        url: `${path}${new URL(request.url).search}`,
        ...paymentFieldsOf(request.headers),
        bind: bindWebRequest(copy),
        clientAddress: server?.requestIP?.(request)?.address,
        signal: request.signal,
        request: context as C,
      })
      if (!decision.pass) return refused(decision, copy)
      const { delivery } = decision
      if (decision.isPrivate) privately.add(request)
      if (!delivery) return undefined
      deliveries.set(request, delivery)
      rememberDelivery(request, delivery)
      awaitBody(request, delivery)
      return undefined
    },
    async mapResponse({ request, responseValue, set }) {
      const delivery = deliveries.get(request)
      if (!delivery && !privately.has(request)) return undefined
      // Elysia also maps what comes from its error handlers.
      if (responseValue === undefined && delivery?.isDecided !== false) return undefined
      const { mapResponse } = (await import('elysia/adapter/web-standard/handler')) as { mapResponse: MapResponse }
      const answer = mapResponse(responseValue, set, request)
      return delivery ? delivered(answer, delivery, request.signal) : privateResponse(answer)
    },
    error({ request }) {
      deliveries.get(request)?.release('the handler failed')
      return undefined
    },
  }
}
