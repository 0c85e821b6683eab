import { spawnSync } from 'node:child_process'
import { TestProgram } from './program.ts'

const PROGRAM = 'redis-server'

export const hasRedis = (): boolean => spawnSync(PROGRAM, ['--version']).status === 0

/** A real Redis that a test can kill, pause and start again on the same port. */
export class TestRedis extends TestProgram {
  readonly password: string
  readonly #address: string

  constructor(password: string, address = '127.0.0.1') {
    super('redis', address)
    this.password = password
    this.#address = address
  }

  get url(): string {
    return `redis://:${this.password}@${this.#address}:${this.port}`
  }

  async start(): Promise<this> {
    await this.launch(PROGRAM, () => {
      const settings = { port: this.port, bind: this.#address, dir: this.directory, requirepass: this.password, save: '' }
      return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    })
    return this
  }
}
