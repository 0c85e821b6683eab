/** An error at startup that the user can fix: printed as one line, without a stack trace. */
export class StartFault extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

/** The system's message for a failed call ("permission denied"), without the path and the name of the call. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const system = /\bE[A-Z0-9]+: ([a-z ]+)/.exec(error.message)
  return system?.[1]?.trim() ?? error.message
}
