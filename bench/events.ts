import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cursorOf } from '../server/src/events/cursor.ts'
import { killDaemons, Service } from '../testing/service.ts'
import { type Measure, median, timed } from './measure.ts'

const EVENTS = 1_000_000
const PAGE = 100
const READS = 200

/** Two events for each of 500,000 payments, as the service writes them, in one account's feed. */
async function fill(service: Service): Promise<{ accountId: string; lastSeq: number }> {
  const { accountId } = JSON.parse(readFileSync(join(service.dataDir, 'first-run.json'), 'utf8'))
  const sql = service.store(1)
  const { body } = await service.call('POST', '/v1/nodes')
  await service.untilReady(body.node.id)
  const made = { nodeId: body.node.id, amountSat: 100, description: 'bench', resource: 'GET /bench', protocol: 'mpp' }
  const { body: payment } = await service.call('POST', '/v1/gateway/payments', made)
  const [counter] = await sql<{ seq: number }[]>`SELECT last_seq::int AS seq FROM event_counters WHERE account_id = ${accountId}`
  const first = counter?.seq ?? 0
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, resource, challenge, payment_hash,
                                  protocol_key_id, created_at, expires_at, settled_at, receipt)
    SELECT 'pay_' || lpad(i::text, 20, '0'), account_id, node_id, protocol, amount_sat, description, resource, challenge,
           sha256(i::text::bytea), protocol_key_id, created_at, expires_at, now(), 'bench'
    FROM gateway_payments, generate_series(1, ${EVENTS / 2}::int) i WHERE id = ${payment.id}`
  await sql`
    INSERT INTO event_log (account_id, seq, id, type, at, payment_id)
    SELECT ${accountId}, ${first}::int + i, 'evt_' || lpad(i::text, 20, '0'),
           CASE WHEN i % 2 = 1 THEN 'payment.settled' ELSE 'payment.paid' END, now(), 'pay_' || lpad(((i + 1) / 2)::text, 20, '0')
    FROM generate_series(1, ${EVENTS}::int) i`
  await sql`
    INSERT INTO event_counters (account_id, last_seq) VALUES (${accountId}, ${first + EVENTS})
    ON CONFLICT (account_id) DO UPDATE SET last_seq = excluded.last_seq`
  await sql`ANALYZE`
  await sql.end()
  return { accountId, lastSeq: first + EVENTS }
}

/** Pages from random places of a long feed, over HTTP. */
export async function benchEvents(): Promise<Measure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'boltyard-bench-'))
  const service = new Service(dataDir)
  try {
    await service.start()
    const { accountId, lastSeq } = await fill(service)
    const took: number[] = []
    for (let read = 0; read < READS; read++) {
      const cursor = cursorOf(accountId, Math.floor(Math.random() * (lastSeq - PAGE)))
      const path = `/v1/events?limit=${PAGE}&cursor=${cursor}`
      took.push(
        await timed(async () => {
          const { status, body } = await service.call('GET', path)
          if (status !== 200 || body.events.length !== PAGE) throw new Error(`${status} with ${body.events?.length} events`)
        }),
      )
    }
    return [
      {
        name: `a page of ${PAGE} in a feed of 1,000,000 events: median`,
        value: median(took),
        unit: 'ms',
        target: { op: '≤', value: 10 },
      },
    ]
  } finally {
    await service.stop()
    killDaemons(dataDir)
    rmSync(dataDir, { recursive: true, force: true })
  }
}
