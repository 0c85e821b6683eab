import { isId, newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import { noSuchAccount, Problem } from '../../problems.ts'
import type { Database } from '../../store/db.ts'
import {
  changeKey,
  findKey,
  findUsableKey,
  insertKey,
  KEYS_CHANGED,
  type KeyChange,
  type KeyRow,
  type KeyView,
  listKeys,
  recordUse,
  revokeKey,
  rotateKey,
  type Scope,
} from '../../store/keys.ts'
import { isWellFormedKey, keyHash, newKey } from './key-format.ts'

export type { Scope }
/** The presented key: its account, its scopes, and how long it is valid. */
export type Caller = KeyRow

export const SCOPES: Scope[] = ['nodes:read', 'nodes:write', 'gateway:write', 'events:read', 'webhooks:write']

const CACHE_MS = 5_000
const CACHE_SIZE = 10_000
const RECORD_USE_MS = 10_000

export type CreateKeyParams = { name: string; scopes: Scope[]; expiresAt?: number }
type Call = { accountId: string; actor: string }

/**
 * Authenticates API keys, and caches the results for at most 5 s. A key revoked by another replica stops working within that
 * time, even if the notification is lost. A result is never cached past the expiry of the key or of its secret, so an expiry
 * takes effect at once everywhere.
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
    if (cached && cached.until > now) {
      this.#uses.set(cached.key.id, new Date())
      return cached.key
    }
    const found = await findUsableKey(this.#sql, hash)
    if (!found) {
      this.#cache.delete(name)
      return undefined
    }
    const { key, validMs } = found
    if (generation === this.#generation) {
      if (this.#cache.size >= CACHE_SIZE) this.#cache.clear()
      // Counted from before the query. The database computed `validMs` later, so the cache entry ends before the key does.
      this.#cache.set(name, { key, until: now + Math.min(CACHE_MS, validMs ?? CACHE_MS) })
    }
    this.#uses.set(key.id, new Date())
    return key
  }

  async create(
    { accountId, actor }: Call,
    { name, scopes: wanted, expiresAt }: CreateKeyParams,
    maxKeys: number,
  ): Promise<{ id: string; name: string; scopes: Scope[]; expiresAt: number | null; key: string }> {
    const scopes = withRead(wanted)
    if (!isId('acct', accountId)) throw noSuchAccount()
    const key = newKey()
    const row = { id: newId('key'), name: name.trim(), scopes, expiresAt: expiresAt ?? null }
    const result = await insertKey(this.#sql, { ...row, accountId, actor, ...stored(key) }, maxKeys)
    if (result === 'no such account') throw noSuchAccount()
    if (result === 'limit reached')
      throw new Problem('limit_reached', `An account can have at most ${maxKeys} keys. Revoke one first.`)
    if (result === 'already expired') throw alreadyExpired()
    return { ...row, key }
  }

  list(accountId: string): Promise<KeyView[]> {
    return listKeys(this.#sql, accountId)
  }

  async change(call: Call, keyId: string, { name, scopes, ...change }: KeyChange): Promise<KeyView> {
    await this.#require(call, keyId)
    const edit = { ...(name === undefined ? {} : { name: name.trim() }), ...(scopes ? { scopes: withRead(scopes) } : {}) }
    const key = await changeKey(this.#sql, { ...call, keyId }, { ...change, ...edit })
    this.#forget()
    if (key) return key
    await this.#require(call, keyId)
    throw alreadyExpired()
  }

  /** The previous secret keeps working until the overlap ends. */
  async rotate(
    call: Call,
    keyId: string,
    { overlapSeconds = 0, endOverlap = false }: { overlapSeconds?: number; endOverlap?: boolean },
  ): Promise<KeyView & { key: string }> {
    await this.#require(call, keyId)
    const key = newKey()
    const rotated = await rotateKey(this.#sql, { ...call, keyId }, { ...stored(key), overlapSeconds, endOverlap })
    this.#forget()
    if (rotated) return { ...rotated, key }
    const { isExpired, previousSecretUntil } = await this.#require(call, keyId)
    if (!isExpired && previousSecretUntil !== null)
      throw new Problem(
        'bad_request',
        'The key was rotated before, and its earlier secret still works. Another rotation would stop that secret at once. If programs may still use it, create another key instead; otherwise repeat the request with "endOverlap": true.',
        { details: { reason: 'overlap_running', previousSecretUntil } },
      )
    throw new Problem('bad_request', 'The key has expired. Set a later expiry first, or create another key.')
  }

  async revoke(call: Call, keyId: string): Promise<void> {
    await this.#require(call, keyId)
    const isRevoked = await revokeKey(this.#sql, { ...call, keyId })
    this.#forget()
    if (!isRevoked) throw noSuchKey()
  }

  async #require({ accountId }: Call, keyId: string): Promise<KeyView> {
    const isKey = isId('acct', accountId) && isId('key', keyId)
    const key = isKey ? await findKey(this.#sql, accountId, keyId) : undefined
    if (!key) throw noSuchKey()
    return key
  }

  /** Call this after keys were revoked together with their account. The store notifies other processes. */
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

/** In the order of SCOPES, always with `nodes:read`: every key has that scope. */
const withRead = (wanted: Scope[]): Scope[] => SCOPES.filter((scope) => scope === 'nodes:read' || wanted.includes(scope))

const stored = (key: string): { prefix: string; hash: Buffer } => ({ prefix: key.slice(0, 8), hash: keyHash(key) })

const noSuchKey = (): Problem => new Problem('not_found', 'There is no such key.')

const alreadyExpired = (): Problem => new Problem('bad_request', 'expiresAt must be in the future.')
