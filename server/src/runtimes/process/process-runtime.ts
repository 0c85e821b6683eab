import { chmodSync, existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  type AddressOf,
  CannotStart,
  type NodeMaterial,
  type NodeSpec,
  type Observation,
  type Runtime,
} from '../../nodes/runtime.ts'
import { crashpoint } from '../../platform/crashpoint.ts'
import { readForeignFile, writeSecretFile } from '../../platform/data-dir.ts'
import type { UserIds } from '../../platform/linux.ts'
import { giveTree, removeTree } from '../../platform/trees.ts'
import { sameVersion } from '../../platform/versions.ts'
import { HealthCheck } from '../health-check.ts'
import { type ConfLines, phoenixConf } from '../phoenix-conf.ts'
import { addressIn, daemonIn, localAddress } from './address.ts'
import type { Daemon } from './daemon.ts'
import { DataCopies } from './data-copies.ts'
import { NODE_PORTS, type Places } from './places.ts'

const WATCH_MS = 500
/** The process table, which is checked every WATCH_MS, shows whether a node's process exists, not whether it serves. */
const RECHECK_MS = 30_000

export type ProcessRuntimeOptions = {
  dataDir: string
  /** Maps a version to its command, oldest first. */
  catalogue: Map<string, string[]>
  places: Places
  confLines: ConfLines
  passwordOf: (nodeId: string) => Promise<string>
}

/** Runs nodes as processes on this machine. */
export class ProcessRuntime implements Runtime {
  readonly #options: ProcessRuntimeOptions
  readonly #copies: DataCopies
  readonly #health: HealthCheck
  /** Nodes that were seen running. Their processes are checked every WATCH_MS, which needs no database query. */
  readonly #seen = new Set<string>()
  readonly address: AddressOf
  readonly recheckMs = RECHECK_MS
  readonly silentAtOnce = 0

  constructor(options: ProcessRuntimeOptions) {
    this.#options = options
    this.#copies = new DataCopies(join(options.dataDir, 'nodes'))
    this.#health = new HealthCheck(options.passwordOf)
    this.address = addressIn(options.dataDir)
  }

  get versions(): string[] {
    return [...this.#options.catalogue.keys()]
  }

  #directory(nodeId: string): string {
    return join(this.#options.dataDir, 'nodes', nodeId)
  }

  #daemon(nodeId: string): Daemon {
    return daemonIn(this.#options.dataDir, 'nodes', nodeId)
  }

  async observe(node: NodeSpec): Promise<Observation> {
    const directory = this.#directory(node.id)
    const { startedAtMs, exitsMs, run: lastRun, version, previousVersion } = node.history
    if (previousVersion !== null) this.#copies.finishRestoring(node.id, previousVersion)
    // If the node was started before, its data is lost or on another machine. With new data, it would be a different node.
    if (!isFile(join(directory, 'seed.dat')))
      return { observed: { phase: node.history.version === null ? 'absent' : 'data_lost' } }
    const daemon = this.#daemon(node.id)
    const run = daemon.alive()
    if (!run) {
      this.#health.forget(node.id)
      this.#seen.delete(node.id)
      const last = daemon.read()
      const wasRolledBack = last?.restored !== undefined && sameVersion(version, last.restored)
      const isNew = last !== undefined && !wasRolledBack && !(last.run === lastRun && sameVersion(version, last.version))
      // Keep reporting an exit until the next start, so that its reason stays visible.
      if (startedAtMs === null && exitsMs.length === 0 && !isNew) return { observed: { phase: 'absent' } }
      const process = isNew ? { process: { run: last.run, version: last.version } } : {}
      // If the start was never recorded, the recorded version is the previous one.
      const before = isNew && !sameVersion(version, last.version) ? version : previousVersion
      const isUntouched = before !== null && (await this.#isUntouched(node.id, before))
      return { observed: { phase: 'exited', reason: daemon.lastWords(), isUntouched }, ...process }
    }
    this.#seen.add(node.id)
    daemon.trimLog()
    const process = { run: run.run, version: run.version }
    if (run.stopRequestedAtMs !== undefined) return { observed: { phase: 'stopping' }, process }
    return { ...(await this.#health.ask(node, localAddress(run))), process }
  }

  /**
   * The data itself must prove that it is untouched. The log can only disprove it, because another version may word its messages
   * differently.
   */
  async #isUntouched(nodeId: string, previousVersion: string): Promise<boolean> {
    if (this.#daemon(nodeId).mayHaveSaid('connected to lightning peer')) return false
    return this.#copies.isUntouched(nodeId, previousVersion)
  }

  async start(node: NodeSpec, material: NodeMaterial, stillMine: () => Promise<boolean>): Promise<void> {
    const { version, run } = node.desired
    const command = this.#options.catalogue.get(version)
    if (!command) throw new CannotStart(`version ${version} is not in the catalog`)
    const daemon = this.#daemon(node.id)
    if (daemon.alive()) return
    const port = await this.#options.places.freePort(node.id, NODE_PORTS)
    const user = this.#options.places.user(node.id)
    if (user === 'none left') throw new CannotStart('the host has no free Unix user for this node')
    await this.#writeFiles(node, material, user)
    if (!(await stillMine())) return
    await this.#copies.forgetRestore(node.id)
    daemon.start({
      command: [...command, '--agree-to-terms-of-service', '--http-bind-ip=127.0.0.1', `--http-bind-port=${port}`],
      env: { PHOENIX_DATADIR: daemon.directory, BOLTYARD_NODE_ID: node.id },
      user,
      port,
      version,
      run,
    })
  }

  /** The seed is written once; the configuration at every start, because its addresses may have changed. */
  async #writeFiles(node: NodeSpec, material: NodeMaterial, user: UserIds | undefined): Promise<void> {
    const directory = this.#directory(node.id)
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    // Each user can reach its own directory but list none.
    chmodSync(dirname(directory), user ? 0o711 : 0o700)
    // A new or restored directory belongs to us; one from an earlier version belongs to the user that all nodes shared.
    if (user) await giveTree(directory, user)
    chmodSync(directory, 0o700)
    writeSecretFile(join(directory, 'phoenix.conf'), phoenixConf(node, material, this.#options.confLines), user)
    const seedPath = join(directory, 'seed.dat')
    if (!isThere(seedPath)) writeSecretFile(seedPath, material.seed, user)
    else if (readForeignFile(seedPath, user?.uid ?? process.getuid?.() ?? 0)?.trim() !== material.seed)
      throw new CannotStart('its data directory contains a different seed')
  }

  async stop(node: NodeSpec): Promise<void> {
    this.#daemon(node.id).stop(Date.now())
  }

  async kill(node: NodeSpec): Promise<void> {
    this.#daemon(node.id).kill()
  }

  async keepCopy(node: NodeSpec, version: string): Promise<boolean> {
    await this.#copies.keep(node.id, version)
    return true
  }

  async restoreCopy(node: NodeSpec, version: string): Promise<void> {
    const daemon = this.#daemon(node.id)
    if (daemon.alive()) throw new Error('a process is still using the data to be replaced')
    await this.#copies.restore(node.id, version)
    daemon.recordRestore(version)
  }

  async removeCopies(node: NodeSpec): Promise<void> {
    await this.#copies.removeAll(node.id)
  }

  async remove(node: NodeSpec): Promise<void> {
    const [daemon, directory] = [this.#daemon(node.id), this.#directory(node.id)]
    if (daemon.alive()) throw new Error('a process is still using the data to be removed')
    await this.removeCopies(node)
    crashpoint('purge: the copies are gone')
    // An operator may have moved the directory to another disk and left a link.
    if (existsSync(directory)) await removeTree(realpathSync(directory))
    await removeTree(directory)
    crashpoint('purge: the data is gone')
    await removeTree(daemon.state)
    this.#options.places.forget(node.id)
  }

  async readLog(nodeId: string, maxBytes: number): Promise<string | undefined> {
    return this.#daemon(nodeId).logTail(maxBytes)
  }

  watch(stopped: (nodeId: string) => Promise<void>): () => void {
    const look = (): void => {
      for (const nodeId of this.#seen) {
        if (this.#daemon(nodeId).alive()) continue
        this.#seen.delete(nodeId)
        stopped(nodeId).catch(() => this.#seen.add(nodeId))
      }
    }
    const timer = setInterval(look, WATCH_MS)
    return () => clearInterval(timer)
  }
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined
const isFile = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false
