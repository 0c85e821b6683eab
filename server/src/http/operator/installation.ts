import type { FastifyInstance } from 'fastify'
import { getBackgroundWork, listDailyStats, listHosts, listVersions } from '../../../../contract/src/operator/installation.ts'
import { type OperatorDeps, requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

const DEFAULT_DAYS = 30

/** What operators can see of the installation as a whole. */
export function operatorInstallationRoutes(deps: OperatorDeps) {
  const { installation } = deps
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(deps))
    addRoute(app, listHosts, async () => ({ hosts: await installation.hosts() }))
    addRoute(app, listVersions, async () => installation.versions())
    addRoute(app, listDailyStats, async ({ query }) => ({ days: await installation.days(query.days ?? DEFAULT_DAYS) }))
    addRoute(app, getBackgroundWork, async () => installation.backgroundWork())
  }
}
