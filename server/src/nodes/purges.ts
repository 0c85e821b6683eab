import type { Logger } from '../platform/log.ts'
import type { Sql } from '../store/db.ts'
import { beginPurges } from '../store/nodes/purges.ts'

const EVERY_MS = 60_000

export type PurgesOptions = { sql: Sql; host: string; retentionDays: number; wake: () => void; log: Logger }

/** Marks deleted nodes whose retention period has ended; the reconciler removes their data. */
export function startPurges({ sql, host, retentionDays, wake, log }: PurgesOptions): { stop: () => void } {
  const purge = (): void => {
    beginPurges(sql, host, retentionDays).then(
      (nodeIds) => {
        for (const nodeId of nodeIds) log.info({ nodeId }, 'retention period of a deleted node has ended; removing its data')
        if (nodeIds.length > 0) wake()
      },
      (error: unknown) => log.warn({ err: error }, 'cannot query deleted nodes past their retention period'),
    )
  }
  purge()
  const timer = setInterval(purge, EVERY_MS)
  return { stop: () => clearInterval(timer) }
}
