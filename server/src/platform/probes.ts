import type { AsyncLocalStorage } from 'node:async_hooks'
import { type Channel, channel } from 'node:diagnostics_channel'

/**
 * A place in the code that is measured. Reporting is a no-op unless something watches, so that a service without metrics pays
 * nothing for it.
 */
export class Probe<T, Start extends object = never> {
  readonly #channel: Channel
  readonly #start: Channel

  constructor(name: string) {
    this.#channel = channel(`boltyard:${name}`)
    this.#start = channel(`boltyard:${name}:start`)
  }

  /** Runs the work that will be reported, in the scopes that `bind` opens for it. */
  run<R>(start: Start, work: () => R): R {
    return this.#start.runStores(start, work)
  }

  /** While the work runs, the storage holds what `open` returned. Returns a function that ends this. */
  bind<S>(storage: AsyncLocalStorage<S>, open: (start: Start) => S): () => void {
    this.#start.bindStore(storage, (start) => open(start as Start))
    return () => this.#start.unbindStore(storage)
  }

  get isWatched(): boolean {
    return this.#channel.hasSubscribers
  }

  report(measurement: T): void {
    this.#channel.publish(measurement)
  }

  /** Returns a function that ends the watch. */
  watch(listener: (measurement: T) => void): () => void {
    const subscriber = (measurement: unknown): void => listener(measurement as T)
    this.#channel.subscribe(subscriber)
    return () => this.#channel.unsubscribe(subscriber)
  }
}

/** `route` is a pattern, never a path: paths contain ids, and anyone can make up new ones. */
export const requestProbe = new Probe<
  { method: string; route: string; status: number; seconds: number; requestId: string },
  { traceparent: string | undefined }
>('request')

/** `result` is a status class or the reason why there was no response. */
export const nodeCallProbe = new Probe<{ call: string; result: string; seconds: number }>('node-call')

/**
 * - recorded: the usual end of a step
 * - superseded: something else was requested meanwhile, so the step is repeated
 * - lease_lost: another process has leased the node, and nothing was written
 */
export type StepResult = 'recorded' | 'superseded' | 'lease_lost' | 'failed'
export const stepProbe = new Probe<{ result: StepResult; seconds: number }, object>('reconciler-step')

/** Requests that the log of API requests left out. */
export const requestLogProbe = new Probe<{ dropped: number }>('request-log')

/** `text` has placeholders instead of values. */
export const statementProbe = new Probe<{ text: string; isFailed: boolean; seconds: number }>('statement')

export const statusClass = (status: number): string => `${Math.floor(status / 100)}xx`
