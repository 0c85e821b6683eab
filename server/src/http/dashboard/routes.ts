import type { FastifyInstance } from 'fastify'
import type { RouteDeps } from '../deps.ts'
import { requirePerson, requireSameOrigin } from '../hooks/session.ts'
import { dashboardAccountRoutes } from './account.ts'
import { dashboardDeveloperRoutes } from './developers.ts'
import { dashboardEventRoutes } from './events.ts'
import { dashboardNodeRoutes } from './nodes.ts'
import { dashboardPaymentRoutes } from './payment-search.ts'
import { dashboardTryItRoutes } from './payments.ts'
import { dashboardSettingsRoutes } from './settings.ts'
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
    await register(dashboardPaymentRoutes(deps))
    await register(dashboardTryItRoutes(deps), [deps.limits.dashboardNodes])
    await register(dashboardAccountRoutes(deps))
    await register(dashboardDeveloperRoutes(deps), [deps.limits.requestLog])
    await register(dashboardEventRoutes(deps))
    await register(dashboardSettingsRoutes(deps))
    await register(dashboardWebhookRoutes(deps))
    await register(dashboardWebhookActionRoutes(deps), [deps.limits.dashboardNodes])
  }
}
