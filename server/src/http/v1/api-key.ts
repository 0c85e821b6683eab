import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { ErrorBody } from '../schemas.ts'

const CurrentKey = Type.Object({ id: Type.String(), accountId: Type.String(), scopes: Type.Array(Type.String()) })

export function apiKeyRoutes({ keys, limits }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const schema = { summary: 'Which key is this', security: [{ apiKey: [] }], response: { 200: CurrentKey, 401: ErrorBody } }
    app.get('/api-key', { schema, onRequest: requireKey(keys, limits) }, async ({ caller }) => caller)
  }
}
