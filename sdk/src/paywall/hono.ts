import type { Context, Env, MiddlewareHandler } from 'hono'
import { Gate, type PaywallOptions } from './gate.ts'
import { rememberPayment } from './paid.ts'
import { delivered, refused } from './request.ts'

export { paymentOf } from './paid.ts'

/** `app.get('/joke', paywall({ nodeId, amountSat: 10 }), (c) => c.json(…))` */
export function paywall<E extends Env = Env>(options: PaywallOptions<Context<E>>): MiddlewareHandler<E> {
  const gate = new Gate(options)
  return async (context, next) => {
    const { raw, method } = context.req
    const authorization = raw.headers.get('authorization')
    const visit = { method, route: routeOf(context), authorization, signal: raw.signal, request: context }
    const decision = await gate.decide(visit)
    if (!decision.pass) return refused(decision)
    rememberPayment(context, decision.payment)
    // What the handler throws has become an answer by then.
    await next()
    const response = delivered(context.res, decision)
    // Assigned over another one, Hono would merge that one's headers into it.
    context.res = undefined
    context.res = response
    return undefined
  }
}

/** The pattern of the last route is the handler's. A wildcard binds a payment to nothing, so there the path itself has to. */
function routeOf({ req }: Pick<Context, 'req'>): string {
  const pattern = req.matchedRoutes.at(-1)?.path
  return pattern === undefined || pattern.includes('*') ? req.path : pattern
}
