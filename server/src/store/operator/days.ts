import type { Sql } from '../db.ts'

export type DayRow = {
  at: number
  accounts: number
  nodes: number
  paymentsReceived: number
  receivedSat: number
  paymentsPaid: number
}

/**
 * The last days in UTC, today included. Received payments are read account by account, each by one range of an index. Validated
 * ones are found by `paid_at`, not by a range of ids: a credential may be validated for the first time years after its payment
 * was created.
 */
export async function dailyTotals(sql: Sql, count: number): Promise<DayRow[]> {
  return sql<DayRow[]>`
    WITH today AS (SELECT date_trunc('day', now() AT TIME ZONE 'UTC') AS day),
    days AS (SELECT generate_series(day - ${count - 1} * interval '1 day', day, interval '1 day') AS day FROM today),
    since AS (SELECT min(day) AT TIME ZONE 'UTC' AS at FROM days),
    accounts_made AS (SELECT date_trunc('day', created_at AT TIME ZONE 'UTC') AS day, count(*) AS count FROM accounts, since
      WHERE created_at >= since.at GROUP BY 1),
    nodes_made AS (SELECT date_trunc('day', created_at AT TIME ZONE 'UTC') AS day, count(*) AS count FROM nodes, since
      WHERE created_at >= since.at GROUP BY 1),
    received AS (SELECT p.day, sum(p.count) AS count, sum(p.sat) AS sat FROM since, accounts a CROSS JOIN LATERAL (
        SELECT date_trunc('day', settled_at AT TIME ZONE 'UTC') AS day, count(*) AS count, sum(amount_sat) AS sat FROM gateway_payments
        WHERE account_id = a.id AND settled_at >= since.at GROUP BY 1) p GROUP BY p.day),
    paid AS (SELECT date_trunc('day', paid_at AT TIME ZONE 'UTC') AS day, count(*) AS count FROM paid_payments, since
      WHERE paid_at >= since.at GROUP BY 1)
    SELECT unix_seconds(days.day AT TIME ZONE 'UTC') AS at, coalesce(accounts_made.count, 0)::int AS accounts,
           coalesce(nodes_made.count, 0)::int AS nodes, coalesce(received.count, 0)::int AS "paymentsReceived",
           coalesce(received.sat, 0)::bigint AS "receivedSat", coalesce(paid.count, 0)::int AS "paymentsPaid"
    FROM days LEFT JOIN accounts_made USING (day) LEFT JOIN nodes_made USING (day) LEFT JOIN received USING (day) LEFT JOIN paid USING (day)
    ORDER BY days.day`
}
