import type { Logger } from '../../platform/log.ts'
import { isLoopback } from '../../platform/loopback.ts'
import type { Database, Sql } from '../../store/db.ts'
import { peopleAdapter } from './adapter.ts'

export type AuthLibrary = Awaited<ReturnType<typeof loadAuthLibrary>>
export type AuthInstance = Awaited<ReturnType<AuthLibrary['open']>>

const BASE_PATH = '/dashboard/api/auth'
export const SHORTEST_PASSWORD = 10
export const LONGEST_PASSWORD = 128
const SESSION_SECONDS = 7 * 24 * 3600
/** How often a session that is used is prolonged. */
const ROLL_SECONDS = 24 * 3600

/** How a session began; what the activity log calls a sign-in depends on it. */
const METHODS: Record<string, string> = {
  '/sign-in/email': 'password',
  '/passkey/verify-authentication': 'passkey',
}

export type SessionMethod = 'sign-up' | 'link' | 'password change'

type Setup = { publicUrl: string; secret: string; logger: Logger }

/** What one call of the library works with. */
type CallDeps = {
  /** Everything that the call reads and writes goes through here: the pool, or a transaction that is not the library's to end. */
  sql: Sql | Database
  noteFault: (error: unknown) => void
  /** Whatever hashes a password goes through here. */
  queued: <T>(work: () => Promise<T>) => Promise<T>
}

export async function loadAuthLibrary({ publicUrl, secret, logger }: Setup) {
  const [{ betterAuth }, { passkey }, { createAuthEndpoint }, { setSessionCookie }, { hashPassword, verifyPassword }, database] =
    await Promise.all([
      import('better-auth/minimal'),
      import('@better-auth/passkey'),
      import('better-auth/api'),
      import('better-auth/cookies'),
      import('better-auth/crypto'),
      import('@better-auth/core/db/adapter'),
    ])
  const { origin, hostname, protocol } = new URL(publicUrl)
  const isHttps = protocol === 'https:'
  const times = { createdAt: 'created_at', updatedAt: 'updated_at' }

  /** For who has shown what it takes: a link, or the password that is changed. No route leads here. */
  const startBody = { $Infer: { body: {} as { personId: string; method: SessionMethod } } }
  const startSession = createAuthEndpoint.serverOnly({ method: 'POST', metadata: startBody }, async (ctx) => {
    const { personId, method } = ctx.body
    const user = await ctx.context.internalAdapter.findUserById(personId)
    if (!user) throw new Error('a person vanished')
    const session = await ctx.context.internalAdapter.createSession(personId, false, { method })
    await setSessionCookie(ctx, { session, user })
    return ctx.json({ personId })
  })

  const instance = ({ sql, noteFault, queued }: CallDeps) =>
    betterAuth({
      appName: 'Boltyard',
      baseURL: origin,
      basePath: BASE_PATH,
      // Both: without the list, the library would take one from the environment over ours.
      secret,
      secrets: [{ version: 1, value: secret }],
      database: peopleAdapter(database, sql, noteFault),
      telemetry: { enabled: false },
      // C44 is kept by sign-in-guard.ts, before the library is asked.
      rateLimit: { enabled: false },
      logger: {
        // Below it the library names email addresses.
        level: 'error',
        log: (_level, message, ...rest) => {
          const err = rest.find((one) => one instanceof Error)
          logger.warn({ err }, `sign-in: ${message}`)
        },
      },
      onAPIError: { throw: true },
      user: {
        modelName: 'people',
        fields: { emailVerified: 'email_verified', ...times },
        additionalFields: { accountId: { type: 'string', fieldName: 'account_id', required: false, input: false } },
      },
      session: {
        modelName: 'people_sessions',
        fields: {
          userId: 'person_id',
          token: 'token_hash',
          expiresAt: 'expires_at',
          ipAddress: 'ip_address',
          userAgent: 'user_agent',
          ...times,
        },
        additionalFields: { method: { type: 'string', required: false, input: false } },
        expiresIn: SESSION_SECONDS,
        updateAge: ROLL_SECONDS,
      },
      account: {
        modelName: 'people_identities',
        fields: { userId: 'person_id', accountId: 'subject', providerId: 'provider', password: 'password_hash', ...times },
      },
      verification: {
        modelName: 'people_verifications',
        fields: { expiresAt: 'expires_at', ...times },
        storeIdentifier: 'hashed',
      },
      emailAndPassword: {
        enabled: true,
        minPasswordLength: SHORTEST_PASSWORD,
        maxPasswordLength: LONGEST_PASSWORD,
        password: {
          hash: (password) => queued(() => hashPassword(password)),
          verify: (data) => queued(() => verifyPassword(data)),
        },
      },
      databaseHooks: {
        session: {
          create: {
            before: async (session, context) => ({
              data: { method: (session as { method?: string }).method ?? METHODS[context?.path ?? ''] ?? 'other' },
            }),
          },
        },
      },
      plugins: [
        passkey({
          // A browser takes no IP address for one. On one's own machine the dashboard is at localhost too.
          rpID: isLoopback(hostname) ? 'localhost' : hostname,
          rpName: 'Boltyard',
          schema: {
            passkey: {
              modelName: 'people_passkeys',
              fields: {
                userId: 'person_id',
                publicKey: 'public_key',
                credentialID: 'credential_id',
                deviceType: 'device_type',
                backedUp: 'backed_up',
                createdAt: 'created_at',
              },
            },
          },
        }),
        { id: 'boltyard', endpoints: { startSession } },
      ],
      advanced: {
        // __Host-: a browser takes such a cookie from this very host only, so that a sibling name cannot plant a session of its own. The
        // library knows __Secure- alone, so its own prefix is off and the attribute is set by hand.
        cookiePrefix: isHttps ? '__Host-boltyard' : 'boltyard',
        useSecureCookies: false,
        defaultCookieAttributes: { httpOnly: true, sameSite: 'lax', secure: isHttps, path: '/' },
        // http/session.ts asks for more: exactly our own origin, on everything that changes something.
        disableCSRFCheck: true,
        disableOriginCheck: true,
        ipAddress: { ipAddressHeaders: ['x-client-address'] },
      },
    })
  return {
    basePath: BASE_PATH,
    hash: hashPassword,
    verify: verifyPassword,
    /**
     * An instance for one call. It costs about a millisecond; in return nothing of a call is in a place where another one could find it.
     */
    open: async (deps: CallDeps) => {
      const auth = instance(deps)
      const { internalAdapter } = await auth.$context
      return { handler: auth.handler, api: auth.api, people: internalAdapter }
    },
  }
}
