import { type Channel, channel } from 'node:diagnostics_channel'

/** A place that is measured. Reporting is a no-op unless something watches, so that a service without metrics pays nothing for it. */
export class Probe<T> {
  readonly #channel: Channel

  constructor(name: string) {
    this.#channel = channel(`boltyard:${name}`)
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
export const requestProbe = new Probe<{ method: string; route: string; status: number; seconds: number }>('request')

/** `result` is a status class or the reason why there was no response. */
export const nodeCallProbe = new Probe<{ call: string; result: string; seconds: number }>('node-call')

/**
 * - recorded: the usual end of a step
 * - superseded: something else was requested meanwhile, so the step is repeated
 * - lease_lost: another process has leased the node, and nothing was written
 */
export type StepResult = 'recorded' | 'superseded' | 'lease_lost' | 'failed'
export const stepProbe = new Probe<{ result: StepResult; seconds: number }>('reconciler-step')

export const statusClass = (status: number): string => `${Math.floor(status / 100)}xx`
