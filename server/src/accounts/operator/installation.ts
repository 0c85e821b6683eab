import type { Config } from '../../config.ts'
import { sameVersion } from '../../platform/versions.ts'
import type { Database } from '../../store/db.ts'
import { type DayRow, dailyTotals } from '../../store/operator/days.ts'
import { countNodesByHost, countNodesByVersion, type HostRow } from '../../store/operator/hosts.ts'
import { type JobName, type JobRow, measureJobs } from '../../store/operator/jobs.ts'

/**
 * A job with a longer lag than this has a problem: each value is several times the normal lag. Usage is posted every 30 s, and
 * nodes past their retention period are looked for once a minute.
 */
const LATE_AFTER_SECONDS: Record<JobName, number> = {
  reconciler: 60,
  settlements: 60,
  events: 30,
  webhooks: 60,
  retention: 600,
  metering: 180,
}

export type InstallationDeps = {
  sql: Database
  config: Pick<Config, 'maxNodes' | 'retentionDays'>
  host: string
  /** Oldest first. */
  versions: string[]
  whyNoUpdates: string | undefined
  orphanedNodes: () => number | undefined
}
type Version = { version: string; isInCatalog: boolean; isLatest: boolean; nodes: number }

/** The installation as a whole, for its operator. */
export class Installation {
  readonly #deps: InstallationDeps

  constructor(deps: InstallationDeps) {
    this.#deps = deps
  }

  /** Other hosts have their own MAX_NODES, which is not known here. */
  async hosts(): Promise<(Omit<HostRow, 'host'> & { id: string; isHere: boolean; slots: number | null })[]> {
    const { sql, host: here, config } = this.#deps
    const rows = await countNodesByHost(sql, here)
    return rows.map(({ host, ...counts }) => {
      const isHere = host === here
      return { id: host, isHere, ...counts, slots: isHere ? config.maxNodes : null }
    })
  }

  async versions(): Promise<{ versions: Version[]; nodesNeverRun: number; whyNoUpdates: string | null }> {
    const { sql, versions: catalog, whyNoUpdates } = this.#deps
    const counted = await countNodesByVersion(sql)
    const nodesOf = (version: string): number =>
      counted.filter((row) => sameVersion(row.version, version)).reduce((sum, { count }) => sum + count, 0)
    const isInCatalog = (version: string): boolean => catalog.some((one) => sameVersion(version, one))
    const others = counted.flatMap(({ version, count }) =>
      version === null || isInCatalog(version) ? [] : [{ version, isInCatalog: false, isLatest: false, nodes: count }],
    )
    const known = catalog.map((version) => ({
      version,
      isInCatalog: true,
      isLatest: version === catalog.at(-1),
      nodes: nodesOf(version),
    }))
    return {
      versions: [...others, ...known],
      nodesNeverRun: counted.find(({ version }) => version === null)?.count ?? 0,
      whyNoUpdates: whyNoUpdates ?? null,
    }
  }

  days(count: number): Promise<DayRow[]> {
    return dailyTotals(this.#deps.sql, count)
  }

  async backgroundWork() {
    const { sql, config, orphanedNodes } = this.#deps
    const database = sql.poolUse()
    const jobs = await measureJobs(sql, config.retentionDays)
    const judged = jobs.map((job: JobRow) => ({ ...job, lateAfterSeconds: LATE_AFTER_SECONDS[job.name] }))
    return { now: Math.floor(Date.now() / 1000), jobs: judged, database, orphanedNodes: orphanedNodes() ?? null }
  }
}
