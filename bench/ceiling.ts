import { openStore } from '../server/src/store/db.ts'
import { closedLoop } from './measure.ts'

/**
 * The upper bound of PostgreSQL for one process: a bare UPDATE … RETURNING through the service's own client, with as many
 * connections as the service has, on rows as large as payments (1.5 kB each) or on narrow ones (a hundred bytes).
 */
export type Ceiling = {
  connection: { host: string; port: number; user: string; password: string; database: string }
  ids: string[]
  /** Only for narrow rows. */
  accountId?: string
  callers: number
}

process.on('message', ({ connection, ids, accountId, callers }: Ceiling) => {
  const sql = openStore(connection)
  const update = (id = '') =>
    accountId === undefined
      ? sql`UPDATE gateway_payments SET expires_at = now() WHERE id = ${id} AND expires_at > now() RETURNING id`
      : sql`
        UPDATE paid_payments SET redeemed_at = now() WHERE account_id = ${accountId} AND id = ${id} AND redeemed_at IS NULL
        RETURNING id`
  const work = async () => {
    // Makes every connection prepare and plan the statement first, as the service's connections have already done.
    for (let round = 0; round < 30; round++) await Promise.all(Array.from({ length: callers }, () => update()))
    const { perSecond } = await closedLoop(ids.length, callers, async (index) => {
      if ((await update(ids[index])).length !== 1) throw new Error('a row that was not updated')
    })
    await sql.end()
    process.send?.(perSecond)
  }
  work().catch((error: unknown) => {
    process.stderr.write(`${error}\n`)
    process.exit(1)
  })
})
