import { type BindOptions, type Bound, bindRequest, type HttpRequest } from '../binding.ts'
import type { Delivery } from '../gate/delivery.ts'
import type { PaywallOptions } from '../options.ts'
import { rememberDelivery } from '../paid.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { bodyOf, discardBody, linesOf, type NodeRequest, paymentFieldsOf } from './node-request.ts'
import { follow, keepPrivate, type NodeResponse, whileConnected } from './node-response.ts'

export { discovery } from '../../discovery/adapters/koa.ts'
export { paymentOf } from '../paid.ts'

/** The parts of Koa's context that are needed here or useful for a price. For more, annotate your function with Koa's own type. */
export type KoaContext = {
  method: string
  originalUrl: string
  path: string
  ip: string
  protocol: string
  host: string
  query: Record<string, string | string[] | undefined>
  req: object
  res: object
  status: number
  body: unknown
  respond?: boolean | undefined
  set(fields: { [name: string]: string | string[] }): void
}

/** Takes any object, because TypeScript would infer the context of later handlers from it. */
type Middleware = (context: object, next: () => Promise<unknown>) => Promise<void>

/** Charges for a route: `router.get('/joke', paywall({ nodeId, amountSat: 10 }), (ctx) => { ctx.body = … })`. */
export function paywall<C = KoaContext>(options: PaywallOptions<C>): Middleware & Ready {
  const gate = lazyGate(options)
  const middleware: Middleware = async (given, next) => {
    const context = given as KoaContext
    const { method, originalUrl: url, ip, req, res } = context
    const [request, response] = [req as NodeRequest, res as NodeResponse]
    const bind = (binding: BindOptions): Promise<Bound> => bindRequest(httpRequestOf(context, request), binding)
    const fields = paymentFieldsOf(request.headers)
    const visit = { method, route: routeOf(context), url, ...fields, clientAddress: ip, bind, request: context as C }
    const decision = gate.recall(visit) ?? (await whileConnected(response, (signal) => gate.decide({ ...visit, signal })))
    if (!decision) {
      context.respond = false
      return
    }
    if (!decision.pass) {
      discardBody(request)
      context.status = decision.status
      context.set(decision.headers)
      context.body = decision.body === '' ? null : decision.body
      return
    }
    const { delivery } = decision
    if (!delivery) {
      if (decision.isPrivate) keepPrivate(response)
      return void (await next())
    }
    rememberDelivery(context, delivery)
    follow(response, delivery)
    await untilEnded(response, delivery, next)
  }
  return Object.assign(middleware, { ready: gate.ready })
}

/** Koa does not end the response of a customer who has disconnected, but the payment is only released when the response ends. */
async function untilEnded(response: NodeResponse, delivery: Delivery, next: () => Promise<unknown>): Promise<void> {
  let [hasEnded, hasClosed] = [false, false]
  const settle = (): void => {
    if (hasEnded && hasClosed && !delivery.isDecided) response.end()
  }
  response.once('close', () => {
    hasClosed = true
    settle()
  })
  try {
    await next()
  } finally {
    hasEnded = true
    settle()
  }
}

function httpRequestOf({ method, originalUrl: url, protocol, host }: KoaContext, request: NodeRequest): HttpRequest {
  return {
    method,
    url,
    origin: `${protocol}://${host}`,
    header: (name) => linesOf(request, name),
    body: (limits) => bodyOf(request, limits),
  }
}

/** The pattern that `@koa/router` has matched. Without it, a payment is bound to the path. */
function routeOf(context: KoaContext): string {
  const { _matchedRoute: pattern } = context as { _matchedRoute?: unknown }
  return typeof pattern === 'string' && !/[(*{]/.test(pattern) ? pattern : context.path
}
