import { Redis } from 'ioredis'
import type { Logger } from '../platform/log.ts'
import { type Hits, MemoryHits } from './memory-hits.ts'

/** Every counted request waits for Redis, so a command must time out long before a client would notice that Redis hangs. */
const COMMAND_TIMEOUT_MS = 250
const CONNECT_TIMEOUT_MS = 1_000
const LONGEST_RETRY_MS = 1_000
const PREFIX = 'boltyard:limit:'

/** A script, because a process that dies between two commands would leave a count that never expires. */
const COUNT = `
  local hits = redis.call('INCR', KEYS[1])
  if hits == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
  return { hits, redis.call('PTTL', KEYS[1]) }`

type Client = Redis & { countHit(key: string, windowMs: number): Promise<[hits: number, remainingMs: number]> }

/**
 * Counts the hits of all processes together. While Redis is unreachable, this process continues on its own from the last shared count: a
 * limit must neither cause an outage nor disappear during one.
 */
export class RedisHits {
  readonly #client: Client
  readonly #log: Logger
  readonly #own = new MemoryHits()
  #isAway = false

  constructor(url: string, log: Logger) {
    this.#log = log
    this.#client = new Redis(url, {
      scripts: { countHit: { lua: COUNT, numberOfKeys: 1 } },
      commandTimeout: COMMAND_TIMEOUT_MS,
      connectTimeout: CONNECT_TIMEOUT_MS,
      retryStrategy: (attempt) => Math.min(100 * attempt, LONGEST_RETRY_MS),
      // A hit that cannot be counted in Redis now is counted in memory. If it were also sent later, it would count twice.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
    }) as Client
    this.#client.on('error', (error: unknown) => this.#noteAway(error))
    this.#client.on('close', () => this.#noteAway(new Error('closed')))
    this.#client.on('ready', () => this.#noteBack())
  }

  get isUp(): boolean {
    return this.#client.status === 'ready'
  }

  /** Never rejects. */
  async count(key: string, windowMs: number): Promise<Hits> {
    const own = this.#own.count(key, windowMs)
    if (!this.isUp) return own
    try {
      const [hits, remainingMs] = await this.#client.countHit(`${PREFIX}${key}`, windowMs)
      const shared = { hits, remainingMs }
      this.#own.set(key, shared)
      return shared
    } catch (error) {
      this.#noteAway(error)
      // Until the connection is ready again, hits are counted in memory at once, instead of each waiting for a timeout first.
      if (this.isUp) this.#client.disconnect(true)
      return own
    }
  }

  close(): void {
    this.#client.removeAllListeners('close')
    this.#client.disconnect()
  }

  /** Logs once per outage, and only the kind of error: an error message from Redis may repeat what was sent. */
  #noteAway(error: unknown): void {
    if (this.#isAway) return
    this.#isAway = true
    const { code, message = '' } = error as { code?: string; message?: string }
    this.#log.warn({ why: code ?? message.split(' ')[0] }, 'cannot reach Redis; rate limits are counted by each process')
  }

  #noteBack(): void {
    if (this.#isAway) this.#log.info('Redis is back; rate limits are shared again')
    this.#isAway = false
  }
}
