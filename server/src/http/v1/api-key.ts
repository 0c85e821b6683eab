import type { FastifyInstance } from 'fastify'
import { getApiKey } from '../../../../contract/src/api-keys.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

export function apiKeyRoutes({ keys, limits }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, getApiKey, async ({ caller }) => caller, { onRequest: [requireKey(keys, limits)] })
  }
}
