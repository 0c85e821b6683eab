import type { Context, Next } from 'hono'
import { type DiscoveryOptions, discovery as fromRequest } from '../discovery.ts'

/** `app.use(discovery({ title: 'Jokes', routes: { 'GET /joke': joke } }))` */
export function discovery(
  options: DiscoveryOptions,
): (context: Pick<Context, 'req'>, next: Next) => Promise<Response | undefined> {
  const documents = fromRequest(options)
  return async ({ req }, next) => {
    const response = documents(req.raw)
    if (!response) await next()
    return response
  }
}
