import type { FastifyInstance } from 'fastify'
import type { RouteDeps } from '../deps.ts'
import { requirePerson, requireSameOrigin } from '../hooks/session.ts'
import { dashboardAccountRoutes } from './account.ts'
import { dashboardCreditRoutes } from './credit.ts'
import { dashboardEventRoutes } from './events.ts'
import { dashboardNodeRoutes } from './nodes.ts'
import { dashboardGatewayRoutes, dashboardTryItRoutes } from './payments.ts'
import { dashboardWebhookActionRoutes, dashboardWebhookRoutes } from './webhooks.ts'

/** The dashboard's API. It makes the same domain calls as the public API, with a session instead of a key. */
export function dashboardRoutes(deps: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const signedIn = [requireSameOrigin(deps.config), requirePerson(deps)]
    const register = (routes: (app: FastifyInstance) => Promise<void>, first: typeof signedIn = []) =>
      app.register(async (scope) => {
        for (const check of [...first, ...signedIn]) scope.addHook('onRequest', check)
        await routes(scope)
      })
    await register(dashboardNodeRoutes(deps), [deps.limits.dashboardNodes])
    await register(dashboardGatewayRoutes(deps))
    await register(dashboardTryItRoutes(deps), [deps.limits.dashboardNodes])
    await register(dashboardAccountRoutes(deps))
    await register(dashboardCreditRoutes(deps))
    await register(dashboardEventRoutes(deps))
    await register(dashboardWebhookRoutes(deps))
    await register(dashboardWebhookActionRoutes(deps), [deps.limits.dashboardNodes])
  }
}
