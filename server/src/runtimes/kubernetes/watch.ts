import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../platform/log.ts'
import type { KubernetesClient } from './client.ts'
import type { Resource, Stored } from './types.ts'

export type ListWatchOptions<T extends Resource> = {
  client: KubernetesClient
  path: string
  labelSelector: string
  /** Copies the parts of an item that are needed. Applied to each page of a list, so that the whole items are never all in memory. */
  pick?: (item: Stored<T>) => Stored<T>
  /** Receives all existing items, at the start and after every interruption. */
  replace: (items: Stored<T>[]) => void
  changed: (item: Stored<T>) => void
  deleted: (item: Stored<T>) => void
  log: Logger
  /** The API server sends a bookmark about every minute, so a longer silence means a dead connection. */
  silenceMs?: number
  firstPauseMs?: number
}

const SILENCE_MS = 90_000
const FIRST_PAUSE_MS = 1_000
const SHORTEST_WATCH_MS = 100
const LONGEST_PAUSE_MS = 30_000
/** Random, so that the watches of many replicas do not end at the same time. */
const watchSeconds = (): number => 240 + Math.floor(Math.random() * 60)

/**
 * Lists once, then follows changes. After any failure (an expired resourceVersion, a reset, silence, an event that cannot be parsed) it
 * lists again, so a lost event is missed only until then. Our own loop, because the informer of the official client stops for good after a
 * reset and never notices silence.
 */
export class ListWatch<T extends Resource> {
  readonly #options: ListWatchOptions<T>
  readonly #end = new AbortController()
  readonly #running: Promise<void>
  #heardAtMs = Number.NEGATIVE_INFINITY
  #failures = 0
  #isFollowing = false

  constructor(options: ListWatchOptions<T>) {
    this.#options = options
    this.#running = this.#run()
  }

  /** How long ago the API server last sent anything; Infinity before the first list. */
  get staleMs(): number {
    return performance.now() - this.#heardAtMs
  }

  /** Whether changes arrive as they happen: false before the first list, and from an interruption to the next list. */
  get isFollowing(): boolean {
    return this.#isFollowing
  }

  async close(): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#end
    while (!signal.aborted) {
      try {
        await this.#listAndFollow()
      } catch (error) {
        this.#isFollowing = false
        if (signal.aborted) return
        this.#failures++
        this.#options.log.warn(
          { err: error, path: this.#options.path, failures: this.#failures },
          'watch interrupted; will list again',
        )
        await pause(this.#pauseMs(), undefined, { signal }).catch(() => undefined)
      }
    }
  }

  #pauseMs(): number {
    const { firstPauseMs = FIRST_PAUSE_MS } = this.#options
    return Math.min(firstPauseMs * 2 ** (this.#failures - 1), LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2)
  }

  async #listAndFollow(): Promise<void> {
    const { client, path, labelSelector, pick, replace } = this.#options
    const { items, resourceVersion } = await client.list<T>(path, { labelSelector }, pick)
    this.#heardAtMs = performance.now()
    replace(items)
    this.#isFollowing = true
    for (let version = resourceVersion; !this.#end.signal.aborted; ) {
      const startedAtMs = performance.now()
      version = await this.#follow(version)
      // Something between us and the API server, such as a proxy, may end each watch at once. Without this check, we would start
      // new ones in a tight loop.
      if (performance.now() - startedAtMs < SHORTEST_WATCH_MS) throw new Error('the watch ended at once')
    }
  }

  /** Ends normally when the API server ends the watch; the next one continues from the returned version. */
  async #follow(resourceVersion: string): Promise<string> {
    const { client, path, labelSelector, pick = whole, changed, deleted, silenceMs = SILENCE_MS } = this.#options
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(new Error('the API server went silent')), silenceMs)
    const heard = (): void => {
      this.#heardAtMs = performance.now()
      timer.refresh()
    }
    const query = { labelSelector, resourceVersion, timeoutSeconds: String(watchSeconds()) }
    const signal = AbortSignal.any([this.#end.signal, silence.signal])
    let version = resourceVersion
    try {
      for await (const { type, object } of client.watch<T>(path, query, signal, heard)) {
        this.#failures = 0
        version = object.metadata.resourceVersion
        if (type === 'ADDED' || type === 'MODIFIED') changed(pick(object))
        else if (type === 'DELETED') deleted(pick(object))
      }
    } catch (error) {
      throw silence.signal.aborted ? silence.signal.reason : error
    } finally {
      clearTimeout(timer)
    }
    return version
  }
}

const whole = <T>(item: T): T => item
