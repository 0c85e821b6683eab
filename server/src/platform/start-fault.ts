/**
 * A reason not to start, written so that the operator can act on it. Exit code 78: something must change first, such as the settings or the
 * command; 75: something else is in progress, and the same command may work later.
 */
export class StartFault extends Error {
  readonly exitCode: 1 | 75 | 78

  constructor(exitCode: 1 | 75 | 78, ...lines: string[]) {
    super(lines.join('\n'))
    this.exitCode = exitCode
  }
}

/** Names the setting to change if another program uses the port. Any other error is returned as it is. */
export function portFault(error: unknown, setting: string, { host, port }: { host: string; port: number }): unknown {
  if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') return error
  return new StartFault(
    1,
    `${setting}: ${host.includes(':') ? `[${host}]` : host}:${port} is already in use (EADDRINUSE). Stop the program that uses it, or set ${setting} to another port`,
  )
}
