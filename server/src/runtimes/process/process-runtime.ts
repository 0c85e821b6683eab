import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { getInfo, hasFunds, type NodeAddress } from '../../lightning/phoenixd/client.ts'
import { sameVersion } from '../../nodes/node.ts'
import { CannotStart, type NodeMaterial, type Observation, type Runtime } from '../../nodes/runtime.ts'
import { crashpoint } from '../../platform/crashpoint.ts'
import { readForeignFile, serviceDirectory, writeSecretFile } from '../../platform/data-dir.ts'
import { type IdRange, type UserIds, uidsInUse } from '../../platform/linux.ts'
import { copyTree, giveTree, removeTree } from '../../platform/trees.ts'
import type { Sql } from '../../store/db.ts'
import { assignPort, assignUid, type NodeRow } from '../../store/nodes.ts'
import { Daemon } from './daemon.ts'
import { isFreePort } from './ports.ts'

export const PORTS = { from: 20_000, to: 29_999 } as const
const FIRST_ANSWER_TIMEOUT_MS = 5_000
/** So long a process that does not listen is merely starting; afterwards it waits for its peer. */
const STARTING_MS = 3_000
const SILENCES_TO_HANG = 5

export type ProcessRuntimeParts = {
  sql: Sql
  dataDir: string
  /** Version to command, oldest first. */
  catalogue: Map<string, string[]>
  /** As root: the users that nodes run as, each as its own. */
  uids: IdRange | undefined
  /** Of that range, and not a node's. */
  hubUid: number | undefined
  /** Lines of phoenix.conf that depend on where we run: the hub, the callback. */
  confLines: (material: NodeMaterial) => string[]
  passwordOf: (nodeId: string) => Promise<string>
}

/** Nodes as processes of this machine. */
export class ProcessRuntime implements Runtime {
  readonly #parts: ProcessRuntimeParts
  readonly #silences = new Map<string, number>()
  /** Seen running: looked at every second without asking the store. */
  readonly #seen = new Set<string>()

  constructor(parts: ProcessRuntimeParts) {
    this.#parts = parts
  }

  get versions(): string[] {
    return [...this.#parts.catalogue.keys()]
  }

  directoryOf(nodeId: string): string {
    return join(this.#parts.dataDir, 'nodes', nodeId)
  }

  #daemon({ id }: { id: string }): Daemon {
    return new Daemon(this.directoryOf(id), join(serviceDirectory(this.#parts.dataDir), id))
  }

  async observe(node: NodeRow): Promise<Observation> {
    const directory = this.directoryOf(node.id)
    const { startedAtMs, exitsMs, run: lastRun, version, previousVersion } = node.history
    if (previousVersion !== null && !existsSync(directory)) this.#finishRestoring(node, previousVersion)
    // Recorded as started once, and not there: somebody else has it, or it is lost. A fresh one would be another node.
    if (!isFile(join(directory, 'seed.dat')))
      return { observed: { phase: node.history.version === null ? 'absent' : 'data_lost' } }
    const daemon = this.#daemon(node)
    const run = daemon.alive()
    if (!run) {
      this.#silences.delete(node.id)
      this.#seen.delete(node.id)
      const last = daemon.read()
      const isNew = last !== undefined && !(last.run === lastRun && sameVersion(version, last.version))
      // An exit stays one until the next start: whoever is told of it later wants to know why.
      if (startedAtMs === null && exitsMs.length === 0 && !isNew) return { observed: { phase: 'absent' } }
      const connected = daemon.mayHaveSaid('connected to lightning peer')
      const process = isNew ? { process: { run: last.run, version: last.version } } : {}
      return { observed: { phase: 'exited', reason: daemon.lastWords(), connected }, ...process }
    }
    this.#seen.add(node.id)
    daemon.trimLog()
    const process = { run: run.run, version: run.version }
    if (run.stopRequestedAtMs !== undefined) return { observed: { phase: 'stopping' }, process }
    return { ...(await this.#ask(node, { host: '127.0.0.1', port: run.port, uid: run.uid })), process }
  }

  async #ask(node: NodeRow, address: NodeAddress): Promise<Observation> {
    const answer = await getInfo(address, await this.#parts.passwordOf(node.id), FIRST_ANSWER_TIMEOUT_MS)
    if (answer.answer !== 'silent') this.#silences.delete(node.id)
    switch (answer.answer) {
      case 'info': {
        const { nodeId, version } = answer.info
        const funds = hasFunds(answer.info)
        return { observed: { phase: 'running', nodeId, version }, ...(funds === undefined ? {} : { hasFunds: funds }) }
      }
      case 'refused': {
        const startedAtMs = node.history.startedAtMs ?? node.nowMs
        return { observed: { phase: node.nowMs - startedAtMs < STARTING_MS ? 'starting' : 'waiting_for_peer' } }
      }
      case 'silent': {
        const silences = (this.#silences.get(node.id) ?? 0) + 1
        this.#silences.set(node.id, silences)
        return { observed: { phase: silences >= SILENCES_TO_HANG ? 'hung' : 'starting' } }
      }
      case 'wrong password':
      case 'nonsense':
        // Somebody else has its port.
        return { observed: { phase: 'starting' } }
    }
  }

  async start(node: NodeRow, material: NodeMaterial, stillMine: () => Promise<boolean>): Promise<void> {
    const command = this.#parts.catalogue.get(node.desiredVersion)
    if (!command) throw new CannotStart(`version ${node.desiredVersion} is not in the catalogue`)
    const daemon = this.#daemon(node)
    if (daemon.alive()) return
    const port = await this.#freePort(node)
    const user = await this.#userOf(node)
    await this.#writeFiles(node, material, user)
    if (!(await stillMine())) return
    daemon.start({
      command: [...command, '--agree-to-terms-of-service', '--http-bind-ip=127.0.0.1', `--http-bind-port=${port}`],
      env: { PHOENIX_DATADIR: daemon.directory, BOLTYARD_NODE_ID: node.id },
      user,
      port,
      version: node.desiredVersion,
      run: node.desiredRun,
    })
  }

  /** Its own, unless somebody on this machine sits on it. */
  async #freePort(node: NodeRow): Promise<number> {
    const { sql } = this.#parts
    let port = node.port ?? (await assignPort(sql, node, PORTS.from, PORTS.to, null))
    while (!(await isFreePort(port))) port = await assignPort(sql, node, PORTS.from, PORTS.to, port)
    return port
  }

  /** Its own for life. Not one under which something runs on this machine: that could read the node's files. */
  async #userOf(node: NodeRow): Promise<UserIds | undefined> {
    const { sql, uids, hubUid } = this.#parts
    if (!uids) return undefined
    const isOurs = node.uid !== null && node.uid >= uids.from && node.uid <= uids.to && node.uid !== hubUid
    const taken = [...uidsInUse(), ...(hubUid === undefined ? [] : [hubUid])]
    const uid = isOurs ? node.uid : await assignUid(sql, node, uids, taken)
    if (uid == null) throw new CannotStart('its host has no Unix user left for it')
    return { uid, gid: uid }
  }

  /** The seed is written once and never again; the configuration each time, since its addresses may have changed. */
  async #writeFiles(node: NodeRow, material: NodeMaterial, user: UserIds | undefined): Promise<void> {
    const directory = this.directoryOf(node.id)
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    // Each user passes through to its own directory, and can list none.
    chmodSync(dirname(directory), user ? 0o711 : 0o700)
    // A new directory is ours, and so is one that was restored; one of an earlier version is of the user all nodes had then.
    if (user) await giveTree(directory, user)
    chmodSync(directory, 0o700)
    const conf = [
      `http-password=${material.password}`,
      `http-password-limited-access=${material.restrictedPassword}`,
      `webhook-secret=${material.webhookSecret}`,
      `auto-liquidity=${node.autoLiquidity}`,
      ...this.#parts.confLines(material),
    ]
    writeSecretFile(join(directory, 'phoenix.conf'), `${conf.join('\n')}\n`, user)
    const seedPath = join(directory, 'seed.dat')
    if (!isThere(seedPath)) writeSecretFile(seedPath, material.seed, user)
    else if (readForeignFile(seedPath, user?.uid ?? process.getuid?.() ?? 0)?.trim() !== material.seed)
      throw new CannotStart('its data directory holds another seed')
  }

  async stop(node: NodeRow): Promise<void> {
    this.#daemon(node).stop(Date.now())
  }

  async kill(node: NodeRow): Promise<void> {
    this.#daemon(node).kill()
  }

  #copyPath(node: NodeRow, version: string): string {
    return join(this.#parts.dataDir, 'nodes', `${node.id}.before-update-from-${version.replace(/[^\w.-]/g, '_')}`)
  }

  async keepCopy(node: NodeRow, version: string): Promise<void> {
    const copy = this.#copyPath(node, version)
    if (existsSync(copy)) return
    await removeTree(`${copy}.unfinished`)
    await copyTree(this.directoryOf(node.id), `${copy}.unfinished`)
    crashpoint('copy: unfinished')
    renameSync(`${copy}.unfinished`, copy)
    crashpoint('copy: kept')
  }

  async restoreCopy(node: NodeRow, version: string): Promise<void> {
    const [copy, directory] = [this.#copyPath(node, version), this.directoryOf(node.id)]
    // Done already, by a process that died before it could say so.
    if (!existsSync(copy)) return
    if (this.#daemon(node).alive()) throw new Error('a process still runs on the data that is to be replaced')
    const aside = `${directory}.failed-update`
    if (existsSync(directory)) {
      await removeTree(aside)
      renameSync(directory, aside)
      crashpoint('restore: the new data is aside')
    }
    renameSync(copy, directory)
    crashpoint('restore: the old data is back')
  }

  /** Somebody died between the two renames of a restore: without the second one the node's data would count as lost. */
  #finishRestoring(node: NodeRow, version: string): void {
    const [copy, directory] = [this.#copyPath(node, version), this.directoryOf(node.id)]
    if (existsSync(`${directory}.failed-update`) && existsSync(copy)) renameSync(copy, directory)
  }

  async removeCopies(node: NodeRow): Promise<void> {
    const nodes = join(this.#parts.dataDir, 'nodes')
    for (const name of existsSync(nodes) ? readdirSync(nodes) : [])
      if (name.startsWith(`${node.id}.`)) await removeTree(join(nodes, name))
  }

  async remove(node: NodeRow): Promise<void> {
    const [daemon, directory] = [this.#daemon(node), this.directoryOf(node.id)]
    if (daemon.alive()) throw new Error('a process still runs on the data that is to be removed')
    await this.removeCopies(node)
    crashpoint('purge: the copies are gone')
    // An operator may have moved it to another disk and left a link.
    if (existsSync(directory)) await removeTree(realpathSync(directory))
    await removeTree(directory)
    crashpoint('purge: the data is gone')
    await removeTree(daemon.state)
  }

  /** Nodes whose process was there and is gone. */
  takeExits(): string[] {
    const gone = [...this.#seen].filter((nodeId) => !this.#daemon({ id: nodeId }).alive())
    for (const nodeId of gone) this.#seen.delete(nodeId)
    return gone
  }

  /** Nobody could be told of its exit: it is named again. */
  returnExit(nodeId: string): void {
    this.#seen.add(nodeId)
  }
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined
const isFile = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false
