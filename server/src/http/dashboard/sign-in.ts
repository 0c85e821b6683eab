import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { WRONG_CODE } from '../../accounts/people/settings.ts'
import {
  type AuthAnswer,
  type AuthCall,
  AuthRefusal,
  type Client,
  type Entered,
  emailOf,
  newPasswordOf,
} from '../../accounts/people/sign-in.ts'
import type { Attempt } from '../../accounts/people/sign-in-guard.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { addressOf } from '../hooks/rate-limit.ts'
import { clientOf, isOnThisMachine, requirePerson, requireSameOrigin, signedOut } from '../hooks/session.ts'
import { Name, strict, Text } from '../schemas.ts'

const SignUp = strict({ email: Text, password: Text, name: Type.Optional(Name) })
const SignInBody = strict({
  email: Text,
  password: Text,
  rememberMe: Type.Optional(Type.Boolean()),
  code: Type.Optional(Text),
})
const PasswordChange = strict({
  currentPassword: Text,
  newPassword: Text,
  // Has no effect, because the other sessions always end. It is accepted because clients may send it.
  revokeOtherSessions: Type.Optional(Type.Literal(true)),
})
const Nothing = strict({})
const PasskeyId = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9_-]+$' })
const proof = { password: Type.Optional(Text), code: Type.Optional(Text) }
const NewPasskey = strict({
  authenticatorAttachment: Type.Optional(Type.Enum(['platform', 'cross-platform'])),
  name: Type.Optional(Name),
  ...proof,
})
const OldPasskey = strict({ id: PasskeyId, ...proof })
/** A passkey response as the browser creates it. better-auth verifies it; here we only make sure that the store can handle it. */
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

/** better-auth's codes for an invalid passkey. */
const WRONG_PASSKEY = ['PASSKEY_NOT_FOUND', 'AUTHENTICATION_FAILED']
const SENTENCES: Record<string, string> = {
  CHALLENGE_NOT_FOUND: 'This took too long. Start again.',
  YOU_ARE_NOT_ALLOWED_TO_REGISTER_THIS_PASSKEY: 'A different person started this registration. Start again.',
  FAILED_TO_VERIFY_REGISTRATION: 'This passkey could not be verified. Try again.',
  CREDENTIAL_ACCOUNT_NOT_FOUND: 'This account has no password. Use a passkey instead.',
}

/**
 * Signing up, in and out. Only the better-auth routes listed here exist, and their input is checked here first, so that invalid input never
 * becomes an internal error.
 */
export function signInRoutes(deps: RouteDeps) {
  const { signIn, settings, limits, config } = deps
  const sessionNeeded = { onRequest: requirePerson(deps) }
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireSameOrigin(config))
    app.addHook('preValidation', async (request) => {
      if (request.body === undefined && request.method !== 'GET') request.body = {}
    })
    app.addHook('onRoute', (route) => {
      route.schema = { querystring: strict({}), ...route.schema }
    })

    const send = async (request: FastifyRequest, client: Client, call: AuthCall): Promise<AuthAnswer> => {
      try {
        return await signIn.call(client, call)
      } catch (error) {
        if (error instanceof AuthRefusal && WRONG_PASSKEY.includes(error.code)) await limits.failures(request)
        throw asProblem(call.path, error)
      }
    }
    const call = async (request: FastifyRequest, reply: FastifyReply, call: AuthCall): Promise<unknown> => {
      const { body, cookies } = await send(request, clientOf(request, reply), call)
      if (cookies.length > 0) reply.header('set-cookie', cookies)
      return body
    }
    /** A session has begun, so this browser is known from now on. */
    const welcome = (reply: FastifyReply, client: Client, { user, cookies }: Entered): UserView => {
      reply.header('set-cookie', [...cookies, signIn.devices.headerFor(client.cookie, user.email)])
      return { user }
    }
    const enter = async (request: FastifyRequest, reply: FastifyReply, client: Client, call: AuthCall): Promise<UserView> => {
      const { body, cookies } = await send(request, client, call)
      return welcome(reply, client, { ...userView(body), cookies })
    }
    /** C44: an attempt is counted before the password or code is checked, and stays counted only if that is wrong. */
    const guess = async <T>(
      request: FastifyRequest,
      attempt: Attempt,
      work: () => Promise<T>,
      Wrong: typeof WrongPassword | typeof WrongCode = WrongPassword,
    ): Promise<T> => {
      let result: T
      try {
        result = await work()
      } catch (error) {
        if (!(error instanceof Wrong))
          await attempt
            .takeBack()
            .catch((err: unknown) =>
              request.log.warn({ err }, 'cannot take back a counted password attempt that was not checked'),
            )
        throw error
      }
      await attempt.succeeded()
      return result
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
          throw new Problem('unauthorized', 'You need an invitation to sign up. Ask the operator for one.')
        const email = emailOf(request.body.email)
        const password = newPasswordOf(request.body.password)
        await limits.strangers(request)
        if (!isOnThisMachine(config, request)) await signIn.guard.admitSignUp(addressOf(request))
        const client = clientOf(request, reply)
        return welcome(reply, client, await signIn.signUp(client, { email, password, name: request.body.name }))
      },
    )
    app.post<{ Body: Static<typeof SignInBody> }>('/sign-in/email', { schema: { body: SignInBody } }, async (request, reply) => {
      const email = emailOf(request.body.email)
      const client = clientOf(request, reply)
      const device = signIn.devices.deviceOf(client.cookie, email)
      const by =
        device === undefined
          ? { target: `email ${email}`, source: `address ${addressOf(request)}` }
          : // Limited by email: every sign-in makes a browser known, so someone with the password could add browsers to get more tries.
            { target: `device ${device} ${email}`, source: `known ${email}` }
      const { code, ...given } = request.body
      const known = { ...client, isKnown: device !== undefined }
      const call: AuthCall = { method: 'POST', path: '/sign-in/email', body: { ...given, email }, code }
      const withPassword = async (): Promise<UserView> =>
        guess(request, await signIn.guard.admit(by), () => enter(request, reply, known, call))
      if (code === undefined) return withPassword()
      // Codes have their own count, which is also checked before a password is hashed. A wrong password does not add to it. All
      // known browsers share one count: someone who knew the password may have made many browsers known, and there are only a
      // million codes.
      const target = device === undefined ? by.target : by.source
      const codeAttempt = await signIn.guard.admit({ target: `code ${target}`, source: `code ${by.source}` })
      return guess(request, codeAttempt, withPassword, WrongCode)
    })
    app.post('/sign-out', { schema: { body: Nothing } }, async (request, reply) =>
      call(request, reply, post(request, '/sign-out')),
    )
    app.post<{ Body: Static<typeof PasswordChange> }>(
      '/change-password',
      { ...sessionNeeded, schema: { body: PasswordChange } },
      async (request, reply) => {
        newPasswordOf(request.body.newPassword)
        const client = { ...clientOf(request, reply), isKnown: true }
        // Not counted by email: otherwise strangers could keep the owner from changing the password.
        const who = `person ${request.person.userId}`
        const attempt = await signIn.guard.admit({ target: who, source: who })
        return guess(request, attempt, async () => {
          try {
            return welcome(reply, client, await signIn.changePassword(client, request.person, request.body))
          } catch (error) {
            throw asProblem('/change-password', error)
          }
        })
      },
    )
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
      // Only to clear the cookie; the session is already gone.
      await call(request, reply, { method: 'POST', path: '/sign-out' })
      return { status: true }
    })

    // C88: a registration needs a challenge, which only this route issues. So no passkey is registered without this confirmation.
    app.post<{ Body: Static<typeof NewPasskey> }>(
      '/passkey/generate-register-options',
      { ...sessionNeeded, schema: { body: NewPasskey } },
      async (request, reply) => {
        const { password, code, ...query } = request.body
        const path = '/passkey/generate-register-options'
        await confirmed(path, settings.confirmPasskeyChange(clientOf(request, reply), request.person, { password, code }))
        return call(request, reply, { method: 'GET', path, query })
      },
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
      enter(request, reply, clientOf(request, reply), post(request, '/passkey/verify-authentication')),
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
    app.post<{ Body: Static<typeof OldPasskey> }>(
      '/passkey/delete-passkey',
      { ...sessionNeeded, schema: { body: OldPasskey } },
      async (request, reply) => {
        const { id, ...proof } = request.body
        const client = clientOf(request, reply)
        await confirmed('/passkey/delete-passkey', settings.removePasskey(client, request.person, id, proof))
        return { status: true }
      },
    )
  }
}

type UserView = Pick<Entered, 'user'>

/** The part of better-auth's response that a page may see. The session token is only for the cookie. */
function userView(body: unknown): UserView {
  const { id, email, name } = (body as UserView).user
  return { user: { id, email, name } }
}

type Passkey = { id: string; name?: string | null; deviceType: string; backedUp: boolean; createdAt: string }
function passkeyView(body: unknown) {
  const { id, name, deviceType, backedUp, createdAt } = body as Passkey
  return { id, name: name ?? null, deviceType, backedUp, createdAt: Math.floor(Date.parse(createdAt) / 1000) }
}

/** A separate class, because only this error counts as a failed attempt (C44). */
class WrongPassword extends Problem {}
/** Likewise, for codes of the second factor. */
class WrongCode extends Problem {}

/** Maps the library's refusals, such as that of an account without a password. */
const confirmed = async (path: string, work: Promise<void>): Promise<void> =>
  work.catch((error: unknown) => {
    throw asProblem(path, error)
  })

const asProblem = (path: string, error: unknown): unknown =>
  error instanceof AuthRefusal ? (problemOf(path, error) ?? error) : error

/** Undefined: not the caller's fault. */
function problemOf(path: string, { status, code, message }: AuthRefusal): Problem | undefined {
  if (code === 'INVALID_EMAIL_OR_PASSWORD') return new WrongPassword('unauthorized', 'Wrong email address or password.')
  if (code === 'CODE_REQUIRED')
    return new Problem('unauthorized', 'Enter the code from your authenticator app.', { details: { reason: 'code_required' } })
  if (code === 'WRONG_CODE') return new WrongCode('unauthorized', WRONG_CODE, { details: { reason: 'wrong_code' } })
  if (code === 'UNVERIFIED_PASSKEY')
    return new Problem(
      'unauthorized',
      'This passkey did not check a PIN, fingerprint or face, and two-factor sign-in is on. Sign in with your password and a code.',
    )
  // 400, because the session is valid; only the password is wrong.
  if (code === 'INVALID_PASSWORD') return new WrongPassword('bad_request', 'The current password is incorrect.')
  if (path === '/passkey/verify-authentication' && WRONG_PASSKEY.includes(code))
    // The same answer for both codes, so that nobody learns which passkeys exist.
    return new Problem(
      'unauthorized',
      'This passkey was not accepted. It may have been removed from its account. Try another passkey, or sign in with your password.',
    )
  // The same answer for another person's passkey and an unknown one. The caller is known to be signed in at this point.
  if (/^\/passkey\/(delete|update)-passkey$/.test(path) && [401, 403, 404].includes(status))
    return new Problem('not_found', 'There is no such passkey.')
  if (code === 'SESSION_NOT_FRESH')
    return new Problem('unauthorized', 'You signed in more than a day ago. Sign in again to do this.')
  if (SENTENCES[code]) return new Problem('bad_request', SENTENCES[code])
  if (status === 401) return signedOut()
  return status < 500 ? new Problem('bad_request', message || 'The request is not valid.') : undefined
}
