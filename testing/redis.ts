import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../sandboxd/test/harness.ts'
import { eventually } from './eventually.ts'

const PROGRAM = 'redis-server'

export const hasRedis = (): boolean => spawnSync(PROGRAM, ['--version']).status === 0

/** A real Redis that a test can kill, pause and start again on the same port. */
export class TestRedis {
  readonly #directory = mkdtempSync(join(tmpdir(), 'boltyard-redis-'))
  readonly password: string
  readonly #address: string
  #child: ChildProcess | undefined
  port = 0

  constructor(password: string, address = '127.0.0.1') {
    this.password = password
    this.#address = address
  }

  get url(): string {
    return `redis://:${this.password}@${this.#address}:${this.port}`
  }

  async start(): Promise<this> {
    this.port ||= await freePort()
    const settings = { port: this.port, bind: this.#address, dir: this.#directory, requirepass: this.password, save: '' }
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    this.#child = spawn(PROGRAM, args, { stdio: 'ignore' })
    await eventually(() => accepts(this.port, this.#address), 'Redis to start')
    return this
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
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

function accepts(port: number, address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, address)
    socket.on('connect', () => resolve(true))
    socket.on('error', () => resolve(false))
    socket.on('close', () => socket.destroy())
    socket.on('connect', () => socket.end())
  })
}
