/** A reason not to start, as lines that its owner can act on. 78: bad configuration, 75: somebody else has the data directory. */
export class StartFault extends Error {
  readonly exitCode: number

  constructor(exitCode: 1 | 75 | 78, ...lines: string[]) {
    super(lines.join('\n'))
    this.exitCode = exitCode
  }
}
