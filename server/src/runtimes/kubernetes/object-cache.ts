import type { Logger } from '../../platform/log.ts'
import type { KubernetesClient } from './client.ts'
import { type Place, selectorOf } from './objects.ts'
import type { Resource, Stored } from './types.ts'
import { ListWatch } from './watch.ts'

export type CacheOptions = { client: KubernetesClient; place: Place; log: Logger; silenceMs?: number; firstPauseMs?: number }

export type ObjectCacheOptions<T extends Resource> = CacheOptions & {
  path: string
  /** Copies the parts that we read: the whole objects of ten thousand nodes would fill hundreds of megabytes. */
  pick: (object: Stored<T>) => Stored<T>
  /** Called with the object before and after a change. Undefined: it did not exist, or is gone. */
  changed?: (before: Stored<T> | undefined, now: Stored<T> | undefined) => void
}

/** This installation's objects of one kind, by name, as the watch last showed them. They may be out of date. */
export class ObjectCache<T extends Resource> {
  readonly #objects = new Map<string, Stored<T>>()
  readonly #changed: NonNullable<ObjectCacheOptions<T>['changed']>
  readonly #watch: ListWatch<T>
  #isComplete = false

  constructor({ place, changed = () => undefined, ...options }: ObjectCacheOptions<T>) {
    this.#changed = changed
    this.#watch = new ListWatch<T>({
      ...options,
      labelSelector: selectorOf(place),
      replace: (objects) => this.#replace(objects),
      changed: (object) => this.#set(object),
      deleted: ({ metadata }) => {
        if (this.#objects.get(metadata.name)?.metadata.uid === metadata.uid) this.#forget(metadata.name)
      },
    })
  }

  /** False until the first list has arrived: until then, a missing object means nothing. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  get isFollowing(): boolean {
    return this.#watch.isFollowing
  }

  get staleMs(): number {
    return this.#watch.staleMs
  }

  get(name: string): Stored<T> | undefined {
    return this.#objects.get(name)
  }

  all(): Iterable<Stored<T>> {
    return this.#objects.values()
  }

  async close(): Promise<void> {
    await this.#watch.close()
  }

  #replace(objects: Stored<T>[]): void {
    const listed = new Set(objects.map(({ metadata }) => metadata.name))
    for (const name of this.#objects.keys()) if (!listed.has(name)) this.#forget(name)
    for (const object of objects) this.#set(object)
    this.#isComplete = true
  }

  #set(object: Stored<T>): void {
    const { name, resourceVersion } = object.metadata
    const before = this.#objects.get(name)
    // Delivered twice or late: what we have is the same or newer.
    if (before && BigInt(before.metadata.resourceVersion) >= BigInt(resourceVersion)) return
    this.#objects.set(name, object)
    this.#changed(before, object)
  }

  #forget(name: string): void {
    const before = this.#objects.get(name)
    this.#objects.delete(name)
    this.#changed(before, undefined)
  }
}
