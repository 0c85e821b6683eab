import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Repeatable } from '../../idempotency.ts'
import type { Call } from '../../nodes/nodes.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { requirePerson, requireSameOrigin } from '../hooks/session.ts'
import { dashboardAccountRoutes } from './account.ts'
import { dashboardEventRoutes } from './events.ts'
import { dashboardNodeRoutes } from './nodes.ts'
import { dashboardGatewayRoutes, dashboardTryItRoutes } from './payments.ts'

/** What the app asks for, with its session: the same calls to the same domain as the public API, which a key opens. */
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
    await register(dashboardEventRoutes(deps))
  }
}

export const callOf = ({ person }: Pick<FastifyRequest, 'person'>): Call => ({
  accountId: person.accountId,
  actor: person.userId,
})

const ENOUGH_RANDOM = /^[A-Za-z0-9_-]{22,255}$/

/**
 * An answer with credentials is sealed under what only the caller has. A program has its API key. A person has a session, and it ends:
 * who signs in again to ask for a lost answer could not open it any more. So it is the Idempotency-Key itself, which has to be a random
 * value that only the page knows. The store gets its hash: neither it nor the master key, nor both, open what is kept there.
 */
export function repeatableOf(request: Pick<FastifyRequest, 'headers' | 'person' | 'body'>, route: string): Repeatable {
  const secret = request.headers['idempotency-key']?.toString()
  if (secret === undefined || !ENOUGH_RANDOM.test(secret))
    throw new Problem('bad_request', 'The header Idempotency-Key must be a random value of 22 characters or more.')
  const key = createHash('sha256').update(secret).digest('hex')
  return { key, callerId: request.person.userId, secret, route, body: request.body }
}
