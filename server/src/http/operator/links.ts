import type { FastifyInstance } from 'fastify'
import { createAccountSignInLink, createInvitation, createSignInLink } from '../../../../contract/src/operator/links.ts'
import { type OperatorDeps, requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

/** How an operator gives someone access. The operator delivers the link, because the service sends no mail. */
export function operatorLinkRoutes(deps: OperatorDeps) {
  const { links } = deps
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(deps))
    addRoute(app, createAccountSignInLink, async ({ params }) => links.toAccount(params.id, 'operator'))
    addRoute(app, createSignInLink, async ({ body }) => links.toEmail(body.email, 'operator'))
    addRoute(app, createInvitation, async ({ body, log }) => {
      const link = await links.invite(body.email)
      // The invitation is logged, because there is no account yet whose activity could show it.
      log.info('the operator created an invitation')
      return link
    })
  }
}
