import type { FastifyInstance } from 'fastify'
import { endOperatorSession, getOperatorSession, startOperatorSession } from '../../../../contract/src/dashboard/operator.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { addressOf } from '../hooks/rate-limit.ts'
import { requireSameOrigin } from '../hooks/session.ts'
import { addRoute } from '../route.ts'

/** Signing in to the operator's pages, which then use the operator API with the session. */
export function operatorSessionRoutes({ config, operatorSessions: sessions, signIn }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireSameOrigin(config))
    addRoute(app, getOperatorSession, async ({ headers }) => {
      const session = await sessions?.find(headers.cookie)
      return { isConfigured: sessions !== undefined, isSignedIn: session !== undefined, expiresAt: session?.expiresAt ?? null }
    })
    addRoute(app, startOperatorSession, async (request, reply) => {
      if (!sessions)
        throw new Problem('not_found', 'This service has no operator token. Set OPERATOR_TOKEN to enable this sign-in.')
      // Attempts are counted per address only: otherwise strangers could lock the operator out. The token is too long to guess,
      // even from many addresses.
      const who = `operator ${addressOf(request)}`
      const attempt = await signIn.guard.admit({ target: who, source: who })
      if (!sessions.isToken(request.body.token.trim())) {
        request.log.warn({ address: request.ip }, 'wrong operator token at the operator’s sign-in page')
        throw new Problem('unauthorized', 'This is not the operator token.')
      }
      await attempt.succeeded()
      // Ends the browser's earlier session, so that signing out leaves none.
      await sessions.end(request.headers.cookie)
      const { expiresAt, cookie } = await sessions.start()
      request.log.info({ address: request.ip }, 'the operator signed in')
      reply.header('set-cookie', cookie)
      return { isConfigured: true, isSignedIn: true, expiresAt }
    })
    addRoute(app, endOperatorSession, async (request, reply) => {
      if (!sessions) return
      const { cookie, hasEnded } = await sessions.end(request.headers.cookie)
      if (hasEnded) request.log.info({ address: request.ip }, 'the operator signed out')
      reply.header('set-cookie', cookie)
    })
  }
}
