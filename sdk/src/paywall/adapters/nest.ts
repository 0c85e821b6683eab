import type { PaywallOptions } from '../options.ts'
import { type ExpressRequest, mayPass as mayPassExpress } from './express.ts'
import { type FastifyReply, type FastifyRequest, mayPass as mayPassFastify } from './fastify.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import type { NodeResponse } from './node-response.ts'

export { discovery } from '../../discovery/adapters/node.ts'
export { paymentOf } from '../paid.ts'

/** The parts of Nest's execution context that are needed here. */
type Context = { switchToHttp(): { getRequest(): unknown; getResponse(): unknown } }
type Guard = { canActivate(context: Context): Promise<boolean> }

/**
 * Charges for a route, on Express: `@UseGuards(paywall({ nodeId, amountSat: 10 }))`. For x402 with a body, create the application with
 * `rawBody: true`.
 */
export function paywall<R = ExpressRequest>(options: PaywallOptions<R>): Guard & Ready {
  const gate = lazyGate(options)
  const canActivate = async (context: Context): Promise<boolean> => {
    const http = context.switchToHttp()
    const [request, response] = [http.getRequest(), http.getResponse()]
    const passes = isFastify(response)
      ? await mayPassFastify(gate, request as FastifyRequest, response)
      : await mayPassExpress(gate, request as ExpressRequest, response as NodeResponse)
    // A response was already sent. With `false`, Nest would throw an error, and a filter would try to send a second response.
    return passes || new Promise<never>(() => undefined)
  }
  return { canActivate, ready: gate.ready }
}

const isFastify = (response: unknown): response is FastifyReply => typeof (response as FastifyReply).hijack === 'function'
