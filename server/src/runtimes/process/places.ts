import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { serviceDirectory, writeSecretFile } from '../../platform/data-dir.ts'
import { type IdRange, type UserIds, uidsInUse } from '../../platform/linux.ts'

export type Place = { port: number | null; uid: number | null }
type PortRange = { from: number; to: number }

export const HUB_PORTS: PortRange = { from: 19_000, to: 19_999 }
export const NODE_PORTS: PortRange = { from: 20_000, to: 29_999 }
/** Whether a daemon of ours may be listening on the port. */
export const isDaemonPort = (port: number): boolean => [HUB_PORTS, NODE_PORTS].some(({ from, to }) => port >= from && port <= to)

/**
 * The port of every daemon on this host and, if the service runs as root, its Unix user. Recorded before use, where only the
 * service can write: if a user were forgotten and assigned to a second node, that node could read the first node's seed.
 */
export class Places {
  readonly #directory: string
  readonly #uids: IdRange | undefined
  readonly #places = new Map<string, Place>()

  constructor(dataDir: string, uids: IdRange | undefined) {
    this.#directory = serviceDirectory(dataDir)
    this.#uids = uids
    for (const name of readdirSync(this.#directory)) {
      const path = this.#path(name)
      if (existsSync(path)) this.#places.set(name, JSON.parse(readFileSync(path, 'utf8')) as Place)
    }
  }

  #path(name: string): string {
    return join(this.#directory, name, 'place.json')
  }

  /** Imports what an earlier version recorded elsewhere. Values that are already known here take precedence. */
  adopt(name: string, { port, uid }: Place): void {
    const known = this.#places.get(name)
    const place = { port: known?.port ?? port, uid: known?.uid ?? uid }
    if (place.port !== (known?.port ?? null) || place.uid !== (known?.uid ?? null)) this.#write(name, place)
  }

  known(name: string): Place | undefined {
    return this.#places.get(name)
  }

  /** The port that the daemon already has, unless another program listens there now. */
  async freePort(name: string, range: PortRange): Promise<number> {
    const taken = new Set<number>()
    let port = this.known(name)?.port ?? this.#choosePort(name, range, taken)
    while (!(await isFreePort(port))) {
      taken.add(port)
      port = this.#choosePort(name, range, taken)
    }
    return port
  }

  /** Random, because another service on this machine may choose from the same range. */
  #choosePort(name: string, { from, to }: PortRange, taken: ReadonlySet<number>): number {
    const port = this.#pick(from, to, new Set([...taken, ...[...this.#places.values()].map((place) => place.port)]))
    if (port === undefined) throw new Error(`no port from ${from} to ${to} is free`)
    this.#write(name, { uid: null, ...this.#places.get(name), port })
    return port
  }

  /**
   * A user for the daemon's whole lifetime. Never one that has a running process on this machine, which could read the daemon's files.
   * Undefined without root; 'none left' when the range is exhausted.
   */
  user(name: string): UserIds | undefined | 'none left' {
    if (!this.#uids) return undefined
    const { from, to } = this.#uids
    const known = this.#places.get(name)?.uid ?? undefined
    if (known !== undefined && known >= from && known <= to) return { uid: known, gid: known }
    const uid = this.#pick(from, to, new Set([...uidsInUse(), ...[...this.#places.values()].map((place) => place.uid)]))
    if (uid === undefined) return 'none left'
    this.#write(name, { port: null, ...this.#places.get(name), uid })
    return { uid, gid: uid }
  }

  #pick(from: number, to: number, taken: Set<number | null>): number | undefined {
    const free = Array.from({ length: to - from + 1 }, (_, at) => from + at).filter((number) => !taken.has(number))
    return free[Math.floor(Math.random() * free.length)]
  }

  /** Called last, after everything else that belongs to the daemon has been removed. */
  forget(name: string): void {
    this.#places.delete(name)
  }

  #write(name: string, place: Place): void {
    mkdirSync(join(this.#directory, name), { recursive: true, mode: 0o700 })
    writeSecretFile(this.#path(name), JSON.stringify(place))
    this.#places.set(name, place)
  }
}

function isFreePort(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
