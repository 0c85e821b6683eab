import type { FastifyInstance } from 'fastify'
import { createAccountSignInLink, createInvitation, createSignInLink } from '../../../../contract/src/operator/links.ts'
import type { RouteDeps } from '../deps.ts'
import { requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

/** How an operator gives someone access. The operator delivers the link, because the service sends no mail. */
export function operatorLinkRoutes({ links, limits }: RouteDeps, token: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(token, limits))
    addRoute(app, createAccountSignInLink, async ({ params }) => links.toAccount(params.id, 'operator'))
    addRoute(app, createSignInLink, async ({ body }) => links.toEmail(body.email, 'operator'))
    addRoute(app, createInvitation, async ({ body }) => links.invite(body.email))
  }
}
