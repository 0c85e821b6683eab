import type { Fragment, Sql } from '../db.ts'

export type JobName = 'reconciler' | 'settlements' | 'events' | 'webhooks' | 'retention' | 'metering'
export type JobRow = { name: JobName; waiting: number; lagSeconds: number }
type Measured = Omit<JobRow, 'name'>

/**
 * How much work waits in the database, and how long the most overdue of it has been due. Read from the rows that are still to be processed,
 * so it includes jobs of other processes, and jobs that no process runs.
 */
export async function measureJobs(sql: Sql, retentionDays: number): Promise<JobRow[]> {
  const measures: Record<JobName, Promise<Measured[]>> = {
    // A node that a process is working on right now is not waiting.
    reconciler: sql<Measured[]>`
      SELECT count(*)::int AS waiting, ${lag(sql, sql`min(next_at)`)} FROM nodes
      WHERE next_at <= now() AND purged_at IS NULL AND (lease_until IS NULL OR lease_until < now())`,
    // Invoices of a node that is not ready stay due until it is, so they do not count as waiting for this job.
    settlements: sql<Measured[]>`
      SELECT coalesce(sum(due.count), 0)::int AS waiting, ${lag(sql, sql`min(due.oldest)`)}
      FROM nodes n CROSS JOIN LATERAL (
        SELECT count(*), min(ask_at) AS oldest FROM (
          SELECT ask_at FROM gateway_payments WHERE node_id = n.id AND ask_at <= now()
          UNION ALL SELECT ask_at FROM top_ups WHERE node_id = n.id AND ask_at <= now()) i) due
      WHERE n.status = 'ready' AND n.deleted_at IS NULL`,
    events: sql<Measured[]>`SELECT count(*)::int AS waiting, ${lag(sql, sql`min(at)`)} FROM event_outbox`,
    // A failed delivery waits for its next attempt, and is overdue only after that time.
    webhooks: sql<Measured[]>`
      SELECT count(*)::int AS waiting,
             ${lag(sql, sql`min(d.next_at) FILTER (WHERE d.lease_until IS NULL OR d.lease_until < now())`)}
      FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.next_at IS NOT NULL AND w.enabled`,
    retention: sql<Measured[]>`
      SELECT count(*)::int AS waiting, ${lag(sql, sql`min(kept_from) + ${retentionDays} * interval '1 day'`)}
      FROM (SELECT CASE WHEN released_at IS NULL THEN deleted_at ELSE exported_at END AS kept_from FROM nodes
            WHERE deleted_at IS NOT NULL AND purged_at IS NULL) kept
      WHERE kept_from <= now() - ${retentionDays} * interval '1 day'`,
    // An interval is closed when it is an hour old, and then posted. The extra minute is for the passes, which run every 30 seconds: an interval
    // that the next pass will close is not overdue.
    metering: sql<Measured[]>`
      SELECT count(*)::int AS waiting, ${lag(sql, sql`min(due_at)`)}
      FROM (SELECT coalesce(ended_at, started_at + interval '61 minutes') AS due_at FROM usage_intervals WHERE posted_at IS NULL) i
      WHERE due_at <= now()`,
  }
  const rows: JobRow[] = []
  // One after the other: together, they would take most of the pool's connections. A statement begins when it is awaited.
  for (const name of Object.keys(measures) as JobName[]) {
    const [row] = await measures[name]
    rows.push({ name, waiting: row?.waiting ?? 0, lagSeconds: row?.lagSeconds ?? 0 })
  }
  return rows
}

/** 0 if nothing is due. */
const lag = (sql: Sql, dueSince: Fragment) => sql`
  greatest(0, coalesce(extract(epoch FROM clock_timestamp() - (${dueSince})), 0))::float8 AS "lagSeconds"`
