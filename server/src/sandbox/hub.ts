import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { NodeAgent } from '../lightning/phoenixd/agent.ts'
import type { NodeAddress } from '../lightning/phoenixd/client.ts'
import { readForeignFile, serviceDirectory, writeSecretFile } from '../platform/data-dir.ts'
import { type IdRange, type UserIds, uidsInUse } from '../platform/linux.ts'
import { StartFault } from '../platform/start-fault.ts'
import { giveTree } from '../platform/trees.ts'
import { Problem } from '../problems.ts'
import { Daemon } from '../runtimes/process/daemon.ts'
import { isFreePort } from '../runtimes/process/ports.ts'

/** Below the nodes' range. */
const PORTS = { from: 19_000, to: 19_999 } as const
const START_TIMEOUT_MS = 15_000
const CALL_TIMEOUT_MS = 15_000
const GUARD_MS = 1_000
const agent = new NodeAgent({ keepAlive: false })

/** The sandbox network's daemon: started by us, adopted like a node, and the only door to the controls of sandbox nodes. */
export class Hub {
  readonly #daemon: Daemon
  readonly #command: string[]
  readonly #user: UserIds | undefined
  readonly #port: number
  #guard: NodeJS.Timeout | undefined

  private constructor(daemon: Daemon, command: string[], user: UserIds | undefined, port: number) {
    this.#daemon = daemon
    this.#command = command
    this.#user = user
    this.#port = port
  }

  /** For a process that only serves: another one runs it. */
  static attach(dataDir: string): Hub | undefined {
    const daemon = daemonOf(dataDir)
    const port = daemon.read()?.port
    return port === undefined ? undefined : new Hub(daemon, [], undefined, port)
  }

  static async start(dataDir: string, command: string[], uids: IdRange | undefined, taken: number[]): Promise<Hub> {
    const daemon = daemonOf(dataDir)
    mkdirSync(daemon.state, { recursive: true, mode: 0o700 })
    mkdirSync(daemon.directory, { recursive: true, mode: 0o700 })
    chmodSync(daemon.directory, 0o700)
    const user = uids && userFor(daemon, uids, taken)
    const hub = new Hub(daemon, command, user, await portFor(daemon))
    await hub.#ensureRunning()
    const deadline = Date.now() + START_TIMEOUT_MS
    while (!(await hub.#answers())) {
      if (Date.now() > deadline) throw new StartFault(1, `the sandbox hub did not start: ${daemon.lastWords()}`)
      await pause(20)
    }
    hub.#guard = setInterval(() => void hub.#ensureRunning(), GUARD_MS)
    hub.#guard.unref()
    return hub
  }

  async #ensureRunning(): Promise<void> {
    if (this.#daemon.alive()) return
    // One of an earlier version is of the user that all daemons had then.
    if (this.#user) await giveTree(this.#daemon.directory, this.#user)
    const command = [...this.#command, 'hub', `--datadir=${this.#daemon.directory}`, `--http-bind-port=${this.#port}`]
    this.#daemon.start({
      command,
      env: {},
      user: this.#user,
      port: this.#port,
      version: '',
      run: 1,
    })
  }

  async #answers(): Promise<boolean> {
    try {
      return existsSync(join(this.#daemon.directory, 'node.conf')) && (await this.#call('GET', '/nodes')).status === 200
    } catch {
      // not yet
      return false
    }
  }

  /** token@host:port, as a node's phoenix.conf wants it. */
  get address(): string {
    return `${this.#token('node-token')}@127.0.0.1:${this.#port}`
  }

  /** Read each time: the hub makes its tokens itself, and rarely anybody asks. */
  #token(key: string): string {
    const conf = readForeignFile(join(this.#daemon.directory, 'hub.conf'), this.#runsAs)
    const token = conf && new RegExp(`^${key}=(.+)$`, 'm').exec(conf)?.[1]
    if (!token) throw new Error(`the sandbox hub has no ${key}`)
    return token
  }

  /** One of an earlier version keeps its user until it is started again. */
  get #runsAs(): number {
    return this.#daemon.read()?.uid ?? process.getuid?.() ?? 0
  }

  fund(lightningId: string, amountSat: number): Promise<{ balanceSat: number }> {
    return this.#ask(`/nodes/${lightningId}/fund`, { amountSat })
  }

  fault(lightningId: string, fault: string): Promise<unknown> {
    return this.#ask(`/nodes/${lightningId}/fault`, { fault })
  }

  /** Again for the same payer it is the same answer; for anybody else a paid invoice is refused. */
  pay(invoice: string, payer: string): Promise<{ paymentHash: string; preimage: string }> {
    return this.#ask('/pay', { invoice, payer })
  }

  async #ask<T>(path: string, body: Record<string, unknown>): Promise<T> {
    let answer: { status: number; body: Record<string, unknown> }
    try {
      answer = await this.#call('POST', path, body)
    } catch (error) {
      throw new Problem('payment_service_unavailable', 'The sandbox network does not answer.', { cause: error })
    }
    if (answer.status === 200) return answer.body as T
    const message = String(answer.body.error)
    if (answer.status === 400 || answer.status === 409) throw new Problem('bad_request', message)
    throw new Problem('payment_service_unavailable', message)
  }

  #call(
    method: 'GET' | 'POST',
    path: string,
    body?: Record<string, unknown>,
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${this.#token('control-token')}`, 'content-type': 'application/json' }
      const signal = AbortSignal.timeout(CALL_TIMEOUT_MS)
      const address: NodeAddress = { host: '127.0.0.1', port: this.#port, uid: this.#runsAs }
      const outgoing = request({ ...address, method, path, headers, agent, signal }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.on('error', reject)
        response.on('end', () => {
          try {
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as Record<string, unknown> })
          } catch (error) {
            reject(error as Error)
          }
        })
      })
      outgoing.on('error', reject)
      outgoing.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  /** The user it has from its next start on. */
  get uid(): number | undefined {
    return this.#user?.uid
  }

  /** We no longer bring it back; like the nodes it goes on without us. */
  leave(): void {
    clearInterval(this.#guard)
  }
}

const daemonOf = (dataDir: string): Daemon => new Daemon(join(dataDir, 'hub'), join(serviceDirectory(dataDir), 'hub'))

/** Chosen once, like a node's: at random from the range, and no other's. */
function userFor(daemon: Daemon, { from, to }: IdRange, taken: number[]): UserIds {
  const path = join(daemon.state, 'uid')
  const known = existsSync(path) ? Number(readFileSync(path, 'utf8')) : undefined
  if (known !== undefined && known >= from && known <= to) return { uid: known, gid: known }
  const used = new Set([...taken, ...uidsInUse()])
  const free = Array.from({ length: to - from + 1 }, (_, at) => from + at).filter((uid) => !used.has(uid))
  const uid = free[Math.floor(Math.random() * free.length)]
  if (uid === undefined) throw new StartFault(78, 'NODE_UID_RANGE: every number of it is in use')
  writeSecretFile(path, String(uid))
  return { uid, gid: uid }
}

/** Chosen once: it stands in the configuration of every node. */
async function portFor(daemon: Daemon): Promise<number> {
  const path = join(daemon.state, 'port')
  if (existsSync(path)) return Number(readFileSync(path, 'utf8'))
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from))
    if (!(await isFreePort(port))) continue
    writeSecretFile(path, String(port))
    return port
  }
}
