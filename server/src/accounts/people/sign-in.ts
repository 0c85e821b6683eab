import { AsyncLocalStorage } from 'node:async_hooks'
import type { Config } from '../../config.ts'
import { newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import { derivedKey, type MasterKey } from '../../platform/secrets.ts'
import { Problem } from '../../problems.ts'
import type { Database } from '../../store/db.ts'
import { endSessions, listSessions, type SessionRow } from '../../store/people/people.ts'
import { Transactions } from '../../store/transactions.ts'
import { createAccount, RESERVED_NAMES } from '../accounts.ts'
import { type AuthLibrary, LONGEST_PASSWORD, type NewPerson, openAuthLibrary, SHORTEST_PASSWORD } from './auth-library.ts'
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
  readonly transactions: Transactions
  readonly guard: SignInGuard
  readonly devices: DeviceCookie
  readonly #queue = new HashQueue({ maxRunning: MAX_HASHES_AT_ONCE, maxWaiting: MAX_WAITING_HASHES })
  readonly #config: Config
  readonly #sql: Database
  readonly #secret: string
  readonly #logger: Logger
  /** Who makes the call that runs, and what the store or the queue refused during it. */
  readonly #calls = new AsyncLocalStorage<{ client: Client; fault?: unknown }>()
  #library: Promise<AuthLibrary> | undefined

  constructor({ config, sql, master, logger }: { config: Config; sql: Database; master: MasterKey; logger: Logger }) {
    this.#config = config
    this.#sql = sql
    this.#secret = derivedKey(master, 'sign-in').toString('base64')
    this.#logger = logger
    this.transactions = new Transactions(sql)
    this.guard = new SignInGuard({ sql, master })
    this.devices = new DeviceCookie({ master, publicUrl: config.publicUrl })
  }

  /** Soon after the start, so that the first person does not wait for it. */
  load(): Promise<AuthLibrary> {
    this.#library ??= openAuthLibrary({
      publicUrl: this.#config.publicUrl,
      secret: this.#secret,
      transactions: this.transactions,
      logger: this.#logger,
      noteFault: (error) => {
        const call = this.#calls.getStore()
        // Class 23, a constraint, is the store doing its work: of two who take one address, it refuses one.
        if (call && !(error as { code?: string }).code?.startsWith('23')) call.fault ??= error
      },
      queued: (work) => this.#queued(work),
      newPerson: (person) => this.#newPerson(person),
    })
    this.#library.catch(() => {
      this.#library = undefined
    })
    return this.#library
  }

  /** Who it is, and the cookies that prolong the session; undefined: nobody. */
  async whoIs(client: Client): Promise<{ person: Person; cookies: string[] } | undefined> {
    // Most requests that come without a session come without a cookie: no library is needed to refuse them.
    if (!client.cookie) return undefined
    const { api } = await this.load()
    const { headers, response } = await this.#call(client, () =>
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
    const { handler, basePath } = await this.load()
    const url = new URL(basePath + path, new URL(this.#config.publicUrl).origin)
    url.search = new URLSearchParams(query).toString()
    const headers = headersOf(client)
    if (method === 'POST') headers.set('content-type', 'application/json')
    const request = new Request(url, { method, headers, ...(method === 'POST' ? { body: JSON.stringify(body ?? {}) } : {}) })
    const response = await this.#call(client, () => handler(request))
    const answer = JSON.parse((await response.text()) || 'null')
    if (!response.ok) throw new AuthRefusal(response.status, answer ?? {})
    return { body: answer, cookies: response.headers.getSetCookie() }
  }

  /** As `call`, but all of it or nothing: a password that is changed while the other sessions live on would protect nobody. */
  callAtOnce(client: Client, call: AuthCall): Promise<AuthAnswer> {
    return this.transactions.run(() => this.call(client, call))
  }

  sessions(person: Person): Promise<SessionRow[]> {
    return listSessions(this.#sql, person.userId)
  }

  endSessions(person: Person, which: 'all' | 'others'): Promise<void> {
    return endSessions(this.#sql, person.userId, which === 'others' ? person.sessionId : undefined)
  }

  async hash(client: Client, password: string): Promise<string> {
    const { hash } = await this.load()
    return this.#call(client, () => hash(password))
  }

  /** Without an account of theirs yet, one is made for them. */
  async makePerson(person: { email: string; name: string | undefined; accountId: string | undefined; passwordHash: string }) {
    const { people } = await this.load()
    const { email, accountId, passwordHash: password } = person
    return this.transactions.run(async () => {
      const name = person.name ?? nameOf(email)
      const row = { email, name, emailVerified: false, ...(accountId ? { accountId } : {}) }
      const { id } = await people.createUser(row, { method: 'email-password' })
      await people.linkAccount({ userId: id, providerId: 'credential', accountId: id, password })
      return { id, email, name }
    })
  }

  /** Whoever else was signed in is not any more. */
  async replacePassword(personId: string, passwordHash: string): Promise<void> {
    const { people } = await this.load()
    await this.transactions.run(async () => {
      await people.updatePassword(personId, passwordHash)
      await people.deleteUserSessions(personId)
    })
  }

  /** A session for who has shown a link; its cookies. */
  async start(client: Client, personId: string, method: 'sign-up' | 'link'): Promise<string[]> {
    const { api } = await this.load()
    const call = { body: { personId, method }, headers: headersOf(client), returnHeaders: true as const }
    const { headers } = await this.#call(client, () => api.startSession(call))
    return headers.getSetCookie()
  }

  /** An account is made with its person, in the transaction that makes the person: neither can be left without the other. */
  async #newPerson({ email, accountId, isSelfRegistered }: NewPerson): Promise<{ id: string; accountId: string }> {
    const id = newId('person')
    if (accountId !== undefined) return { id, accountId }
    const account = { name: accountNameOf(email), creditSat: this.#config.signupCreditSat, actor: id, isSelfRegistered }
    return { id, accountId: (await createAccount(await this.transactions.writer(), account)).id }
  }

  #queued<T>(work: () => Promise<T>): Promise<T> {
    const call = this.#calls.getStore()
    const caller = { isKnown: call?.client.isKnown ?? false, signal: call?.client.signal }
    return this.#queue.run(caller, work).catch((error: unknown) => {
      if (call) call.fault ??= error
      throw error
    })
  }

  /** better-auth takes a store that is down for "nobody is signed in", or for a fault of the caller: what the store said comes first. */
  async #call<T>(client: Client, work: () => Promise<T>): Promise<T> {
    const call: { client: Client; fault?: unknown } = { client }
    try {
      return await this.#calls.run(call, work)
    } finally {
      // biome-ignore lint/correctness/noUnsafeFinally: this is the point
      if (call.fault !== undefined) throw call.fault
    }
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
