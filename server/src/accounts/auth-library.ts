import type { FastifyBaseLogger } from 'fastify'
import type { Transactions } from '../store/transactions.ts'
import { gateOf } from './gate.ts'
import { peopleAdapter } from './people-adapter.ts'

export type AuthLibrary = Awaited<ReturnType<typeof openAuthLibrary>>

const BASE_PATH = '/dashboard/api/auth'
export const SHORTEST_PASSWORD = 8
export const LONGEST_PASSWORD = 128
const SESSION_SECONDS = 7 * 24 * 3600
/** How often a session that is used is prolonged. */
const ROLL_SECONDS = 24 * 3600
/** Half of the threads that Node has for it: a crowd at the door must not keep files and names from being looked up. */
const MAX_HASHES_AT_ONCE = 2

/** How a session began; what the activity log calls a sign-in depends on it. */
const METHODS: Record<string, string> = {
  '/sign-up/email': 'sign-up',
  '/sign-in/email': 'password',
  '/passkey/verify-authentication': 'passkey',
  '/change-password': 'password change',
}

type Setup = {
  publicUrl: string
  secret: string
  transactions: Transactions
  logger: FastifyBaseLogger
  noteFault: (error: unknown) => void
  newPerson: (email: string, accountId: string | undefined) => Promise<{ id: string; accountId: string }>
}

export async function openAuthLibrary({ publicUrl, secret, transactions, logger, noteFault, newPerson }: Setup) {
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
  const times = { createdAt: 'created_at', updatedAt: 'updated_at' }
  const gate = gateOf(MAX_HASHES_AT_ONCE)

  /** For who has shown a link instead of a password. No route leads here. */
  const startBody = { $Infer: { body: {} as { personId: string; method: 'sign-up' | 'link' } } }
  const startSession = createAuthEndpoint.serverOnly({ method: 'POST', metadata: startBody }, async (ctx) => {
    const { personId, method } = ctx.body
    const user = await ctx.context.internalAdapter.findUserById(personId)
    if (!user) throw new Error('a person vanished')
    const session = await ctx.context.internalAdapter.createSession(personId, false, { method })
    await setSessionCookie(ctx, { session, user })
    return ctx.json({ personId })
  })

  const auth = betterAuth({
    appName: 'Boltyard',
    baseURL: origin,
    basePath: BASE_PATH,
    // Both: without the list, the library would take one from the environment over ours.
    secret,
    secrets: [{ version: 1, value: secret }],
    database: peopleAdapter(database, transactions, noteFault),
    telemetry: { enabled: false },
    // C44 counts failures for all ways in, and for all replicas.
    rateLimit: { enabled: false },
    logger: {
      // Below it the library names e-mail addresses.
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
        hash: (password) => gate(() => hashPassword(password)),
        verify: (data) => gate(() => verifyPassword(data)),
      },
    },
    databaseHooks: {
      user: {
        create: {
          before: async (user) => ({ data: await newPerson(user.email, (user as { accountId?: string }).accountId) }),
        },
      },
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
        // A browser takes no IP address for one: at http://127.0.0.1 there are no passkeys, at http://localhost there are.
        rpID: hostname,
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
      cookiePrefix: 'boltyard',
      useSecureCookies: protocol === 'https:',
      defaultCookieAttributes: { httpOnly: true, sameSite: 'lax', secure: protocol === 'https:', path: '/' },
      // http/session.ts asks for more: exactly our own origin, on everything that changes something.
      disableCSRFCheck: true,
      disableOriginCheck: true,
      ipAddress: { ipAddressHeaders: ['x-client-address'] },
    },
  })
  const context = await auth.$context
  return {
    handler: auth.handler,
    api: auth.api,
    people: context.internalAdapter,
    hash: context.password.hash,
    basePath: BASE_PATH,
  }
}
