import type { Boltyard } from '../../sdk/src/index.ts'
import type { Command, Invocation, Value } from './command.ts'
import { Failure } from './failure.ts'
import { type Paint, painter, Spinner } from './terminal.ts'
import { USER_AGENT } from './version.ts'
import { sleep, wasNeverSent } from './waiting.ts'

/** The SDK's default, said here too because `sandbox` speaks to the same service without it. */
const LOCAL = 'http://127.0.0.1:8402/v1'
/** Who is told to come back later than this would rather decide himself. */
const PATIENCE_SECONDS = 10
/** Longer than the service itself waits for a node to start or stop. */
const ATTEMPT_MS = 120_000
/** How long a service that was there a moment ago may take to be there again. */
const RESTART_MS = 20_000
const RETRY_MS = 300

/** One call of one command: what was asked, where the answer goes, and what is known when it is cut short. */
export class Call {
  readonly command: Command
  readonly positionals: string[]
  readonly spinner = new Spinner()
  readonly paint: Paint = painter(process.stdout)
  readonly #values: Map<string, Value>
  readonly #controller = new AbortController()
  readonly #deadline: number | undefined
  /** Requests that change something and have not been answered. */
  #unanswered = 0
  #advice: string[] = []
  #lastSeenMs = 0
  /** What to say when whoever was to read the answer has closed the pipe. */
  ifUnread: string | undefined

  constructor({ command, values, positionals }: Invocation) {
    this.command = command
    this.positionals = positionals
    this.#values = values
    const timeout = this.number('timeout')
    if (timeout === undefined) return
    this.#deadline = Date.now() + timeout * 1000
    const isLate = (): void => this.abort(new Failure('network', 'timeout', `It took longer than ${timeout} s.`))
    setTimeout(isLate, timeout * 1000).unref()
  }

  text = (name: string): string | undefined => this.#values.get(name) as string | undefined
  number = (name: string): number | undefined => this.#values.get(name) as number | undefined
  flag = (name: string): boolean => this.#values.get(name) === true
  many = (name: string): string[] => (this.#values.get(name) as string[] | undefined) ?? []
  argument = (index: number): string => this.positionals[index] ?? ''

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: Failure): void {
    this.#controller.abort(reason)
  }

  /** A script gets JSON; so does whoever asks for it. */
  get isJson(): boolean {
    return this.flag('json') || !process.stdout.isTTY
  }

  get timeoutMs(): number {
    return this.#deadline === undefined ? ATTEMPT_MS : Math.max(1, this.#deadline - Date.now())
  }

  get baseUrl(): string {
    return (this.text('base-url') ?? process.env.SERVICE_BASE_URL) || process.env.BOLTYARD_BASE_URL || LOCAL
  }

  /** The one document of this command. */
  print(document: object, forPeople: () => string): void {
    this.spinner.stop()
    process.stdout.write(this.isJson ? `${JSON.stringify(document, null, 2)}\n` : forPeople())
  }

  note(text: string): void {
    this.spinner.stop()
    if (process.stderr.isTTY) process.stderr.write(`${text}\n`)
  }

  async client(): Promise<Boltyard> {
    const { openClient } = await import('./client.ts')
    return openClient(this)
  }

  /**
   * Something that must not be done twice, with what to say if it is not known whether it was done. A request that was cut off, or whose
   * answer was lost, may have done all that it asked for.
   */
  async change<T>(advice: string | string[], act: () => Promise<T>): Promise<T> {
    this.#advice = [advice].flat()
    const result = await act()
    this.#advice = []
    return result
  }

  get adviceIfUnknown(): string[] {
    return this.#unanswered > 0 ? this.#advice : []
  }

  get isUnknown(): boolean {
    return this.#unanswered > 0
  }

  /** Beneath the SDK: it counts what was sent and not answered, and does not sit out a long rate limit in silence. */
  readonly fetch: typeof fetch = async (input, init) => {
    const isChange = (init?.method ?? 'GET') !== 'GET'
    if (isChange) this.#unanswered++
    const response = await this.#reach(input, init).catch((error) => {
      if (isChange && wasNeverSent(error)) this.#unanswered--
      throw error
    })
    // An answer settles whatever was lost before it: it is the same request, or one made after looking.
    if (isChange && isAnswer(response)) this.#unanswered = 0
    if (response.status === 429) this.#meetLimit(response)
    return response
  }

  /**
   * Who was never there is not waited for. Who was there a moment ago is being restarted: until it listens again nothing can have been
   * sent, so trying on is safe whatever is asked.
   */
  async #reach(input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    const headers = new Headers(init?.headers)
    headers.set('user-agent', USER_AGENT)
    for (;;) {
      try {
        const response = await fetch(input, { ...init, headers })
        this.#lastSeenMs = Date.now()
        return response
      } catch (error) {
        if (!wasNeverSent(error)) this.#lastSeenMs = Date.now()
        else if (Date.now() - this.#lastSeenMs < RESTART_MS) {
          await sleep(RETRY_MS, this.signal)
          continue
        }
        throw error
      }
    }
  }

  #meetLimit({ headers }: Response): void {
    const seconds = Number(headers.get('retry-after') ?? 1)
    const patience = this.#deadline === undefined ? PATIENCE_SECONDS : (this.#deadline - Date.now()) / 1000
    if (seconds <= patience) {
      this.note(`Rate limited; trying again in ${seconds} s.`)
      return
    }
    this.abort(
      new Failure('rateLimited', 'rate_limited', `The service’s rate limit is used up; it opens again in ${seconds} s.`, {
        next: `Wait, or give a --timeout longer than ${seconds} to have it waited for.`,
        requestId: headers.get('x-request-id') ?? undefined,
        details: { retryAfterSeconds: seconds },
      }),
    )
  }
}

/** The service's own word that it was done or not. A 502 of whoever stands in front of it is none; our service signs each of its answers. */
const isAnswer = ({ status, headers }: Response): boolean => status < 500 || (status === 502 && headers.has('x-request-id'))

export type RunnableCommand = Command & {
  /** Loaded when called: `--help` and `--version` must not wait for what they do not use. */
  load: () => Promise<(call: Call) => Promise<void>>
}
