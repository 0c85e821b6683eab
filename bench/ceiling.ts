import postgres from 'postgres'
import { closedLoop } from './measure.ts'

/** The most that PostgreSQL gives one process of ours: a bare UPDATE … RETURNING of a payment, through the same client and as many connections. */
type Work = {
  connection: { host: string; port: number; user: string; password: string; database: string }
  ids: string[]
  callers: number
}

process.on('message', ({ connection, ids, callers }: Work) => {
  const sql = postgres({ ...connection, max: 20, onnotice: () => undefined })
  const update = (index: number) => sql`
    UPDATE gateway_payments SET expires_at = now() WHERE id = ${ids[index] ?? ''} AND expires_at > now() RETURNING id`
  const work = async () => {
    await Promise.all(Array.from({ length: 20 }, () => sql`SELECT 1`))
    const { perSecond } = await closedLoop(ids.length, callers, update)
    await sql.end()
    process.send?.(perSecond)
  }
  work().catch((error: unknown) => {
    process.stderr.write(`${error}\n`)
    process.exit(1)
  })
})
