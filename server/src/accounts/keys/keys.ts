import { isId, newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import { noSuchAccount, Problem } from '../../problems.ts'
import type { Database } from '../../store/db.ts'
import {
  changeKey,
  findUsableKey,
  insertKey,
  KEYS_CHANGED,
  type KeyRow,
  type KeyView,
  listKeys,
  recordUse,
  type Scope,
} from '../../store/keys.ts'
import { isWellFormedKey, keyHash, newKey } from './key-format.ts'

export type { Scope }
/** The presented key: its account and its scopes. */
export type Caller = KeyRow

export const SCOPES: Scope[] = ['nodes:read', 'nodes:write', 'gateway:write', 'events:read', 'webhooks:write']

const CACHE_MS = 5_000
const CACHE_SIZE = 10_000
const RECORD_USE_MS = 10_000

/**
 * Authenticates API keys, and caches the results for at most 5 s. A key revoked by another replica stops working within that time, even if
 * the notification is lost.
 */
export class Keys {
  readonly #sql: Database
  readonly #cache = new Map<string, { key: KeyRow; until: number }>()
  /** Incremented by every change: a row read before a change must not be cached after it. */
  #generation = 0
  readonly #uses = new Map<string, Date>()
  readonly #recorder: NodeJS.Timeout
  readonly #unlisten: () => void

  constructor(sql: Database, log: Logger) {
    this.#sql = sql
    const record = (): Promise<void> =>
      this.#recordUses().catch((error: unknown) => log.warn({ err: error }, 'cannot record when API keys were last used'))
    this.#recorder = setInterval(record, RECORD_USE_MS)
    this.#recorder.unref()
    // Notifications only make a change take effect sooner: cache entries expire on their own.
    this.#unlisten = sql.listen(KEYS_CHANGED, { onNotify: () => this.#forget(), onStart: () => this.#forget() })
  }

  async authenticate(text: string): Promise<Caller | undefined> {
    if (!isWellFormedKey(text)) return undefined
    const hash = keyHash(text)
    const name = hash.toString('latin1')
    const now = performance.now()
    const cached = this.#cache.get(name)
    const generation = this.#generation
    const key = cached && cached.until > now ? cached.key : await findUsableKey(this.#sql, hash)
    if (!key) {
      this.#cache.delete(name)
      return undefined
    }
    if (key !== cached?.key && generation === this.#generation) {
      if (this.#cache.size >= CACHE_SIZE) this.#cache.clear()
      this.#cache.set(name, { key, until: now + CACHE_MS })
    }
    this.#uses.set(key.id, new Date())
    return key
  }

  async create(
    accountId: string,
    name: string,
    wanted: Scope[],
    maxKeys: number,
    actor: string,
  ): Promise<{ id: string; name: string; scopes: Scope[]; key: string }> {
    const scopes = SCOPES.filter((scope) => scope === 'nodes:read' || wanted.includes(scope))
    if (!isId('acct', accountId)) throw noSuchAccount()
    const key = newKey()
    const id = newId('key')
    const result = await insertKey(
      this.#sql,
      { id, accountId, name, prefix: key.slice(0, 8), hash: keyHash(key), scopes, actor },
      maxKeys,
    )
    if (result === 'no such account') throw noSuchAccount()
    if (result === 'limit reached')
      throw new Problem('limit_reached', `An account can have at most ${maxKeys} keys. Revoke one first.`)
    return { id, name, scopes, key }
  }

  list(accountId: string): Promise<KeyView[]> {
    return listKeys(this.#sql, accountId)
  }

  async change(accountId: string, keyId: string, change: { disabled: boolean } | 'revoke', actor: string): Promise<KeyView> {
    const isKey = isId('acct', accountId) && isId('key', keyId)
    const key = isKey ? await changeKey(this.#sql, { accountId, keyId, actor }, change) : undefined
    this.#forget()
    if (!key) throw new Problem('not_found', 'There is no such key.')
    return key
  }

  /** After keys were revoked together with their account. Other processes are notified by the store. */
  forgetCached(): void {
    this.#forget()
  }

  #forget(): void {
    this.#generation++
    this.#cache.clear()
  }

  /** Written in batches: a request never waits for its own use to be recorded. */
  async #recordUses(): Promise<void> {
    if (this.#uses.size === 0) return
    const uses = new Map(this.#uses)
    this.#uses.clear()
    await recordUse(this.#sql, uses)
  }

  async close(): Promise<void> {
    clearInterval(this.#recorder)
    await this.#recordUses()
    this.#unlisten()
  }
}
