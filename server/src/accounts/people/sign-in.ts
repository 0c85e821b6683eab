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

export type Person = { userId: string; email: string; name: string; accountId: string; sessionId: string }
/** Where a request came from, as far as signing in is concerned. Nothing else of it reaches the library. */
export type Client = {
  address: string
  cookie: string | undefined
  userAgent: string | undefined
  origin: string | undefined
  /** Aborted when the connection is closed. */
  signal?: AbortSignal | undefined
  /** Not a stranger: has a session, a link, or signed in from this browser before. */
  isKnown?: boolean
}
export type AuthCall = { method: 'GET' | 'POST'; path: string; query?: Record<string, string>; body?: unknown }
export type AuthAnswer = { body: unknown; cookies: string[] }
export type Entered = { user: PersonRow; cookies: string[] }
export type NewPerson = {
  email: string
  name: string | undefined
  passwordHash: string
  /** Undefined: one is made for them. */
  accountId: string | undefined
  isSelfRegistered: boolean
}

/** What better-auth refuses, by its own name for it. */
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
/** Half of the threads that Node has for it: a crowd at the door must not keep files and names from being looked up. */
const MAX_HASHES_AT_ONCE = 2
/** About a second's worth of them. */
const MAX_WAITING_HASHES = 20

/**
 * People, their sessions and passkeys: better-auth, over our store. It is loaded when somebody first needs it: it takes most of a second
 * and 45 MB, which a service that is only called by programs need not spend.
 *
 * Cookies are signed under the master key, so a new master key signs everybody out. That is all it does: passwords do not depend on it.
 */
export class SignIn {
  readonly guard: SignInGuard
  readonly devices: DeviceCookie
  readonly #queue = new HashQueue({ maxRunning: MAX_HASHES_AT_ONCE, maxWaiting: MAX_WAITING_HASHES })
  readonly #config: Config
  readonly #sql: Database
  readonly #secret: string
  readonly #logger: Logger
  #library: Promise<AuthLibrary> | undefined

  constructor({ config, sql, master, logger }: { config: Config; sql: Database; master: MasterKey; logger: Logger }) {
    this.#config = config
    this.#sql = sql
    this.#secret = derivedKey(master, 'sign-in').toString('base64')
    this.#logger = logger
    this.guard = new SignInGuard({ sql, master })
    this.devices = new DeviceCookie({ master, publicUrl: config.publicUrl })
  }

  /** For somebody who is about to need it: loading takes most of a second. */
  loadAhead(): void {
    this.load().catch((error: unknown) => this.#logger.warn({ err: error }, 'cannot load sign-in ahead of its first use'))
  }

  load(): Promise<AuthLibrary> {
    this.#library ??= loadAuthLibrary({ publicUrl: this.#config.publicUrl, secret: this.#secret, logger: this.#logger })
    this.#library.catch(() => {
      this.#library = undefined
    })
    return this.#library
  }

  /** Who it is, and the cookies that prolong the session; undefined: nobody. */
  async whoIs(client: Client): Promise<{ person: Person; cookies: string[] } | undefined> {
    // Most requests that come without a session come without a cookie: no library is needed to refuse them.
    if (!client.cookie) return undefined
    const { headers, response } = await this.#call(this.#sql, client, ({ api }) =>
      api.getSession({ headers: headersOf(client), returnHeaders: true, query: {} }),
    )
    if (!response) return undefined
    const { user, session } = response
    const { id: userId, email, name } = user
    // The column is never empty; only the library's types cannot know.
    const accountId = user.accountId ?? ''
    return { person: { userId, email, name, accountId, sessionId: session.id }, cookies: headers.getSetCookie() }
  }

  /** One of better-auth's own routes; AuthRefusal when it says no. */
  async call(client: Client, { method, path, query, body }: AuthCall): Promise<AuthAnswer> {
    const { basePath } = await this.load()
    const url = new URL(basePath + path, new URL(this.#config.publicUrl).origin)
    url.search = new URLSearchParams(query).toString()
    const headers = headersOf(client)
    if (method === 'POST') headers.set('content-type', 'application/json')
    const request = new Request(url, { method, headers, ...(method === 'POST' ? { body: JSON.stringify(body ?? {}) } : {}) })
    const response = await this.#call(this.#sql, client, ({ handler }) => handler(request))
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

  /** What is done with the transaction is done together or not at all. */
  async transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
    // Before a connection is taken: the first time it takes most of a second.
    await this.load()
    return this.#sql.begin(work)
  }

  /** An address that is taken is refused before a password is hashed for it, and the constraint decides between two who come at once. */
  async signUp(
    client: Client,
    { email, password, name }: { email: string; password: string; name: string | undefined },
  ): Promise<Entered> {
    if ((await findAccountOf(this.#sql, email)) !== undefined) throw emailTaken()
    const passwordHash = await this.hash(client, password)
    const person = { email, name, passwordHash, accountId: undefined, isSelfRegistered: true }
    return this.transaction((tx) => this.enterAs(tx, client, person))
  }

  /** A new person, signed in. An account without a person, or a person without an account, would be of no use to anybody. */
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

  /** All of it or nothing: a password that is changed while the other sessions live on would protect nobody. */
  async changePassword(
    client: Client,
    { userId, email, name }: Person,
    { currentPassword, newPassword }: { currentPassword: string; newPassword: string },
  ): Promise<Entered> {
    const { verify } = await this.load()
    const identity = await this.#call(this.#sql, client, ({ people }) => people.findCredentialAccount(userId))
    const hash = identity?.password
    if (!hash) throw new AuthRefusal(400, { code: 'CREDENTIAL_ACCOUNT_NOT_FOUND' })
    if (!(await this.#queued(client, () => verify({ hash, password: currentPassword }))))
      throw new AuthRefusal(400, { code: 'INVALID_PASSWORD' })
    const passwordHash = await this.hash(client, newPassword)
    const cookies = await this.transaction(async (tx) => {
      await this.replacePassword(tx, client, userId, passwordHash)
      return this.start(tx, client, userId, 'password change')
    })
    return { user: { id: userId, email, name }, cookies }
  }

  /** Whoever else was signed in is not any more. */
  async replacePassword(tx: Sql, client: Client, personId: string, passwordHash: string): Promise<void> {
    await this.#call(tx, client, async ({ people }) => {
      await people.updatePassword(personId, passwordHash)
      await people.deleteUserSessions(personId)
    })
  }

  /** A session for who has shown what it takes; its cookies. */
  async start(tx: Sql, client: Client, personId: string, method: SessionMethod): Promise<string[]> {
    const call = { body: { personId, method }, headers: headersOf(client), returnHeaders: true as const }
    const { headers } = await this.#call(tx, client, ({ api }) => api.startSession(call))
    return headers.getSetCookie()
  }

  async #makeAccount(tx: Sql, personId: string, { email, isSelfRegistered }: NewPerson): Promise<string> {
    const account = { name: accountNameOf(email), creditSat: this.#config.signupCreditSat, actor: personId, isSelfRegistered }
    return (await createAccount(tx, account)).id
  }

  #queued<T>({ isKnown = false, signal }: Client, work: () => Promise<T>): Promise<T> {
    return this.#queue.run({ isKnown, signal }, work)
  }

  /**
   * better-auth takes a store that is down, or a queue that is full, for "nobody is signed in" or for a fault of the caller. So what they
   * said comes first, whatever it made of it.
   */
  async #call<T>(sql: Sql | Database, client: Client, work: (library: AuthInstance) => Promise<T>): Promise<T> {
    const faults: unknown[] = []
    const { open } = await this.load()
    const library = await open({
      sql,
      noteFault: (error) => {
        // Class 23, a constraint, is the store doing its work: of two who take one address, it refuses one.
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

/** As better-auth has it, at every way in: who came in with an address or a password that it refuses could never come in again. */
const EMAIL = /^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}$/

export function emailOf(text: string): string {
  if (text.length > 254 || !EMAIL.test(text)) throw new Problem('bad_request', 'The email address is not valid.')
  return text.toLowerCase()
}

/** For a new password only: one that was chosen under older rules still signs in. */
export function newPasswordOf(text: string): string {
  if (text.length < SHORTEST_PASSWORD || text.length > LONGEST_PASSWORD)
    throw new Problem('bad_request', `A password must have ${SHORTEST_PASSWORD} to ${LONGEST_PASSWORD} characters.`)
  if (isCommonPassword(text)) throw new Problem('bad_request', 'This password is too common and easy to guess. Choose another.')
  return text
}

export const nameOf = (email: string): string => (email.split('@')[0] ?? '').slice(0, LONGEST_NAME)

/** Whoever owns default@evil.example must not have an account that looks like the first one, or like the treasury. */
const accountNameOf = (email: string): string => {
  const name = nameOf(email)
  return RESERVED_NAMES.includes(name.toLowerCase()) ? email.slice(0, LONGEST_NAME) : name
}

/** Only what is named here: a header that a client invents must not become a trusted proxy's word about its address. */
function headersOf({ address, cookie, userAgent, origin }: Client): Headers {
  const headers = new Headers({ 'x-client-address': address })
  if (cookie !== undefined) headers.set('cookie', cookie)
  if (userAgent !== undefined) headers.set('user-agent', userAgent.slice(0, LONGEST_USER_AGENT))
  if (origin !== undefined) headers.set('origin', origin)
  return headers
}
