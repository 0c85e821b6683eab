import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import type { RouteDeps } from '../deps.ts'
import { requireOperator } from '../hooks/auth.ts'
import { clientOf, requireSameOrigin } from '../hooks/session.ts'
import { ErrorBody, Name, strict, Text, Timestamp } from '../schemas.ts'

const NewLink = Type.Object({ url: Type.String(), expiresAt: Timestamp })
const Invitation = strict({ email: Type.Optional(Text) })
const Id = Type.Object({ id: Type.String() })
const Acceptance = strict({
  token: Text,
  email: Type.Optional(Text),
  name: Type.Optional(Name),
  password: Type.Optional(Text),
})

/** What the page behind a link asks. */
export function linkRoutes({ links, signIn, config, limits }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireSameOrigin(config))
    // A person opens one link; who tries many is guessing, and each try is a query.
    app.addHook('onRequest', limits.links)
    app.post<{ Body: { token: string } }>(
      '/inspect',
      { schema: { hide: true, querystring: strict({}), body: strict({ token: Text }) } },
      async ({ body }) => links.inspect(body.token),
    )
    app.post<{ Body: Static<typeof Acceptance> }>(
      '/accept',
      { schema: { hide: true, querystring: strict({}), body: Acceptance } },
      async (request, reply) => {
        const client = clientOf(request, reply)
        const { user, cookies } = await links.accept(request.body, client)
        reply.header('set-cookie', [...cookies, signIn.devices.headerFor(client.cookie, user.email)])
        return { user }
      },
    )
  }
}

/** How an operator lets somebody in; handing the link over is the operator's: the service sends no mail. */
export function operatorLinkRoutes({ links, limits }: RouteDeps, token: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(token, limits))
    app.addHook('preValidation', async (request) => {
      if (request.body === undefined) request.body = {}
    })
    const errors = { 400: ErrorBody, 401: ErrorBody, 404: ErrorBody }
    const security = [{ operator: [] }]
    app.post<{ Params: Static<typeof Id> }>(
      '/accounts/:id/sign-in-link',
      {
        schema: {
          summary: 'Make a link that signs the person of an account in, or makes an account without one theirs',
          security,
          params: Id,
          body: strict({}),
          response: { 201: NewLink, ...errors },
        },
      },
      async ({ params }, reply) => reply.code(201).send(await links.toAccount(params.id, 'operator')),
    )
    app.post<{ Body: { email: string } }>(
      '/sign-in-links',
      {
        schema: {
          summary: 'Make a link that signs a person in, by their email address',
          security,
          body: strict({ email: Text }),
          response: { 201: NewLink, ...errors },
        },
      },
      async ({ body }, reply) => reply.code(201).send(await links.toEmail(body.email, 'operator')),
    )
    app.post<{ Body: Static<typeof Invitation> }>(
      '/invitations',
      { schema: { summary: 'Make a link to sign up with', security, body: Invitation, response: { 201: NewLink, ...errors } } },
      async ({ body }, reply) => reply.code(201).send(await links.invite(body.email)),
    )
  }
}
