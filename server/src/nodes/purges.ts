import type { Logger } from '../platform/log.ts'
import type { Sql } from '../store/db.ts'
import { beginPurges } from '../store/nodes/purges.ts'

const EVERY_MS = 60_000

export type PurgesOptions = { sql: Sql; host: string; retentionDays: number; wake: () => void; log: Logger }

/** Marks deleted nodes whose retention is over; the reconciler removes their data. */
export function startPurges({ sql, host, retentionDays, wake, log }: PurgesOptions): { stop: () => void } {
  const purge = (): void => {
    beginPurges(sql, host, retentionDays).then(
      (nodeIds) => {
        for (const nodeId of nodeIds) log.info({ nodeId }, 'retention of a deleted node is over, removing its data')
        if (nodeIds.length > 0) wake()
      },
      (error: unknown) => log.warn({ err: error }, 'cannot look for deleted nodes past their retention'),
    )
  }
  purge()
  const timer = setInterval(purge, EVERY_MS)
  return { stop: () => clearInterval(timer) }
}
