import type { Config } from '../../config.ts'
import { newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import { derivedKey, type MasterKey } from '../../platform/secrets.ts'
import { emailTaken, Problem } from '../../problems.ts'
import type { Database, Sql } from '../../store/db.ts'
import {
  endSessions,
  findAccountOf,
  isOpenSession,
  listSessions,
  type PersonRow,
  type SessionRow,
} from '../../store/people/people.ts'
import { noteSession } from '../../store/people/settings.ts'
import { createAccount, RESERVED_NAMES } from '../accounts.ts'
import {
  type AuthInstance,
  type AuthLibrary,
  LONGEST_PASSWORD,
  loadAuthLibrary,
  type SessionMethod,
  SHORTEST_PASSWORD,
} from './auth-library.ts'
import { isCommonPassword } from './common-passwords.ts'
import { DeviceCookie } from './device-cookie.ts'
import { HashQueue } from './hash-queue.ts'
import { SignInGuard } from './sign-in-guard.ts'
import type { TwoFactor } from './two-factor.ts'

export type Person = { userId: string; email: string; name: string; accountId: string; sessionId: string }
/** The parts of a request that matter for signing in. Nothing else reaches the library. */
export type Client = {
  address: string
  cookie: string | undefined
  userAgent: string | undefined
  origin: string | undefined
  /** Aborted when the client disconnects. */
  signal?: AbortSignal | undefined
  /** Has a session or a link, or signed in from this browser before. */
  isKnown?: boolean
}
export type AuthCall = {
  method: 'GET' | 'POST'
  path: string
  query?: Record<string, string>
  body?: unknown
  /** The code of the second factor. It never reaches the library. */
  code?: string | undefined
}
export type AuthAnswer = { body: unknown; cookies: string[] }
export type Entered = { user: PersonRow; cookies: string[] }
export type NewPerson = {
  email: string
  name: string | undefined
  passwordHash: string
  /** Undefined: a new account is created. */
  accountId: string | undefined
  isSelfRegistered: boolean
}

/** A refusal by better-auth, with its error code. */
export class AuthRefusal extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, { code, message }: { code?: string; message?: string }) {
    super(message ?? '')
    this.status = status
    this.code = code ?? ''
  }
}

const LONGEST_NAME = 100
const LONGEST_USER_AGENT = 500
const SEEN_EVERY_SECONDS = 300
/** Half of the Node.js thread pool: a burst of sign-ins must not block file access and name resolution. */
const MAX_HASHES_AT_ONCE = 2
/** About one second of work. */
const MAX_WAITING_HASHES = 20

type SignInOptions = { config: Config; sql: Database; master: MasterKey; twoFactor: TwoFactor; logger: Logger }

/**
 * People, their sessions and passkeys: better-auth on our store. It is loaded on first use, because loading takes most of a second and 45
 * MB, which a service that is only called by programs does not need.
 *
 * Cookies are signed with a key derived from the master key, so a new master key signs everyone out. Passwords do not depend on it.
 */
export class SignIn {
  readonly guard: SignInGuard
  readonly devices: DeviceCookie
  readonly #queue = new HashQueue({ maxRunning: MAX_HASHES_AT_ONCE, maxWaiting: MAX_WAITING_HASHES })
  readonly #config: Config
  readonly #sql: Database
  readonly #secret: string
  readonly #logger: Logger
  readonly #twoFactor: TwoFactor
  #library: Promise<AuthLibrary> | undefined

  constructor({ config, sql, master, twoFactor, logger }: SignInOptions) {
    this.#config = config
    this.#sql = sql
    this.#secret = derivedKey(master, 'sign-in').toString('base64')
    this.#logger = logger
    this.#twoFactor = twoFactor
    this.guard = new SignInGuard({ sql, master })
    this.devices = new DeviceCookie({ master, publicUrl: config.publicUrl })
  }

  /** For a client that is about to sign in: loading the library takes most of a second. */
  loadAhead(): void {
    this.load().catch((error: unknown) => this.#logger.warn({ err: error }, 'cannot preload the sign-in library'))
  }

  load(): Promise<AuthLibrary> {
    this.#library ??= loadAuthLibrary({ publicUrl: this.#config.publicUrl, secret: this.#secret, logger: this.#logger })
    this.#library.catch(() => {
      this.#library = undefined
    })
    return this.#library
  }

  /** The signed-in person, with cookies that extend the session; undefined if not signed in. */
  async whoIs(client: Client): Promise<{ person: Person; cookies: string[] } | undefined> {
    // Most requests without a session have no cookie, so they can be refused without loading the library.
    if (!client.cookie) return undefined
    const { headers, response } = await this.#call(this.#sql, client, ({ api }) =>
      api.getSession({ headers: headersOf(client), returnHeaders: true, query: {} }),
    )
    if (!response) return undefined
    const { user, session } = response
    const { id: userId, email, name } = user
    // The column is NOT NULL, but the library's types do not reflect that.
    const accountId = user.accountId ?? ''
    await this.#note(session, client)
    return { person: { userId, email, name, accountId, sessionId: session.id }, cookies: headers.getSetCookie() }
  }

  /** Calls one of better-auth's own routes; throws AuthRefusal if it refuses. */
  async call(client: Client, { method, path, query, body, code }: AuthCall): Promise<AuthAnswer> {
    const { basePath } = await this.load()
    const url = new URL(basePath + path, new URL(this.#config.publicUrl).origin)
    url.search = new URLSearchParams(query).toString()
    const headers = headersOf(client)
    if (method === 'POST') headers.set('content-type', 'application/json')
    const request = new Request(url, { method, headers, ...(method === 'POST' ? { body: JSON.stringify(body ?? {}) } : {}) })
    const response = await this.#call(this.#sql, client, ({ handler }) => handler(request), code)
    const answer = JSON.parse((await response.text()) || 'null')
    if (!response.ok) throw new AuthRefusal(response.status, answer ?? {})
    return { body: answer, cookies: response.headers.getSetCookie() }
  }

  sessions(person: Person): Promise<SessionRow[]> {
    return listSessions(this.#sql, person.userId)
  }

  isSessionOpen({ sessionId }: Person): Promise<boolean> {
    return isOpenSession(this.#sql, sessionId)
  }

  endSessions(person: Person, which: 'all' | 'others'): Promise<void> {
    return endSessions(this.#sql, person.userId, which === 'others' ? person.sessionId : undefined)
  }

  async hash(client: Client, password: string): Promise<string> {
    const { hash } = await this.load()
    return this.#queued(client, () => hash(password))
  }

  async transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
    // Load before taking a connection: the first time takes most of a second.
    await this.load()
    return this.#sql.begin(work)
  }

  /**
   * Rejects a taken address before hashing a password. Of two concurrent sign-ups with the same address, the unique constraint rejects one.
   */
  async signUp(
    client: Client,
    { email, password, name }: { email: string; password: string; name: string | undefined },
  ): Promise<Entered> {
    if ((await findAccountOf(this.#sql, email)) !== undefined) throw emailTaken()
    const passwordHash = await this.hash(client, password)
    const person = { email, name, passwordHash, accountId: undefined, isSelfRegistered: true }
    return this.transaction((tx) => this.enterAs(tx, client, person))
  }

  /** Creates a person and signs them in. An account without a person, or a person without an account, would be unusable. */
  async enterAs(tx: Sql, client: Client, person: NewPerson): Promise<Entered> {
    const { email, passwordHash: password } = person
    const [id, name] = [newId('person'), person.name ?? nameOf(email)]
    const accountId = person.accountId ?? (await this.#makeAccount(tx, id, person))
    try {
      await this.#call(tx, client, async ({ people }) => {
        await people.createUser({ id, email, name, emailVerified: false, accountId }, { method: 'email-password' })
        await people.linkAccount({ userId: id, providerId: 'credential', accountId: id, password })
      })
    } catch (error) {
      throw (error as { constraint?: string }).constraint === 'people_email' ? emailTaken() : error
    }
    return { user: { id, email, name }, cookies: await this.start(tx, client, id, 'sign-up') }
  }

  /** Costs a hash: call it only for an attempt that `guard` has admitted. */
  async isPasswordOf(client: Client, personId: string, password: string): Promise<boolean> {
    const { verify } = await this.load()
    const identity = await this.#call(this.#sql, client, ({ people }) => people.findCredentialAccount(personId))
    const hash = identity?.password
    if (!hash) throw new AuthRefusal(400, { code: 'CREDENTIAL_ACCOUNT_NOT_FOUND' })
    return this.#queued(client, () => verify({ hash, password }))
  }

  /** All or nothing: a new password is useless if the other sessions stay open. */
  async changePassword(
    client: Client,
    { userId, email, name }: Person,
    { currentPassword, newPassword }: { currentPassword: string; newPassword: string },
  ): Promise<Entered> {
    if (!(await this.isPasswordOf(client, userId, currentPassword))) throw new AuthRefusal(400, { code: 'INVALID_PASSWORD' })
    const passwordHash = await this.hash(client, newPassword)
    const cookies = await this.transaction(async (tx) => {
      await this.replacePassword(tx, client, userId, passwordHash)
      return this.start(tx, client, userId, 'password change')
    })
    return { user: { id: userId, email, name }, cookies }
  }

  /** Also ends all sessions of the person. */
  async replacePassword(tx: Sql, client: Client, personId: string, passwordHash: string): Promise<void> {
    await this.#call(tx, client, async ({ people }) => {
      await people.updatePassword(personId, passwordHash)
      await people.deleteUserSessions(personId)
    })
  }

  /** Starts a session for a caller that has already proven who they are. Returns its cookies. */
  async start(tx: Sql, client: Client, personId: string, method: SessionMethod): Promise<string[]> {
    const call = { body: { personId, method }, headers: headersOf(client), returnHeaders: true as const }
    const { headers } = await this.#call(tx, client, ({ api }) => api.startSession(call))
    return headers.getSetCookie()
  }

  /** A failure is only logged: it must not fail the request. */
  async #note({ id, lastSeenAt }: { id: string; lastSeenAt?: Date | null | undefined }, { address }: Client): Promise<void> {
    if (lastSeenAt && Date.now() - lastSeenAt.getTime() < SEEN_EVERY_SECONDS * 1000) return
    await noteSession(this.#sql, id, address, SEEN_EVERY_SECONDS).catch((error: unknown) =>
      this.#logger.warn({ err: error }, 'cannot note when a session was last used'),
    )
  }

  async #makeAccount(tx: Sql, personId: string, { email, isSelfRegistered }: NewPerson): Promise<string> {
    const account = { name: accountNameOf(email), creditSat: this.#config.signupCreditSat, actor: personId, isSelfRegistered }
    return (await createAccount(tx, account)).id
  }

  #queued<T>({ isKnown = false, signal }: Client, work: () => Promise<T>): Promise<T> {
    return this.#queue.run({ isKnown, signal }, work)
  }

  /**
   * better-auth reports an unavailable store or a full queue as "not signed in" or as a client error. So an error that we noted takes
   * precedence over its result.
   */
  async #call<T>(sql: Sql | Database, client: Client, work: (library: AuthInstance) => Promise<T>, code?: string): Promise<T> {
    const faults: unknown[] = []
    const { open } = await this.load()
    const library = await open({
      sql,
      secondFactor: (personId, isPasskey) =>
        this.#twoFactor.judge(personId, { code, isPasskey }).catch((error: unknown) => {
          faults.push(error)
          throw error
        }),
      noteFault: (error) => {
        // Class 23 (constraint violation) is not a fault: it is how one of two people who take the same address is refused.
        if (!(error as { code?: string }).code?.startsWith('23')) faults.push(error)
      },
      queued: (hashing) =>
        this.#queued(client, hashing).catch((error: unknown) => {
          faults.push(error)
          throw error
        }),
    })
    const [outcome] = await Promise.allSettled([work(library)])
    if (faults.length > 0) throw faults[0]
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }
}

/**
 * The same rules as better-auth's, for every way to sign up: with an address or password that it rejects, a person could never sign in
 * again.
 */
const EMAIL = /^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}$/

export function emailOf(text: string): string {
  if (text.length > 254 || !EMAIL.test(text)) throw new Problem('bad_request', 'The email address is not valid.')
  return text.toLowerCase()
}

/** For new passwords only: an existing password stays valid when the rules become stricter. */
export function newPasswordOf(text: string): string {
  if (text.length < SHORTEST_PASSWORD || text.length > LONGEST_PASSWORD)
    throw new Problem('bad_request', `A password must have ${SHORTEST_PASSWORD} to ${LONGEST_PASSWORD} characters.`)
  if (isCommonPassword(text)) throw new Problem('bad_request', 'This password is too common and easy to guess. Choose another.')
  return text
}

export const nameOf = (email: string): string => (email.split('@')[0] ?? '').slice(0, LONGEST_NAME)

/** The owner of default@evil.example must not get an account that looks like the first one or the treasury. */
const accountNameOf = (email: string): string => {
  const name = nameOf(email)
  return RESERVED_NAMES.includes(name.toLowerCase()) ? email.slice(0, LONGEST_NAME) : name
}

/** An allow-list: a client must not be able to forge the headers with which a trusted proxy reports the client's address. */
function headersOf({ address, cookie, userAgent, origin }: Client): Headers {
  const headers = new Headers({ 'x-client-address': address })
  if (cookie !== undefined) headers.set('cookie', cookie)
  if (userAgent !== undefined) headers.set('user-agent', userAgent.slice(0, LONGEST_USER_AGENT))
  if (origin !== undefined) headers.set('origin', origin)
  return headers
}
