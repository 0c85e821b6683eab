import type { Context, Env, MiddlewareHandler } from 'hono'
import type { WaitUntil } from '../gate/claims.ts'
import type { PaywallOptions } from '../options.ts'
import { rememberDelivery } from '../paid.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { awaitBody, delivered, privateResponse, refused } from './request.ts'
import { bindWebRequest, paymentFieldsOf } from './web-request.ts'

export { discovery } from '../../discovery/adapters/hono.ts'
export { paymentOf } from '../paid.ts'

/** Charges for a route: `app.get('/joke', paywall({ nodeId, amountSat: 10 }), (c) => c.json(…))` */
export function paywall<E extends Env = Env>(options: PaywallOptions<Context<E>>): MiddlewareHandler<E> & Ready {
  const gate = lazyGate(options)
  const handler: MiddlewareHandler<E> = async (context, next) => {
    const { raw, method, path } = context.req
    const decision = await gate.decide({
      method,
      route: routeOf(context),
      url: `${path}${new URL(raw.url).search}`,
      ...paymentFieldsOf(raw.headers),
      bind: bindWebRequest(raw),
      signal: raw.signal,
      waitUntil: waitUntilOf(context),
      request: context,
    })
    if (!decision.pass) return refused(decision, raw)
    const { delivery } = decision
    if (!delivery) {
      await next()
      if (decision.isPrivate) replace(context, privateResponse(context.res))
      return undefined
    }
    rememberDelivery(context, delivery)
    awaitBody(raw, delivery)
    // Hono has already turned an Error from the handler into a response, but not other thrown values.
    try {
      await next()
    } catch (error) {
      delivery.release('the handler failed')
      throw error
    }
    replace(context, delivered(context.res, delivery, raw.signal))
    return undefined
  }
  return Object.assign(handler, { ready: gate.ready })
}

/** If a response is already set, Hono would merge its headers into the new one. */
function replace(context: Pick<Context, 'res'>, response: Response): void {
  context.res = undefined as never
  context.res = response
}

/** The last matched route is the handler's. A wildcard matches every page, so a payment is bound to the path instead. */
function routeOf({ req }: Pick<Context, 'req'>): string {
  const pattern = req.matchedRoutes.at(-1)?.path
  return pattern === undefined || pattern.includes('*') ? req.path : pattern
}

function waitUntilOf(context: Pick<Context, 'executionCtx'>): WaitUntil | undefined {
  try {
    const { executionCtx } = context
    return (work) => executionCtx.waitUntil(work)
  } catch {
    // Hono throws if the runtime has no execution context. In such a runtime, work continues after the response anyway.
    return undefined
  }
}
