import { createHash } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ChangeNotifier } from '../server/src/events/change-notifier.ts'
import { openDataDir } from '../server/src/platform/data-dir.ts'
import { startEmbedded } from '../server/src/platform/embedded-postgres.ts'
import { newId } from '../server/src/platform/ids.ts'
import { lookUpUser } from '../server/src/platform/linux.ts'
import { createLogger } from '../server/src/platform/log.ts'
import { openStore } from '../server/src/store/db.ts'
import { migrate } from '../server/src/store/migrate.ts'
import { markPaidByProof } from '../server/src/store/payments/payments.ts'

/**
 * What it costs to notify of a payment. Runs the statement of a first validation on 16 connections in three ways: alone, with NOTIFY in its
 * transaction (a trigger), and with one notification that the process sends later for many payments. PostgreSQL writes to disk as in
 * production.
 */

const CONNECTIONS = 16
const PER_ROUND = Number(process.argv[2] ?? 4_000)
const ROUNDS = Number(process.argv[3] ?? 5)

const directory = mkdtempSync(join(tmpdir(), 'boltyard-notify-'))
chmodSync(directory, 0o711)
openDataDir(directory, 'shared')
const user = process.getuid?.() === 0 ? lookUpUser('postgres', 'nobody') : undefined
const postgres = await startEmbedded(directory, user, () => undefined)
const sql = openStore(postgres.connection, CONNECTIONS)
await migrate(sql)
const notifier = new ChangeNotifier({ sql, log: await createLogger('warn') })
const accounts = Array.from({ length: 10 }, () => newId('acct'))
let heard = 0
sql.listen('boltyard_changed', { onNotify: () => heard++, onStart: () => undefined })

const TRIGGER = `
  CREATE TRIGGER payments_are_told AFTER INSERT ON paid_payments FOR EACH ROW EXECUTE FUNCTION tell_of_change('payments')`
const WAYS = {
  alone: { before: '', note: (_accountId: string): void => undefined },
  'NOTIFY in the transaction': { before: TRIGGER, note: (_accountId: string): void => undefined },
  'NOTIFY afterwards, together': {
    before: '',
    note: (accountId: string): void => notifier.note(accountId, 'payments', 'activity'),
  },
}

async function round({
  before,
  note,
}: (typeof WAYS)[keyof typeof WAYS]): Promise<{ perSecond: number; p50: number; p99: number }> {
  const rows = Array.from({ length: PER_ROUND }, (_, index) => ({ id: newId('pay'), accountId: accounts[index % 10] ?? '' }))
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id,
                                  created_at, expires_at, settled_at, receipt)
    SELECT id, account, 'node', 'mpp', 10, 'test', repeat(md5(id), 30), sha256(id::bytea), 'test', now(), now(), now(), 'receipt'
    FROM unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ accountId }) => accountId)}::text[]) AS new (id, account)`
  if (before) await sql.unsafe(before)
  await sql.unsafe('CHECKPOINT')
  const times: number[] = []
  const began = performance.now()
  const work = async (): Promise<void> => {
    for (let row = rows.pop(); row; row = rows.pop()) {
      const sent = performance.now()
      const proof = { challengeBeginning: '', paymentHash: createHash('sha256').update(row.id).digest() }
      if (!(await markPaidByProof(sql, { accountId: row.accountId, actor: 'bench' }, row.id, proof))) throw new Error('not paid')
      note(row.accountId)
      times.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, work))
  const perSecond = PER_ROUND / ((performance.now() - began) / 1000)
  if (before) await sql.unsafe('DROP TRIGGER payments_are_told ON paid_payments')
  times.sort((a, b) => a - b)
  return { perSecond, p50: times[times.length >> 1] ?? 0, p99: times[Math.floor(times.length * 0.99)] ?? 0 }
}

const median = (numbers: number[]): number => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? 0
const results = new Map<string, Awaited<ReturnType<typeof round>>[]>()
await round(WAYS.alone)
for (let turn = 0; turn < ROUNDS; turn++)
  for (const [name, way] of Object.entries(WAYS)) results.set(name, [...(results.get(name) ?? []), await round(way)])
for (const [name, rounds] of results) {
  const [perSecond, p50, p99] = (['perSecond', 'p50', 'p99'] as const).map((key) => median(rounds.map((one) => one[key])))
  console.log(`${name}: ${perSecond?.toFixed(0)} per second, p50 ${p50?.toFixed(1)} ms, p99 ${p99?.toFixed(1)} ms`)
}
console.log(`notifications heard: ${heard}`)
await notifier.close()
await sql.end()
await postgres.stop()
rmSync(directory, { recursive: true })
