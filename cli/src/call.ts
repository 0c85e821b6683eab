import { isObject } from '../../protocol/src/bytes.ts'
import type { Boltyard } from '../../sdk/src/index.ts'
import type { Command, Invocation, Value } from './command.ts'
import { Failure } from './failure.ts'
import { objectIn } from './files.ts'
import { type Paint, painter, Spinner } from './terminal.ts'
import { USER_AGENT } from './version.ts'
import { sleep, wasNeverSent } from './waiting.ts'

/** The SDK's default. Repeated here because the `sandbox` commands call the service without the SDK. */
const LOCAL = 'http://127.0.0.1:8402/v1'
/** If the rate limit lasts longer than this, fail and let the user decide. */
const PATIENCE_SECONDS = 10
/** Longer than the service itself waits for a node to start or stop. */
const ATTEMPT_MS = 120_000
/** How long to keep retrying a service that responded earlier in this run. */
const RESTART_MS = 20_000
const RETRY_MS = 300

/** One invocation of a command: its options, its output, and what to report if it is interrupted. */
export class Call {
  readonly command: Command
  readonly positionals: string[]
  readonly spinner = new Spinner()
  readonly paint: Paint = painter(process.stdout)
  readonly #values: Map<string, Value>
  readonly #controller = new AbortController()
  readonly #deadline: number | undefined
  /** Number of requests that change something and have no response yet. */
  #unanswered = 0
  #advice: string[] = []
  #lastSeenMs = 0
  /** The advice to print if the output could not be written, or if the reader closed the pipe before reading it. */
  ifUnread: string | string[] | undefined

  constructor({ command, values, positionals }: Invocation) {
    this.command = command
    this.positionals = positionals
    this.#values = values
    const timeout = this.number('timeout')
    if (timeout === undefined) return
    this.#deadline = Date.now() + timeout * 1000
    const isLate = (): void => this.abort(new Failure('network', 'timeout', `The command took longer than ${timeout} s.`))
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

  get isJson(): boolean {
    return this.flag('json') || !process.stdout.isTTY
  }

  get timeoutMs(): number {
    return this.#deadline === undefined ? ATTEMPT_MS : Math.max(1, this.#deadline - Date.now())
  }

  get baseUrl(): string {
    return (this.text('base-url') ?? process.env.SERVICE_BASE_URL) || process.env.BOLTYARD_BASE_URL || LOCAL
  }

  /** Prints the command's result: exactly one JSON document, or text for people. */
  print(document: object, forPeople: () => string): void {
    this.spinner.stop()
    process.stdout.write(this.isJson ? `${JSON.stringify(document, null, 2)}\n` : forPeople())
  }

  /** Prints one of any number of results: a line of JSON, or text for people. */
  printLine(document: object, forPeople: () => string): void {
    process.stdout.write(this.isJson ? `${JSON.stringify(document)}\n` : forPeople())
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
   * Runs a change that must not happen twice. A request that was cut off, or whose response was lost, may still have taken effect;
   * `advice` is printed in that case.
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

  /** The fetch the SDK uses. It counts unanswered requests and reports long rate limits instead of waiting silently. */
  readonly fetch: typeof fetch = async (input, init) => {
    const isChange = (init?.method ?? 'GET') !== 'GET'
    if (isChange) this.#unanswered++
    const response = await this.#reach(input, init).catch((error) => {
      if (isChange && wasNeverSent(error)) this.#unanswered--
      throw error
    })
    if (isChange) {
      const verdict = await verdictOf(response)
      // A success also settles earlier lost requests: it responds to a retry of them, or to a request sent after checking the state. A
      // refusal says nothing about them.
      if (verdict === 'done') this.#unanswered = 0
      else if (verdict === 'refused') this.#unanswered--
    }
    if (response.status === 429) this.#meetLimit(response)
    return response
  }

  /**
   * A service that never responded fails at once. One that responded earlier is probably restarting, so its refused connections are
   * retried. That is safe for any request: nothing was sent.
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
    // A proxy may send a date, or nothing. The SDK then retries after a moment.
    const seconds = Number(headers.get('retry-after') ?? Number.NaN) || 1
    const patience = this.#deadline === undefined ? PATIENCE_SECONDS : (this.#deadline - Date.now()) / 1000
    if (seconds <= patience) {
      this.note(`Rate limited. Retrying in ${seconds} s.`)
      return
    }
    this.abort(
      new Failure('rateLimited', 'rate_limited', `Rate limit exceeded. It resets in ${seconds} s.`, {
        next: `Wait, or set --timeout to more than ${seconds} to retry automatically.`,
        requestId: headers.get('x-request-id') ?? undefined,
        details: { retryAfterSeconds: seconds },
      }),
    )
  }
}

/**
 * Whether the request of this response was carried out. Only JSON counts, because it is from the service: a proxy's page says nothing. The
 * service refuses with 4xx, and with 502 if a node is not ready, unless `reason` says that the outcome is unknown. After its other errors,
 * the change may have been made.
 */
async function verdictOf(response: Response): Promise<'done' | 'refused' | 'unknown'> {
  const { ok, status, headers } = response
  // A copy, because the caller reads the body too.
  const text = await response
    .clone()
    .text()
    .catch(() => '<')
  if (status === 204) return 'done'
  const value = objectIn(text)
  if (ok) return value ? 'done' : 'unknown'
  const isRefusal = (status >= 400 && status < 500) || (status === 502 && headers.has('x-request-id'))
  const error = isObject(value?.error) ? value.error : undefined
  return isRefusal && error && error.reason !== 'outcome_unknown' ? 'refused' : 'unknown'
}

export type RunnableCommand = Command & {
  /** A command's code is loaded when it runs, so `--help` and `--version` stay fast. */
  load: () => Promise<(call: Call) => Promise<void>>
}
