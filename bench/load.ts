import { connect, type Socket } from 'node:net'

/**
 * Generates load in its own process, so that the measuring side does not wait for the measured one. Requests are written as raw bytes: a
 * client library would use as much CPU as the server.
 */
export type Load = {
  port: number
  callers: number
  /** Complete HTTP requests; each is sent once. */
  requests: string[]
  /**
   * Undefined: each caller sends its next request as soon as the last was answered. Otherwise this many per second, timed from when each
   * was due.
   */
  perSecond?: number
}
export type LoadResult = { perSecond: number; latenciesMs: number[]; statuses: Record<string, number> }

const NOTHING = Buffer.alloc(0)
/** Sent before anything is measured: the first response on a connection, and the first in this process, do not show the server's speed. */
const WARM_UP = Buffer.from('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
const WARM_UPS = 30
const HEAD_END = Buffer.from('\r\n\r\n')

class Caller {
  readonly #socket: Socket
  #rest: Buffer | undefined
  #answered: ((status: string) => void) | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
  }

  static open(port: number): Promise<Caller> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve(new Caller(socket)))
      socket.once('error', reject)
    })
  }

  #read(chunk: Buffer): void {
    const answer = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk
    this.#rest = answer
    const head = answer.indexOf(HEAD_END)
    if (head < 0) return
    const length = Number(/content-length: (\d+)/i.exec(answer.toString('latin1', 0, head))?.[1] ?? 0)
    if (answer.length < head + 4 + length) return
    this.#rest = undefined
    this.#answered?.(answer.toString('latin1', 9, 12))
  }

  send(request: Buffer): Promise<string> {
    return new Promise((resolve) => {
      this.#answered = resolve
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}

async function run({ port, callers, requests, perSecond }: Load): Promise<LoadResult> {
  const open = await Promise.all(Array.from({ length: callers }, () => Caller.open(port)))
  const bytes = requests.map((request) => Buffer.from(request))
  for (let round = 0; round < WARM_UPS; round++) await Promise.all(open.map((caller) => caller.send(WARM_UP)))
  const latenciesMs: number[] = []
  const statuses: Record<string, number> = {}
  const started = performance.now()
  let next = 0
  await Promise.all(
    open.map(async (caller) => {
      for (let index = next++; index < requests.length; index = next++) {
        const dueMs = perSecond === undefined ? performance.now() : started + (index / perSecond) * 1000
        const waitMs = dueMs - performance.now()
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
        // A timer may fire a little early; a request that we send late counts from when it was due.
        const fromMs = Math.min(dueMs, performance.now())
        const status = await caller.send(bytes[index] ?? NOTHING)
        latenciesMs.push(performance.now() - fromMs)
        statuses[status] = (statuses[status] ?? 0) + 1
      }
    }),
  )
  const tookMs = performance.now() - started
  for (const caller of open) caller.close()
  return { perSecond: (requests.length / tookMs) * 1000, latenciesMs, statuses }
}

process.on('message', (load: Load) => {
  run(load).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      process.stderr.write(`${error}\n`)
      process.exit(1)
    },
  )
})
