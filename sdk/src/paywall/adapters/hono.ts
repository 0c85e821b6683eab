import type { Context, Env, MiddlewareHandler } from 'hono'
import type { WaitUntil } from '../gate/claims.ts'
import type { PaywallOptions } from '../options.ts'
import { rememberPayment } from '../paid.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { delivered, refused } from './request.ts'

export { paymentOf } from '../paid.ts'

/** `app.get('/joke', paywall({ nodeId, amountSat: 10 }), (c) => c.json(…))` */
export function paywall<E extends Env = Env>(options: PaywallOptions<Context<E>>): MiddlewareHandler<E> & Ready {
  const gate = lazyGate(options)
  const handler: MiddlewareHandler<E> = async (context, next) => {
    const { raw, method, path } = context.req
    const decision = await gate.decide({
      method,
      route: routeOf(context),
      url: `${path}${new URL(raw.url).search}`,
      authorization: raw.headers.get('authorization'),
      signal: raw.signal,
      waitUntil: waitUntilOf(context),
      request: context,
    })
    if (!decision.pass) return refused(decision)
    const { delivery } = decision
    if (!delivery) return next()
    rememberPayment(context, delivery.payment)
    // An error of the handler has become an answer by then, and whatever else it throws has not.
    try {
      await next()
    } catch (error) {
      delivery.release('the handler failed')
      throw error
    }
    const response = delivered(context.res, delivery, raw.signal)
    // Assigned over another one, Hono would merge that one's headers into it.
    context.res = undefined
    context.res = response
    return undefined
  }
  return Object.assign(handler, { ready: gate.ready })
}

/** The pattern of the last route is the handler's. A wildcard binds a payment to nothing, so there the path itself has to. */
function routeOf({ req }: Pick<Context, 'req'>): string {
  const pattern = req.matchedRoutes.at(-1)?.path
  return pattern === undefined || pattern.includes('*') ? req.path : pattern
}

function waitUntilOf(context: Pick<Context, 'executionCtx'>): WaitUntil | undefined {
  try {
    const { executionCtx } = context
    return (work) => executionCtx.waitUntil(work)
  } catch {
    // Hono throws where the runtime has none; there, work goes on after the answer.
    return undefined
  }
}
