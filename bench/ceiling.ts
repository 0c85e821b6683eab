import postgres from 'postgres'
import { closedLoop } from './measure.ts'

/**
 * The most that PostgreSQL gives one process of ours: a bare UPDATE … RETURNING through the same client and as many connections, of the
 * rows that payments are (1.5 kB each), or of narrow ones (100 bytes).
 */
export type Ceiling = {
  connection: { host: string; port: number; user: string; password: string; database: string }
  ids: string[]
  /** Of the narrow rows. */
  accountId?: string
  callers: number
}

process.on('message', ({ connection, ids, accountId, callers }: Ceiling) => {
  const sql = postgres({ ...connection, max: 20, onnotice: () => undefined })
  const update = (index: number) =>
    accountId === undefined
      ? sql`UPDATE gateway_payments SET expires_at = now() WHERE id = ${ids[index] ?? ''} AND expires_at > now() RETURNING id`
      : sql`
        UPDATE paid_payments SET redeemed_at = now() WHERE account_id = ${accountId} AND id = ${ids[index] ?? ''} AND redeemed_at IS NULL
        RETURNING id`
  const work = async () => {
    // As much as the load warms up.
    for (let round = 0; round < 30; round++) await Promise.all(Array.from({ length: callers }, () => sql`SELECT 1`))
    const { perSecond } = await closedLoop(ids.length, callers, async (index) => {
      if ((await update(index)).length !== 1) throw new Error('a row that was not updated')
    })
    await sql.end()
    process.send?.(perSecond)
  }
  work().catch((error: unknown) => {
    process.stderr.write(`${error}\n`)
    process.exit(1)
  })
})
