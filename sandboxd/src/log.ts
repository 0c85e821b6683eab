import { appendFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import type { Options } from './options.ts'

/** Prints console lines like phoenixd, and writes them to phoenix.log as well. Never pass it a secret or an invoice. */
export class Log {
  readonly #file: string | undefined
  readonly #options: Pick<Options, 'verbosity' | 'logRotateBytes' | 'logRotateMaxFiles'>
  #fileBytes: number

  constructor(file: string | undefined, options: Pick<Options, 'verbosity' | 'logRotateBytes' | 'logRotateMaxFiles'>) {
    this.#file = file
    this.#options = options
    this.#fileBytes = file && existsSync(file) ? statSync(file).size : 0
    // Losing the console (a closed terminal, a dead supervisor) must not stop the node.
    process.stdout.on('error', () => undefined)
    process.stderr.on('error', () => undefined)
  }

  /** Shown unless --silent. */
  info(line: string): void {
    const stamped = `${stamp()} ${line}`
    if (this.#options.verbosity !== 'silent') process.stdout.write(`${stamped}\n`)
    this.#toFile(stamped)
  }

  /** Written to the file; shown on the console only with --verbose. */
  detail(line: string): void {
    const stamped = `${stamp()} ${line}`
    if (this.#options.verbosity === 'verbose') process.stdout.write(`${stamped}\n`)
    this.#toFile(stamped)
  }

  error(line: string): void {
    const stamped = `${stamp()} ${line}`
    process.stderr.write(`${stamped}\n`)
    this.#toFile(stamped)
  }

  #toFile(line: string): void {
    if (!this.#file) return
    try {
      if (this.#fileBytes > this.#options.logRotateBytes) this.#rotate(this.#file)
      appendFileSync(this.#file, `${line}\n`, { mode: 0o600 })
      this.#fileBytes += line.length + 1
    } catch (error) {
      // A full disk must not stop a working node. The line is still on the console.
      process.stderr.write(`cannot write ${this.#file}: ${(error as Error).message}\n`)
    }
  }

  #rotate(file: string): void {
    for (let number = this.#options.logRotateMaxFiles - 1; number >= 1; number--) {
      const older = number === 1 ? file : `${file}.${number - 1}`
      if (existsSync(older)) renameSync(older, `${file}.${number}`)
    }
    if (this.#options.logRotateMaxFiles === 1) rmSync(file)
    this.#fileBytes = 0
  }
}

function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace('T', ' ')
}
