import type { Sql } from './db.ts'
import { forgetOldAnswers } from './idempotency.ts'
import { forgetOldHits } from './limits.ts'
import { forgetRemovedPayments, removeUnpaidPayments } from './payments/payments.ts'
import { forgetOldLinks } from './people/links.ts'
import { forgetEndedSessions } from './people/people.ts'
import { forgetOldFailures } from './people/sign-in-failures.ts'

const BATCH = 1_000

/** Each chore deletes one kind of old rows; its name is for the log. Chores can run at any time, and in several processes at once. */
export const CHORES: Record<string, (sql: Sql, isStopping: () => boolean) => Promise<void>> = {
  'rate limit counters': forgetOldHits,
  'idempotent answers': forgetOldAnswers,
  'ended sessions': forgetEndedSessions,
  'expired links': forgetOldLinks,
  'failed sign-ins': (sql) => forgetOldFailures(sql),
  'counts of removed challenges': forgetRemovedPayments,
  'unpaid challenges': async (sql, isStopping) => {
    // In batches, so that no statement takes long.
    while (!isStopping() && (await removeUnpaidPayments(sql, BATCH)) === BATCH);
  },
}
