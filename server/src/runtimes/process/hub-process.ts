import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Address } from '../../nodes/runtime.ts'
import { readForeignFile } from '../../platform/data-dir.ts'
import type { UserIds } from '../../platform/linux.ts'
import { freshAgent } from '../../platform/node-agent.ts'
import { StartFault } from '../../platform/start-fault.ts'
import { giveTree } from '../../platform/trees.ts'
import { daemonIn, localAddress } from './address.ts'
import type { Daemon } from './daemon.ts'
import { HUB_PORTS, type Places } from './places.ts'

const HUB = 'hub'
/** Only for a hub that hangs: one that exits is noticed at once. */
const START_TIMEOUT_MS = 60_000
const GUARD_MS = 1_000
/** How many ports are tried for a new hub: another program may take a port that was free a moment before. */
const FIRST_STARTS = 5

/** The hub of the sandbox network as a process on this machine, started and adopted like a node. */
export class HubProcess {
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

  /** For a process with ROLE=api: another process runs the hub. */
  static attach(dataDir: string): HubProcess | undefined {
    const daemon = daemonIn(dataDir, '', HUB)
    const port = daemon.read()?.port
    return port === undefined ? undefined : new HubProcess(daemon, [], undefined, port)
  }

  static async start(dataDir: string, command: string[], places: Places): Promise<HubProcess> {
    const daemon = daemonIn(dataDir, '', HUB)
    mkdirSync(daemon.directory, { recursive: true, mode: 0o700 })
    chmodSync(daemon.directory, 0o700)
    places.adopt(HUB, { port: numberIn(join(daemon.state, 'port')), uid: numberIn(join(daemon.state, 'uid')) })
    const user = places.user(HUB)
    if (user === 'none left')
      throw new StartFault(78, 'NODE_UID_RANGE: all user ids in the range are in use; choose a larger range')
    const known = places.known(HUB)?.port ?? undefined
    let hub: HubProcess
    for (let attempt = 1; ; attempt++) {
      // Once chosen, the port stays: it is in every node's configuration. Until then, another program may take it first.
      hub = new HubProcess(daemon, command, user, known ?? (await places.freePort(HUB, HUB_PORTS)))
      await hub.#ensureRunning()
      if (await hub.#comesUp()) break
      if (known !== undefined || attempt === FIRST_STARTS)
        throw new StartFault(1, `the sandbox hub did not start: ${daemon.lastWords()}`)
    }
    hub.#guard = setInterval(() => void hub.#ensureRunning(), GUARD_MS)
    hub.#guard.unref()
    return hub
  }

  async #ensureRunning(): Promise<void> {
    if (this.#daemon.alive()) return
    // A directory from an earlier version belongs to the user that all daemons shared.
    if (this.#user) await giveTree(this.#daemon.directory, this.#user)
    const command = [...this.#command, 'hub', `--datadir=${this.#daemon.directory}`, `--http-bind-port=${this.#port}`]
    this.#daemon.start({ command, env: {}, user: this.#user, port: this.#port, version: '', run: 1 })
  }

  async #comesUp(): Promise<boolean> {
    const deadline = Date.now() + START_TIMEOUT_MS
    while (!(await this.#answers())) {
      if (Date.now() > deadline || !this.#daemon.alive()) return false
      await pause(20)
    }
    return true
  }

  /** Checked with the hub's own token, because another daemon may listen on the port. */
  async #answers(): Promise<boolean> {
    if (!existsSync(join(this.#daemon.directory, 'node.conf'))) return false
    const headers = { authorization: `Bearer ${this.controlToken()}` }
    return new Promise((resolve) => {
      const asking = get(
        { ...this.address, path: '/nodes', headers, agent: freshAgent, timeout: START_TIMEOUT_MS },
        (response) => {
          response.resume()
          resolve(response.statusCode === 200)
        },
      )
      asking.on('timeout', () => asking.destroy())
      // not listening yet
      asking.on('error', () => resolve(false))
    })
  }

  get address(): Address {
    return localAddress({ port: this.#port, uid: this.#runsAs })
  }

  /** token@host:port, for a node's phoenix.conf. */
  get nodeAddress(): string {
    return `${this.#token('node-token')}@${this.address.host}:${this.#port}`
  }

  controlToken(): string {
    return this.#token('control-token')
  }

  /** Read each time: the hub generates its own tokens, and they are rarely needed. */
  #token(key: string): string {
    const conf = readForeignFile(join(this.#daemon.directory, 'hub.conf'), this.#runsAs)
    const token = conf && new RegExp(`^${key}=(.+)$`, 'm').exec(conf)?.[1]
    if (!token) throw new Error(`the sandbox hub has no ${key}`)
    return token
  }

  /** A hub started by an earlier version keeps its user until it is restarted. */
  get #runsAs(): number {
    return this.#daemon.read()?.uid ?? process.getuid?.() ?? 0
  }

  /** Stops restarting the hub. Like the nodes, it keeps running without us. */
  leave(): void {
    clearInterval(this.#guard)
  }
}

/** Reads a number that an earlier version stored in a separate file. */
const numberIn = (path: string): number | null => (existsSync(path) ? Number(readFileSync(path, 'utf8')) : null)
