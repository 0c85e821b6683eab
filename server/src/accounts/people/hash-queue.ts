import { Problem } from '../../problems.ts'

/** Known clients (with a session, a link or a known browser) are ahead of strangers in the queue and are never rejected because of them. */
export type HashCaller = { isKnown: boolean; signal: AbortSignal | undefined }

type Waiting = { enter: () => void }

/**
 * Hashing a password takes a tenth of a second of CPU time, and anyone can request it. So only a few hashes run at once, only a few clients
 * may wait, and clients that have disconnected are dropped.
 */
export class HashQueue {
  readonly #maxRunning: number
  readonly #maxWaiting: number
  readonly #known: Waiting[] = []
  readonly #strangers: Waiting[] = []
  #running = 0

  constructor({ maxRunning, maxWaiting }: { maxRunning: number; maxWaiting: number }) {
    this.#maxRunning = maxRunning
    this.#maxWaiting = maxWaiting
  }

  async run<T>(caller: HashCaller, work: () => Promise<T>): Promise<T> {
    await this.#enter(caller)
    try {
      return await work()
    } finally {
      const next = this.#known.shift() ?? this.#strangers.shift()
      if (next) next.enter()
      else this.#running--
    }
  }

  async #enter({ isKnown, signal }: HashCaller): Promise<void> {
    if (signal?.aborted) throw clientLeft()
    if (this.#running < this.#maxRunning) {
      this.#running++
      return
    }
    const lane = isKnown ? this.#known : this.#strangers
    if (lane.length >= this.#maxWaiting) throw tooBusy()
    await new Promise<void>((resolve, reject) => {
      const waiting: Waiting = {
        enter: () => {
          signal?.removeEventListener('abort', leave)
          resolve()
        },
      }
      const leave = (): void => {
        lane.splice(lane.indexOf(waiting), 1)
        reject(clientLeft())
      }
      lane.push(waiting)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
}

const tooBusy = (): Problem =>
  new Problem('service_unavailable', 'Too many people are signing in right now. Try again in a few seconds.', {
    headers: { 'retry-after': '2' },
  })

/** The client is gone, so nobody reads this. */
const clientLeft = (): Problem => new Problem('service_unavailable', 'The client closed the connection.')
