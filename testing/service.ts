import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { type Database, openStore } from '../server/src/store/db.ts'
import { SERVER } from './bundles.ts'

export const agent = new Agent({ keepAlive: true })

export type Answer = { status: number; body: any }

/** The published service, in its own process and data directory. */
export class Service {
  readonly dataDir: string
  #child: ChildProcess | undefined
  url = ''
  key = ''

  constructor(dataDir: string) {
    this.dataDir = dataDir
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  async start(settings: Record<string, string> = {}): Promise<void> {
    const env = {
      PATH: process.env.PATH,
      DATA_DIR: this.dataDir,
      PORT: '0',
      RATE_LIMIT_MAX: '1000000',
      GATEWAY_RATE_LIMIT_MAX: '0',
      LOG_LEVEL: 'error',
      MAX_NODES_PER_ACCOUNT: '2000',
      SIGNUP_CREDIT_SAT: '1000000',
      ...settings,
    }
    const child = spawn(process.execPath, [SERVER], { env, stdio: ['ignore', 'pipe', 'ignore'] })
    this.#child = child
    this.url = await new Promise<string>((resolve, reject) => {
      let text = ''
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk
        const url = /boltyard ready (\S+)/.exec(text)?.[1]
        if (url) resolve(url)
      })
      child.once('exit', (code) => reject(new Error(`the service exited with code ${code}`)))
    })
    const firstRun = join(this.dataDir, 'first-run.json')
    // With DATABASE_URL, the service does not write this file: the operator creates accounts and keys.
    if (existsSync(firstRun)) this.key = JSON.parse(readFileSync(firstRun, 'utf8')).apiKey
  }

  async stop(): Promise<void> {
    if (!this.#child || this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = new Promise((resolve) => this.#child?.once('close', resolve))
    this.#child.kill()
    await gone
  }

  call(method: string, path: string, json?: unknown, token = this.key): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const type = json === undefined ? {} : { 'content-type': 'application/json' }
      const outgoing = request(
        `${this.url}${path}`,
        { method, agent, headers: { authorization: `Bearer ${token}`, ...type } },
        (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk) => {
            text += chunk
          })
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text && JSON.parse(text) }))
        },
      )
      outgoing.on('error', reject)
      outgoing.end(json === undefined ? undefined : JSON.stringify(json))
    })
  }

  async createUntilReady(): Promise<string> {
    const { body, status } = await this.call('POST', '/v1/nodes')
    if (status !== 202) throw new Error(JSON.stringify(body))
    await this.untilReady(body.node.id)
    return body.node.id
  }

  async untilReady(id: string): Promise<void> {
    for (;;) {
      const { status, failureMessage } = (await this.call('GET', `/v1/nodes/${id}`)).body
      if (status === 'ready') return
      if (status === 'failed') throw new Error(`The node failed: ${failureMessage}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  get connection() {
    const password = readFileSync(join(this.dataDir, 'postgres.password'), 'utf8')
    return { host: join(this.dataDir, 'postgres'), port: 5432, user: 'boltyard', password, database: 'postgres' }
  }

  store(maxConnections = 1): Database {
    return openStore(this.connection, maxConnections)
  }
}

/** Nodes outlive the service, so this kills every process that has the data directory in its command line. */
export function killDaemons(dataDir: string): void {
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      if (readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(dataDir)) process.kill(Number(name), 'SIGKILL')
    } catch {
      // The process has exited in the meantime, or belongs to another user.
    }
  }
}
