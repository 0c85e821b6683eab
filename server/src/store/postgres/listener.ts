import { setTimeout as pause } from 'node:timers/promises'
import { escapeIdentifier } from 'pg'
import { Connection, type StoreAddress } from './connection.ts'

export type Subscriber = {
  onNotify: (payload: string) => void
  /** Called when listening has begun or resumed. Earlier notifications were not delivered. */
  onStart: () => void
}

const RETRY_MS = 500

/** One connection that listens on all channels. If it is lost, the service tries to reopen it until that succeeds. */
export class Listener {
  readonly #address: StoreAddress
  readonly #subscribers = new Map<string, Set<Subscriber>>()
  readonly #closing = new AbortController()
  #connection: Connection | undefined
  #running: Promise<void> | undefined
  #starting: Promise<void> = Promise.resolve()

  constructor(address: StoreAddress) {
    this.#address = address
  }

  /** Returns a function that unsubscribes. */
  listen(channel: string, subscriber: Subscriber): () => void {
    const subscribers = this.#subscribers.get(channel) ?? new Set()
    this.#subscribers.set(channel, subscribers.add(subscriber))
    this.#running ??= this.#run()
    if (this.#connection) this.#start(this.#connection, channel, [subscriber])
    return () => subscribers.delete(subscriber)
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const connection = new Connection(this.#address)
      connection.on('notification', ({ channel, payload }) => {
        for (const subscriber of this.#subscribers.get(channel) ?? []) subscriber.onNotify(payload ?? '')
      })
      // Not `events.once`, which rejects on an error: while nobody waits for this promise, that would end the process.
      const ended = new Promise<void>((resolve) => connection.once('end', resolve))
      try {
        await connection.connect()
        if (this.#closing.signal.aborted) {
          await connection.end()
          break
        }
        this.#connection = connection
        for (const [channel, subscribers] of this.#subscribers) this.#start(connection, channel, [...subscribers])
        await ended
      } catch {
        // The store is down. Every statement reports that; here we only retry.
      } finally {
        this.#connection = undefined
      }
      await pause(RETRY_MS, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined)
    }
  }

  /** Calls are queued, because a connection runs one statement at a time. */
  #start(connection: Connection, channel: string, subscribers: Subscriber[]): void {
    this.#starting = this.#starting.then(async () => {
      try {
        await connection.query(`LISTEN ${escapeIdentifier(channel)}`)
        for (const subscriber of subscribers) subscriber.onStart()
      } catch {
        // The next connection listens on this channel from the start.
        await connection.end()
      }
    })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#starting
    await this.#connection?.end()
    await this.#running
  }
}
