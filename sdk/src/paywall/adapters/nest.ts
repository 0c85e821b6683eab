import type { PaywallOptions } from '../options.ts'
import { type ExpressRequest, mayPass } from './express.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import type { NodeResponse } from './node-response.ts'

export { discovery } from '../../discovery/adapters/node.ts'
export { paymentOf } from '../paid.ts'

const ONLY_EXPRESS =
  'The paywall of @boltyard/sdk/nest supports NestJS on Express only, and this application runs on Fastify. Use @nestjs/platform-express, or put `boltyard proxy` in front.'

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
    if (isFastify(response)) throw new Error(ONLY_EXPRESS)
    const passes = await mayPass(gate, request as ExpressRequest, response as NodeResponse)
    // A response was already sent. With `false`, Nest would throw an error, and a filter would try to send a second response.
    return passes || new Promise<never>(() => undefined)
  }
  return { canActivate, ready: gate.ready }
}

const isFastify = (response: unknown): boolean => typeof (response as { hijack?: unknown }).hijack === 'function'
