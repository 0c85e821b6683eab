import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import type { RouteDeps } from '../deps.ts'
import { clientOf, requireSameOrigin } from '../hooks/session.ts'
import { Name, strict, Text } from '../schemas.ts'

const Acceptance = strict({
  token: Text,
  email: Type.Optional(Text),
  name: Type.Optional(Name),
  password: Type.Optional(Text),
})

/** The API calls of the page that a sign-in link or an invitation opens. */
export function linkRoutes({ links, signIn, config, limits }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireSameOrigin(config))
    // A person opens one link; a client that tries many is guessing, and each try is a database query.
    app.addHook('onRequest', limits.links)
    app.post<{ Body: { token: string } }>(
      '/inspect',
      { schema: { querystring: strict({}), body: strict({ token: Text }) } },
      async ({ body }) => links.inspect(body.token),
    )
    app.post<{ Body: Static<typeof Acceptance> }>(
      '/accept',
      { schema: { querystring: strict({}), body: Acceptance } },
      async (request, reply) => {
        const client = clientOf(request, reply)
        const { user, cookies } = await links.accept(request.body, client)
        reply.header('set-cookie', [...cookies, signIn.devices.headerFor(client.cookie, user.email)])
        return { user }
      },
    )
  }
}
