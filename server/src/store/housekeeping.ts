import { removeOldRequests, removeOldUsage } from './api-requests.ts'
import type { Sql } from './db.ts'
import { removeOldEvents } from './events/feed.ts'
import { removeDeletedWebhooks } from './events/webhooks.ts'
import { forgetOldAnswers } from './idempotency.ts'
import { forgetOldSecrets } from './keys.ts'
import { forgetOldHits } from './limits.ts'
import { forgetOperatorSessions } from './operator/sessions.ts'
import { forgetRemovedPayments, removeUnpaidPayments } from './payments/payments.ts'
import { forgetOldLinks } from './people/links.ts'
import { forgetEndedSessions } from './people/people.ts'
import { forgetOldFailures } from './people/sign-in-failures.ts'
import { forgetTwoFactorSetups } from './people/two-factor.ts'

const BATCH = 1_000

export type ChoreOptions = { isStopping: () => boolean; eventRetentionDays: number }

/** Each chore deletes one kind of old rows; its name is for the log. Chores can run at any time, and in several processes at once. */
export const CHORES: Record<string, (sql: Sql, options: ChoreOptions) => Promise<void>> = {
  'rate limit counters': forgetOldHits,
  'idempotent answers': forgetOldAnswers,
  'ended sessions': forgetEndedSessions,
  'ended sessions of the operator': forgetOperatorSessions,
  'expired links': forgetOldLinks,
  'unfinished set-ups of two-factor sign-in': forgetTwoFactorSetups,
  'failed sign-ins': (sql) => forgetOldFailures(sql),
  'secrets of rotated keys': forgetOldSecrets,
  'counts of removed challenges': forgetRemovedPayments,
  'counts of API requests': removeOldUsage,
  // In batches, so that no statement takes long.
  events: async (sql, { isStopping, eventRetentionDays }) => {
    while (!isStopping() && (await removeOldEvents(sql, eventRetentionDays, BATCH)) === BATCH);
  },
  'deliveries of deleted webhooks': async (sql, { isStopping }) => {
    while (!isStopping() && (await removeDeletedWebhooks(sql, BATCH)) === BATCH);
  },
  'API requests': async (sql, { isStopping }) => {
    // Until none is removed: clocks differ, so rows are not exactly in the order of their times, and a smaller batch need not be the last.
    while (!isStopping() && (await removeOldRequests(sql, BATCH)) > 0);
  },
  'unpaid challenges': async (sql, { isStopping }) => {
    while (!isStopping() && (await removeUnpaidPayments(sql, BATCH)) === BATCH);
  },
}
