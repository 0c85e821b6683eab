/** The exit codes scripts can rely on. */
export const EXIT = {
  ok: 0,
  other: 1,
  usage: 2,
  network: 3,
  key: 4,
  notFound: 5,
  rateLimited: 6,
  credit: 7,
  conflict: 8,
  findings: 9,
  interrupted: 130,
} as const

export type ExitName = keyof typeof EXIT

/** An error that ends the command: what happened, what to do next, and what scripts get as JSON. */
export class Failure extends Error {
  readonly exit: ExitName
  readonly code: string
  readonly next: string[]
  /** `next` is a list with one item per line. Otherwise its parts are sentences of one paragraph. */
  readonly isList: boolean
  readonly requestId: string | undefined
  readonly details: Record<string, unknown>

  constructor(
    exit: ExitName,
    code: string,
    message: string,
    more: {
      next?: string | string[]
      isList?: boolean
      requestId?: string | undefined
      details?: Record<string, unknown>
      cause?: unknown
    } = {},
  ) {
    super(message, { cause: more.cause })
    this.exit = exit
    this.code = code
    this.next = [more.next ?? []].flat()
    this.isList = more.isList ?? false
    this.requestId = more.requestId
    this.details = more.details ?? {}
  }
}

export const usage = (message: string, ...next: string[]): Failure => new Failure('usage', 'usage', message, { next })
