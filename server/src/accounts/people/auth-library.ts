import type { Logger } from '../../platform/log.ts'
import { isLoopback } from '../../platform/loopback.ts'
import type { Database, Sql } from '../../store/db.ts'
import { peopleAdapter } from './adapter.ts'
import type { Verdict } from './two-factor.ts'

export type AuthLibrary = Awaited<ReturnType<typeof loadAuthLibrary>>
export type AuthInstance = Awaited<ReturnType<AuthLibrary['open']>>

const BASE_PATH = '/dashboard/api/auth'
export const SHORTEST_PASSWORD = 10
export const LONGEST_PASSWORD = 128
const SESSION_SECONDS = 7 * 24 * 3600
/** How often an active session is extended. */
const ROLL_SECONDS = 24 * 3600

/** How a session began; determines how the activity log describes the sign-in. */
const METHODS: Record<string, string> = {
  '/sign-in/email': 'password',
  '/passkey/verify-authentication': 'passkey',
}

/** Error codes for a missing or wrong second factor. */
const REFUSALS: Record<Exclude<Verdict, 'passed'>, string> = {
  'code required': 'CODE_REQUIRED',
  'wrong code': 'WRONG_CODE',
  'unverified passkey': 'UNVERIFIED_PASSKEY',
}

export type SessionMethod = 'sign-up' | 'link' | 'password change'

type Setup = { publicUrl: string; secret: string; logger: Logger }

type CallDeps = {
  /** All reads and writes of the call go through this: the pool, or a transaction that the library must not end. */
  sql: Sql | Database
  noteFault: (error: unknown) => void
  /** Every password hash goes through this queue. */
  queued: <T>(work: () => Promise<T>) => Promise<T>
  /** Called before a session begins, after a correct password or a passkey that did not verify its user. */
  secondFactor: (personId: string, isPasskey: boolean) => Promise<Verdict>
}

export async function loadAuthLibrary({ publicUrl, secret, logger }: Setup) {
  const [
    { betterAuth },
    { passkey },
    { createAuthEndpoint, APIError },
    { setSessionCookie },
    { hashPassword, verifyPassword },
    database,
  ] = await Promise.all([
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

  /** For callers who have just signed up, or proven who they are with a link or the current password. No route leads here. */
  const startBody = { $Infer: { body: {} as { personId: string; method: SessionMethod } } }
  const startSession = createAuthEndpoint.serverOnly({ method: 'POST', metadata: startBody }, async (ctx) => {
    const { personId, method } = ctx.body
    const user = await ctx.context.internalAdapter.findUserById(personId)
    if (!user) throw new Error('the person no longer exists')
    const session = await ctx.context.internalAdapter.createSession(personId, false, { method })
    await setSessionCookie(ctx, { session, user })
    return ctx.json({ personId })
  })

  const instance = ({ sql, noteFault, queued, secondFactor }: CallDeps) =>
    betterAuth({
      appName: 'Boltyard',
      baseURL: origin,
      basePath: BASE_PATH,
      // Both are set: without `secrets`, the library would prefer a list from the environment.
      secret,
      secrets: [{ version: 1, value: secret }],
      database: peopleAdapter(database, sql, noteFault),
      telemetry: { enabled: false },
      // sign-in-guard.ts enforces C44 before the library is called.
      rateLimit: { enabled: false },
      logger: {
        // At lower levels, the library logs email addresses.
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
        additionalFields: {
          method: { type: 'string', required: false, input: false },
          lastSeenAt: { type: 'date', fieldName: 'last_seen_at', required: false, input: false },
        },
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
            before: async (session, context) => {
              const { method: given } = session as { method?: string }
              const method = given ?? METHODS[context?.path ?? ''] ?? 'other'
              // A given `method` means that `startSession` was called, after other proofs. Every session that a route of the
              // library creates passes this check.
              if (given === undefined && !(method === 'passkey' && isUserVerified(context?.body))) {
                const verdict = await secondFactor(session.userId, method === 'passkey')
                if (verdict !== 'passed') throw new APIError('UNAUTHORIZED', { code: REFUSALS[verdict], message: verdict })
              }
              return { data: { method } }
            },
          },
        },
      },
      plugins: [
        passkey({
          // Browsers do not accept an IP address here. On the developer's own machine, the dashboard is also available at localhost.
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
        // __Host-: browsers accept such a cookie only from this exact host, so a sibling domain cannot plant a session. The library only
        // supports __Secure-, so its prefix is disabled and the attribute is set here.
        cookiePrefix: isHttps ? '__Host-boltyard' : 'boltyard',
        useSecureCookies: false,
        defaultCookieAttributes: { httpOnly: true, sameSite: 'lax', secure: isHttps, path: '/' },
        // http/hooks/session.ts is stricter: every request that changes something must come from our own origin.
        disableCSRFCheck: true,
        disableOriginCheck: true,
        ipAddress: { ipAddressHeaders: ['x-client-address'] },
      },
    })
  return {
    basePath: BASE_PATH,
    hash: hashPassword,
    verify: verifyPassword,
    /** One instance per call: it costs about a millisecond, and no state can leak from one call into another. */
    open: async (deps: CallDeps) => {
      const auth = instance(deps)
      const { internalAdapter } = await auth.$context
      return { handler: auth.handler, api: auth.api, people: internalAdapter }
    },
  }
}

/**
 * Whether the authenticator checked a PIN, a finger or a face, and not only that someone touched it (WebAuthn, section 6.1: flag UV). By
 * now the library has verified the signature over these bytes.
 */
export function isUserVerified(body: unknown): boolean {
  const { authenticatorData } = (body as { response?: { response?: { authenticatorData?: string } } })?.response?.response ?? {}
  return ((Buffer.from(authenticatorData ?? '', 'base64url')[32] ?? 0) & 4) !== 0
}
