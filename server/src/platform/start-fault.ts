/**
 * A reason not to start, written so that the operator can act on it. Exit code 78: invalid configuration; 75: another process holds the
 * data directory.
 */
export class StartFault extends Error {
  readonly exitCode: 1 | 75 | 78

  constructor(exitCode: 1 | 75 | 78, ...lines: string[]) {
    super(lines.join('\n'))
    this.exitCode = exitCode
  }
}
