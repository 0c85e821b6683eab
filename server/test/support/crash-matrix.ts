import { readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { CRASHING_SERVER } from '../../../testing/bundles.ts'
import { type Created, type Daemon, daemonsIn, program, sandboxd, versions, Yard } from './crash.ts'
import { type Answer, eventually, type ServerSetup, temporaryDirectory } from './server.ts'

/** The service kills itself with SIGKILL between an effect and its record; the next process finishes the operation. */

export const FUNDED_SAT = 5_000

/** A crash point. The service dies when it passes the point for the nth time. */
export type Point = [name: string, nth: number]

/** Points that every operation of the reconciler passes. */
export const LOOKS: Point[] = [
  ['reconciler: decided', 1],
  ['reconciler: acted', 1],
  ['reconciler: recorded', 1],
  ['reconciler: decided', 2],
]
export const SPAWN: Point[] = [
  ['process: intent is durable', 1],
  ['process: spawned', 1],
]
export const STOP: Point[] = [['process: asked to stop', 1]]
export const BEGUN: Point[] = [['operation: begun', 1]]

type Catalogues = { old: Record<string, string>; both: Record<string, string>; bad: Record<string, string> }

/** The service with active crash points. An armed service dies once; the next process is not armed. */
export class CrashingYard extends Yard {
  readonly #orders: string

  constructor({ env, ...setup }: ServerSetup = {}) {
    const orders = join(temporaryDirectory(), 'crash-at')
    super({ ...setup, command: [process.execPath, CRASHING_SERVER], env: { CRASH_FILE: orders, ...env } })
    this.#orders = orders
  }

  /** Makes the running service die at its nth pass of the point, counted after it has passed the points in `first`, in order. */
  arm(point: string, nth = 1, first: readonly string[] = []): void {
    writeFileSync(`${this.#orders}.new`, [point, nth, ...first].join('\n'))
    renameSync(`${this.#orders}.new`, this.#orders)
  }

  /** Withdraws an order that was not carried out, because the next process would carry it out. */
  disarm(): void {
    rmSync(this.#orders, { force: true })
  }

  async died(point: string): Promise<void> {
    const { signal } = await Promise.race([
      this.exited,
      eventually(() => false, `the service to die at "${point}"`) as Promise<never>,
    ])
    expect(signal, `"${point}" was reached`).toBe('SIGKILL')
  }
}

/** A service with a node that no test touches. That node must not change, whatever happens to the others. */
export class CrashMatrix {
  readonly yard: CrashingYard
  readonly catalogues: Catalogues
  readonly #bystander: Created
  readonly #bystanderDaemon: Daemon | undefined

  private constructor(yard: CrashingYard, catalogues: Catalogues, bystander: Created) {
    this.yard = yard
    this.catalogues = catalogues
    this.#bystander = bystander
    this.#bystanderDaemon = yard.daemon(bystander.node.id)
  }

  static async open(): Promise<CrashMatrix> {
    const directory = temporaryDirectory()
    const [first, second] = [sandboxd(directory, '0.8.0'), sandboxd(directory, '0.9.0')]
    const broken = program(directory, 'broken', 'echo "it does not work"; exit 1')
    const catalogues = {
      old: versions({ '0.8.0': first }),
      both: versions({ '0.8.0': first, '0.9.0': second }),
      bad: versions({ '0.8.0': first, '0.9.0': broken }),
    }
    const yard = await new CrashingYard({ env: { MAX_NODES_PER_ACCOUNT: '200' } }).start(catalogues.old)
    return new CrashMatrix(yard, catalogues, await yard.createReady())
  }

  /** Postpones all work on nodes by an hour once none is due, so that any point passed from now on belongs to the operation. */
  async settled(): Promise<void> {
    await this.#inStore(async (sql) =>
      eventually(async () => {
        const due =
          await sql`SELECT 1 FROM nodes WHERE next_at < now() + interval '10 seconds' OR lease_until IS NOT NULL LIMIT 1`
        if (due.length > 0) return false
        await sql`UPDATE nodes SET next_at = now() + interval '1 hour' WHERE lease_until IS NULL`
        return (await sql`SELECT 1 FROM nodes WHERE lease_until IS NOT NULL`).length === 0
      }, 'all nodes to be looked at'),
    )
  }

  /** Does the work in a service that dies at that point, and starts the next process with these versions. */
  async dieAt(
    point: string,
    nth: number,
    catalogue: Record<string, string>,
    work: () => Promise<unknown>,
    begin: 'operation: begun' | 'create: committed' = 'operation: begun',
  ): Promise<unknown> {
    await this.settled()
    // Counting starts with the operation: a step of another node may come at any time, and passes the same points.
    const begun = point.startsWith('create: ') ? [] : [begin]
    // The store can show the end of an earlier step before the service passes that step's `recorded`, where it must not die.
    this.yard.arm(point, nth, point === 'reconciler: recorded' ? [...begun, 'reconciler: decided'] : begun)
    const answer = await work().catch((error: Error) => error)
    await this.yard.died(point).catch((error: Error) => {
      throw new Error(
        `${error.message}; ${answer instanceof Error ? `the call failed: ${answer.message}` : 'the call succeeded'}`,
      )
    })
    await this.yard.start(catalogue)
    return answer
  }

  /** What must hold for every node after any crash. */
  async allIsWell(): Promise<void> {
    const { yard } = this
    const nodes = await eventually(async () => {
      const list = await yard.list()
      const daemons = daemonsIn(yard.dataDir).map(({ nodeId }) => nodeId)
      const expected = list.filter(({ status }) => status !== 'stopped').map(({ id }) => id)
      const isQuiet = list.every(({ status }) => status === 'ready' || status === 'stopped')
      return isQuiet && daemons.sort().join() === expected.sort().join() ? list : undefined
    }, 'one process for every running node, none for the others').catch(async (error: Error) => {
      throw new Error(`${error.message} ${JSON.stringify(await yard.list())} ${JSON.stringify(daemonsIn(yard.dataDir))}`)
    })
    expect(new Set(nodes.map(({ name }) => name)).size).toBe(nodes.length)
    const { id } = this.#bystander.node
    expect(yard.daemon(id), 'nobody touches a node that was not asked for').toEqual(this.#bystanderDaemon)
    // If the daemon's output were a pipe to the dead service, the next line that the daemon prints would kill the daemon.
    expect(readlinkSync(`/proc/${this.#bystanderDaemon?.pid}/fd/1`)).toBe(`${yard.state(id)}/daemon.log`)
  }

  /** The node accepts both of its passwords. */
  async answers({ node, credentials }: Created, version?: string): Promise<void> {
    const info = await this.yard.node(node.id, credentials.password, 'GET', '/getinfo')
    await this.yard.node(node.id, credentials.restrictedPassword, 'GET', '/getbalance')
    if (version) expect(info.version).toBe(`${version}-sandbox`)
  }

  async balanceOf({ node, credentials }: Created): Promise<number> {
    return (await this.yard.node(node.id, credentials.password, 'GET', '/getbalance')).balanceSat
  }

  operate({ node }: Created, operation: 'start' | 'stop' | 'restart' | 'update'): Promise<unknown> {
    return this.yard.expectOk(this.yard.v1('POST', `/${node.id}/${operation}`))
  }

  delete({ node }: Created, query = ''): Promise<Answer> {
    return this.yard.expectOk(this.yard.v1('DELETE', `/${node.id}${query}`))
  }

  /** Reads the store, because no caller is waiting for the operation any more. */
  async operationEnded({ node }: Created): Promise<void> {
    await this.#inStore((sql) =>
      eventually(
        async () => (await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND operation IS NULL`).length === 1,
        'the operation to end',
      ),
    )
  }

  async #inStore(look: (sql: ReturnType<Yard['sql']>) => Promise<unknown>): Promise<void> {
    const sql = this.yard.sql()
    try {
      await look(sql)
    } finally {
      await sql.end()
    }
  }
}
