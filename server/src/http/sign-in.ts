import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type AuthAnswer, type AuthCall, AuthRefusal, emailOf, nameOf, passwordOf } from '../accounts/sign-in.ts'
import { Problem } from '../problems.ts'
import type { RouteParts } from './app.ts'
import { Name, strict, Text } from './schemas.ts'
import { clientOf, requirePerson, requireSameOrigin, signedOut } from './session.ts'

const SignUp = strict({ email: Text, password: Text, name: Type.Optional(Name) })
const SignInBody = strict({ email: Text, password: Text, rememberMe: Type.Optional(Type.Boolean()) })
const PasswordChange = strict({
  currentPassword: Text,
  newPassword: Text,
  // The others are always ended; who says so is not refused.
  revokeOtherSessions: Type.Optional(Type.Literal(true)),
})
const Nothing = strict({})
const PasskeyId = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9_-]+$' })
/** As a browser makes it. What it means is checked by who knows; here only that nothing of it can upset the store. */
const WebAuthn = Type.Object(
  {
    id: Type.String({ maxLength: 2048, pattern: '^[A-Za-z0-9_=+/-]+$' }),
    response: Type.Object(
      {
        transports: Type.Optional(Type.Array(Type.String({ maxLength: 32, pattern: '^[A-Za-z0-9-]+$' }), { maxItems: 16 })),
      },
      { additionalProperties: true },
    ),
  },
  { additionalProperties: true },
)

/** Where a secret can be guessed at, and what better-auth calls it when it was. */
const GUESSES = ['/sign-in/email', '/change-password', '/passkey/verify-authentication']
const WRONG = ['INVALID_EMAIL_OR_PASSWORD', 'INVALID_PASSWORD', 'PASSKEY_NOT_FOUND', 'AUTHENTICATION_FAILED']
const SENTENCES: Record<string, string> = {
  USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL: 'Somebody with this e-mail address is here already. Sign in instead.',
  FAILED_TO_CREATE_USER: 'Somebody with this e-mail address is here already. Sign in instead.',
  PASSWORD_TOO_SHORT: 'A password has at least 8 characters.',
  PASSWORD_TOO_LONG: 'A password has at most 128 characters.',
  CHALLENGE_NOT_FOUND: 'This took too long. Begin again.',
  YOU_ARE_NOT_ALLOWED_TO_REGISTER_THIS_PASSKEY: 'Somebody else began this. Begin again.',
  FAILED_TO_VERIFY_REGISTRATION: 'This passkey could not be verified.',
  CREDENTIAL_ACCOUNT_NOT_FOUND: 'There is no password yet.',
}

/**
 * Signing up, in and out. The routes of better-auth that are not named here do not exist, and what they take is checked here first:
 * nothing of it is an error of ours.
 */
export function signInRoutes(parts: RouteParts) {
  const { signIn, limits, config } = parts
  const sessionNeeded = { onRequest: requirePerson(parts) }
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireSameOrigin(config))
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('cache-control', 'no-store')
    })
    app.addHook('preValidation', async (request) => {
      if (request.body === undefined && request.method !== 'GET') request.body = {}
    })
    app.addHook('onRoute', (route) => {
      route.schema = { hide: true, querystring: strict({}), ...route.schema }
    })

    const call = async (request: FastifyRequest, reply: FastifyReply, call: AuthCall, atOnce = false): Promise<unknown> => {
      let answer: AuthAnswer
      try {
        answer = await (atOnce ? signIn.callAtOnce(clientOf(request), call) : signIn.call(clientOf(request), call))
      } catch (error) {
        if (!(error instanceof AuthRefusal)) throw error
        if (GUESSES.includes(call.path) && WRONG.includes(error.code)) await limits.failures(request)
        throw problemOf(call.path, error) ?? error
      }
      if (answer.cookies.length > 0) reply.header('set-cookie', answer.cookies)
      return answer.body
    }
    const post = (request: FastifyRequest, path: string): AuthCall => ({ method: 'POST', path, body: request.body })
    const get = (request: FastifyRequest, path: string): AuthCall => ({
      method: 'GET',
      path,
      query: request.query as Record<string, string>,
    })

    app.post<{ Body: { email: string; password: string; name?: string } }>(
      '/sign-up/email',
      { schema: { body: SignUp } },
      async (request, reply) => {
        if (config.registration !== 'open')
          throw new Problem('unauthorized', 'Nobody can sign up here without an invitation. Ask the operator for one.')
        const email = emailOf(request.body.email)
        const password = passwordOf(request.body.password)
        await limits.strangers(request)
        const body = { email, password, name: request.body.name ?? nameOf(email) }
        return userView(await call(request, reply, { method: 'POST', path: '/sign-up/email', body }))
      },
    )
    app.post('/sign-in/email', { schema: { body: SignInBody } }, async (request, reply) =>
      userView(await call(request, reply, post(request, '/sign-in/email'))),
    )
    app.post('/sign-out', { schema: { body: Nothing } }, async (request, reply) =>
      call(request, reply, post(request, '/sign-out')),
    )
    app.post('/change-password', { ...sessionNeeded, schema: { body: PasswordChange } }, async (request, reply) => {
      const body = { ...(request.body as object), revokeOtherSessions: true }
      return userView(await call(request, reply, { method: 'POST', path: '/change-password', body }, true))
    })
    app.post('/update-user', { ...sessionNeeded, schema: { body: strict({ name: Name }) } }, async (request, reply) =>
      call(request, reply, post(request, '/update-user')),
    )
    app.get('/get-session', async (request, reply) => {
      const found = await signIn.whoIs(clientOf(request))
      if (!found) return reply.type('application/json; charset=utf-8').send('null')
      if (found.cookies.length > 0) reply.header('set-cookie', found.cookies)
      const { userId: id, email, name, sessionId } = found.person
      return { user: { id, email, name }, session: { id: sessionId } }
    })

    app.get('/list-sessions', sessionNeeded, async ({ person }) => ({
      sessions: (await signIn.sessions(person)).map((session) => ({ ...session, isCurrent: session.id === person.sessionId })),
    }))
    app.post('/revoke-other-sessions', { ...sessionNeeded, schema: { body: Nothing } }, async ({ person }) => {
      await signIn.endSessions(person, 'others')
      return { status: true }
    })
    app.post('/revoke-sessions', { ...sessionNeeded, schema: { body: Nothing } }, async (request, reply) => {
      await signIn.endSessions(request.person, 'all')
      // For the cookie; the session is gone already.
      await call(request, reply, { method: 'POST', path: '/sign-out' })
      return { status: true }
    })

    const attachment = Type.Optional(Type.Enum(['platform', 'cross-platform']))
    app.get(
      '/passkey/generate-register-options',
      { ...sessionNeeded, schema: { querystring: strict({ authenticatorAttachment: attachment, name: Type.Optional(Name) }) } },
      async (request, reply) => call(request, reply, get(request, '/passkey/generate-register-options')),
    )
    app.post(
      '/passkey/verify-registration',
      { ...sessionNeeded, schema: { body: strict({ response: WebAuthn, name: Type.Optional(Name) }) } },
      async (request, reply) => passkeyView(await call(request, reply, post(request, '/passkey/verify-registration'))),
    )
    app.get('/passkey/generate-authenticate-options', async (request, reply) => {
      await limits.strangers(request)
      return call(request, reply, get(request, '/passkey/generate-authenticate-options'))
    })
    app.post('/passkey/verify-authentication', { schema: { body: strict({ response: WebAuthn }) } }, async (request, reply) =>
      userView(await call(request, reply, post(request, '/passkey/verify-authentication'))),
    )
    app.get('/passkey/list-user-passkeys', sessionNeeded, async (request, reply) => {
      const passkeys = (await call(request, reply, get(request, '/passkey/list-user-passkeys'))) as unknown[]
      return { passkeys: passkeys.map(passkeyView) }
    })
    app.post(
      '/passkey/update-passkey',
      { ...sessionNeeded, schema: { body: strict({ id: PasskeyId, name: Name }) } },
      async (request, reply) => {
        const { passkey } = (await call(request, reply, post(request, '/passkey/update-passkey'))) as { passkey: unknown }
        return passkeyView(passkey)
      },
    )
    app.post(
      '/passkey/delete-passkey',
      { ...sessionNeeded, schema: { body: strict({ id: PasskeyId }) } },
      async (request, reply) => call(request, reply, post(request, '/passkey/delete-passkey')),
    )
  }
}

/** Of what better-auth answers, what a page may know: the token of the session is for the cookie alone. */
function userView(body: unknown): { user: { id: string; email: string; name: string } } {
  const { id, email, name } = (body as { user: { id: string; email: string; name: string } }).user
  return { user: { id, email, name } }
}

type Passkey = { id: string; name?: string | null; deviceType: string; backedUp: boolean; createdAt: string }
function passkeyView(body: unknown) {
  const { id, name, deviceType, backedUp, createdAt } = body as Passkey
  return { id, name: name ?? null, deviceType, backedUp, createdAt: Math.floor(Date.parse(createdAt) / 1000) }
}

/** Undefined: not the caller's fault. */
function problemOf(path: string, { status, code, message }: AuthRefusal): Problem | undefined {
  if (code === 'INVALID_EMAIL_OR_PASSWORD') return new Problem('unauthorized', 'Wrong e-mail address or password.')
  // 400: the session is good, only this word is not.
  if (code === 'INVALID_PASSWORD') return new Problem('bad_request', 'The current password is another one.')
  if (path === '/passkey/verify-authentication' && WRONG.includes(code))
    return new Problem('unauthorized', 'This passkey does not open anything here.')
  // Somebody else's and none at all: one answer. Who asks is signed in, or would not have come this far.
  if (/^\/passkey\/(delete|update)-passkey$/.test(path) && [401, 403, 404].includes(status))
    return new Problem('not_found', 'There is no such passkey.')
  if (code === 'SESSION_NOT_FRESH')
    return new Problem('unauthorized', 'You signed in more than a day ago. Sign in again for this.')
  if (SENTENCES[code]) return new Problem('bad_request', SENTENCES[code])
  if (status === 401) return signedOut()
  return status < 500 ? new Problem('bad_request', message || 'The request is not valid.') : undefined
}
