import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { derivedKey, type MasterKey } from '../../platform/secrets.ts'
import type { Sql } from '../../store/db.ts'
import { deleteOperatorSession, findOperatorSession, insertOperatorSession } from '../../store/operator/sessions.ts'

/** Not extended by use: a page that is left open must not keep a session alive. */
const LIFETIME_SECONDS = 2 * 3600
const VALUE = /^[A-Za-z0-9_-]{43}$/
const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

export type OperatorSessionsDeps = { sql: Sql; master: MasterKey; publicUrl: string; token: string }

/**
 * Sessions of the operator's pages, so that the browser never stores the operator token. The cookie contains 256 random bits. The
 * database stores their hash, and a keyed hash of the operator token: a new token ends all sessions.
 */
export class OperatorSessions {
  readonly #sql: Sql
  readonly #tokenHash: Buffer
  readonly #tokenMac: Buffer
  readonly #isHttps: boolean

  constructor({ sql, master, publicUrl, token }: OperatorSessionsDeps) {
    this.#sql = sql
    this.#tokenHash = sha256(token)
    this.#tokenMac = createHmac('sha256', derivedKey(master, 'operator sessions')).update(token).digest()
    this.#isHttps = new URL(publicUrl).protocol === 'https:'
  }

  /** In constant time: how long it takes does not depend on how much of the token is right. */
  isToken(given: string): boolean {
    return timingSafeEqual(sha256(given), this.#tokenHash)
  }

  async start(): Promise<{ expiresAt: number; cookie: string }> {
    const value = randomBytes(32).toString('base64url')
    const { expiresAt } = await insertOperatorSession(this.#sql, this.#session(value), LIFETIME_SECONDS)
    return { expiresAt, cookie: `${this.#name}=${value}; ${this.#attributes}` }
  }

  async find(cookies: string | undefined): Promise<{ expiresAt: number } | undefined> {
    const value = this.#valueIn(cookies)
    return value === undefined ? undefined : findOperatorSession(this.#sql, this.#session(value))
  }

  /** Returns the header that removes the cookie, and whether there was a session. */
  async end(cookies: string | undefined): Promise<{ cookie: string; hasEnded: boolean }> {
    const value = this.#valueIn(cookies)
    const hasEnded = value !== undefined && (await deleteOperatorSession(this.#sql, sha256(value)))
    return { cookie: `${this.#name}=; Max-Age=0; ${this.#attributes}`, hasEnded }
  }

  /** Whether the browser sends the cookie of a session, valid or not. */
  hasCookie(cookies: string | undefined): boolean {
    return this.#valueIn(cookies) !== undefined
  }

  #session(value: string): { cookieHash: Buffer; tokenMac: Buffer } {
    return { cookieHash: sha256(value), tokenMac: this.#tokenMac }
  }

  get #name(): string {
    return `${this.#isHttps ? '__Host-' : ''}boltyard.operator`
  }

  get #attributes(): string {
    return `Path=/; HttpOnly; SameSite=Strict${this.#isHttps ? '; Secure' : ''}`
  }

  #valueIn(cookies: string | undefined): string | undefined {
    for (const pair of cookies?.split(';') ?? []) {
      const [name, value = ''] = pair.trim().split('=')
      if (name === this.#name && VALUE.test(value)) return value
    }
    return undefined
  }
}
