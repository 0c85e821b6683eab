import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../sandboxd/test/harness.ts'
import { eventually } from './eventually.ts'

/** A server program with its own directory, which a test can kill and start again on the same port. */
export abstract class TestProgram {
  readonly directory: string
  readonly #name: string
  readonly #address: string
  #child: ChildProcess | undefined
  port = 0

  protected constructor(name: string, address = '127.0.0.1') {
    this.#name = name
    this.#address = address
    this.directory = mkdtempSync(join(tmpdir(), `boltyard-${name}-`))
  }

  /** `argumentsOf` is called when the port is known. */
  protected async launch(program: string, argumentsOf: () => string[], options: SpawnOptions = {}): Promise<void> {
    this.port ||= await freePort()
    this.#child = spawn(program, argumentsOf(), { ...options, stdio: 'ignore' })
    await eventually(() => accepts(this.port, this.#address), `${this.#name} to start`)
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child) return
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

function accepts(port: number, address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, address)
    socket.on('connect', () => {
      socket.end()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
    socket.on('close', () => socket.destroy())
  })
}
