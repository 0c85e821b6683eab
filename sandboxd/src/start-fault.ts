/** A reason not to start that its owner can act on: printed as one line, never with a stack. */
export class StartFault extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

/** The system's own words for a failed call ("permission denied"), without the path and the call that the caller knows better. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const system = /\bE[A-Z0-9]+: ([a-z ]+)/.exec(error.message)
  return system?.[1]?.trim() ?? error.message
}
