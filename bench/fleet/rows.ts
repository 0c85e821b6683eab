import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../server/src/store/db.ts'
import type { Service } from '../../testing/service.ts'
import { cpuSeconds, type Measure, median, timed } from '../measure.ts'
import type { FleetCluster } from './cluster.ts'

const REST_MS = 15_000
const STEADY_SECONDS = 60
/** The mean time between two checks of a node. In a fleet that has run for a while, the checks are spread evenly over it. */
const CHECKED_EVERY_SECONDS = 450
const LISTS = 200

type Setup = { sql: Database; service: Service; cluster: FleetCluster; env: Record<string, string>; store: string }

/** Measures one fleet. Each row is also printed with the load of the machine. */
export class FleetBench {
  readonly measures: Measure[] = []
  readonly #setup: Setup

  constructor(setup: Setup) {
    this.#setup = setup
  }

  #add(name: string, value: number, unit: string, most?: number): void {
    const load = loadavg()[0] ?? 0
    this.measures.push({ name, value, unit, ...(most === undefined ? {} : { target: { op: '≤', value: most } }) })
    console.error(`${name}: ${value.toFixed(2)} ${unit} (load ${load.toFixed(2)})`)
  }

  /** CPU time of the service and of PostgreSQL. */
  #cpu(): { service: number; store: number } {
    const { service, store } = this.#setup
    return { service: cpuSeconds(service.pid), store: cpuSecondsIn(store) }
  }

  /** Waits until each node was observed: an observation replaces the phase `unknown`. */
  async #observed(): Promise<void> {
    const { sql } = this.#setup
    for (;;) {
      const [row] = await sql<{ left: number }[]>`SELECT count(*)::int AS left FROM nodes WHERE phase <> 'running'`
      if (row?.left === 0) return
      await pause(500)
    }
  }

  /** A pass at the start of the service, then one while it runs. Returns the CPU time per node of the second pass. */
  async passes(count: number, isReported: boolean): Promise<number> {
    const { sql, service, env } = this.#setup
    await sql`UPDATE nodes SET phase = 'unknown', next_at = now() + random() * ${CHECKED_EVERY_SECONDS} * interval '1 second'`
    await sql`VACUUM ANALYZE nodes`
    const tookMs = await timed(async () => {
      await service.start(env)
      await this.#observed()
    })
    if (isReported) {
      this.#add(`fleet of ${count}: start until every node was observed`, tookMs / 1000, 's', 60)
      this.#add('  CPU of the service', this.#cpu().service, 's')
    }
    await pause(REST_MS)
    const before = this.#cpu()
    await sql`UPDATE nodes SET phase = 'unknown', next_at = now()`
    await this.#observed()
    const after = this.#cpu()
    const ms = (spent: number): number => (spent / count) * 1000
    const [own, store] = [ms(after.service - before.service), ms(after.store - before.store)]
    if (isReported) this.#add('  a later pass, CPU of the service per node', own, 'ms')
    if (isReported) this.#add('  … and of PostgreSQL', store, 'ms')
    return own + store
  }

  compare(perNodeMs: number, small: number | undefined): void {
    if (small !== undefined) this.#add(`  both, per node, of that in the smaller fleet`, perNodeMs / small, '×', 1.2)
  }

  async steady(): Promise<void> {
    const { sql, service } = this.#setup
    // As in a fleet that has run for hours. Right after a pass, no node would be due for minutes.
    await sql`UPDATE nodes SET next_at = now() + random() * ${CHECKED_EVERY_SECONDS} * interval '1 second'`
    await pause(REST_MS)
    const before = this.#cpu()
    await pause(STEADY_SECONDS * 1000)
    const after = this.#cpu()
    const percent = (spent: number): number => (spent / STEADY_SECONDS) * 100
    this.#add('  CPU of the service while nothing happens', percent(after.service - before.service), '% of a core', 5)
    this.#add('  … and of PostgreSQL', percent(after.store - before.store), '% of a core')
    const status = readFileSync(`/proc/${service.pid}/status`, 'utf8')
    const megabytes = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024
    this.#add('  memory of the service', megabytes('VmRSS'), 'MB', 350)
    this.#add('  … at most, since its start', megabytes('VmHWM'), 'MB')
  }

  async lists(expected: number): Promise<void> {
    const { service } = this.#setup
    const took: number[] = []
    const before = this.#cpu()
    for (let round = 0; round < LISTS; round++) {
      took.push(
        await timed(async () => {
          const { body } = await service.call('GET', '/v1/nodes')
          if (body.nodes.length !== expected) throw new Error(`expected ${expected} nodes, got ${body.nodes.length}`)
        }),
      )
    }
    const after = this.#cpu()
    const spent = after.service + after.store - before.service - before.store
    this.#add(`  GET /v1/nodes of ${expected} of them: median`, median(took), 'ms', 25)
    this.#add('  … CPU of the service and PostgreSQL', (spent / LISTS) * 1000, 'ms')
  }

  async change(id: string): Promise<void> {
    const { service, cluster } = this.#setup
    for (const [kind, status] of [
      ['stop', 'stopped'],
      ['start', 'ready'],
    ]) {
      const before = await cluster.serviceWrites()
      const tookMs = await timed(async () => {
        const answer = await service.call('POST', `/v1/nodes/${id}/${kind}`)
        if (answer.body.status !== status) throw new Error(JSON.stringify(answer.body))
      })
      this.#add(`  ${kind} one node`, tookMs / 1000, 's', 2)
      this.#add('  … writes to the API server', (await cluster.serviceWrites()) - before, '', 5)
    }
  }
}

/** The CPU time of the processes that work below this directory, and of their children that have ended. */
function cpuSecondsIn(directory: string): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.reduce((sum, pid) => {
    try {
      if (!readlinkSync(`/proc/${pid}/cwd`).startsWith(directory)) return sum
      return sum + cpuSeconds(Number(pid)) + endedCpuSeconds(pid)
    } catch {
      // The process has exited in the meantime.
      return sum
    }
  }, 0)
}

function endedCpuSeconds(pid: string): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / 100
}
