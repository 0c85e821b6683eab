import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { debianPostgres, startDebianPostgres } from '../../../testing/debian-postgres.ts'
import { listActivity } from '../../src/store/activity.ts'
import { type Database, openStore, type Sql } from '../../src/store/db.ts'
import { isUpToDate, type Migration, migrate, readMigrations } from '../../src/store/migrate.ts'
import { claimDelivery, type Delivery } from '../../src/store/payments/deliveries.ts'
import { findPayment, markPaid } from '../../src/store/payments/payments.ts'
import { lockingTransaction } from '../support/database.ts'
import { eventually, PROCESS, Server, type Store, startServer, storeEnv, track } from '../support/server.ts'

let stopDebian: (() => Promise<void>) | undefined
afterAll(() => stopDebian?.())

async function startDebian(programs: string): Promise<Store> {
  const { store, stop } = await startDebianPostgres(programs)
  stopDebian = stop
  return store
}

function promises(start: () => Promise<Store>): void {
  let store: Store
  let admin: Database
  let databases = 0

  beforeAll(async () => {
    store = await start()
    admin = track(openStore(store))
  })

  const freshDatabase = async (): Promise<Store> => {
    const database = `fresh_${databases++}`
    await admin.unsafe(`CREATE DATABASE ${database}`)
    return { ...store, database }
  }
  const connect = (address: Store): Database => track(openStore(address))
  const applied = async (sql: Sql): Promise<number[]> =>
    (await sql<{ version: number }[]>`SELECT version FROM schema_migrations ORDER BY version`).map(({ version }) => version)
  const tables = async (sql: Sql): Promise<string[]> =>
    (await sql<{ name: string }[]>`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`).map(
      ({ name }) => name,
    )
  const isLocked = async (sql: Sql): Promise<boolean> =>
    (
      await sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
    ).length > 0
  const known = readMigrations().map(({ version }) => version)

  test('all migrations are found, in order, each number once', () => {
    expect(known[0]).toBe(1)
    expect(known).toEqual([...new Set(known)].sort((a, b) => a - b))
  })

  test('with five concurrent runs on a new database, each migration is applied once, and all runs succeed', async () => {
    const address = await freshDatabase()
    const connections = Array.from({ length: 5 }, () => connect(address))
    await Promise.all(connections.map((sql) => migrate(sql)))
    for (const sql of connections) expect(await applied(sql)).toEqual(known)
    expect(await isLocked(connections[0] as Sql)).toBe(false)
  })

  test('migrating again changes nothing', async () => {
    const sql = connect(await freshDatabase())
    await migrate(sql)
    const before = await sql`SELECT * FROM schema_migrations`
    await migrate(sql)
    expect(await sql`SELECT * FROM schema_migrations`).toEqual(before)
  })

  test('a database of a newer version is refused and left unchanged, and the lock is released', async () => {
    const address = await freshDatabase()
    const sql = connect(address)
    await migrate(sql)
    await sql`INSERT INTO schema_migrations (version, name) VALUES (9999, 'future')`
    await expect(migrate(sql)).rejects.toMatchObject({ exitCode: 78, message: expect.stringMatching(/newer version.*9999/) })
    expect(await isLocked(sql)).toBe(false)
    const server = await new Server({ command: PROCESS, env: storeEnv(address, randomBytes(32).toString('base64')) }).launch()
    expect(await server.exited).toEqual({ code: 78, signal: null })
    expect(server.stderr.trim().split('\n')).toEqual([expect.stringMatching(/^DATABASE_URL: .*newer version/)])
    expect(await sql`SELECT 1 FROM settings`).toEqual([])
  })

  test('payments that were paid or redeemed before schema 7 stay so, with the same times and log entries', async () => {
    const sql = connect(await freshDatabase())
    const all = readMigrations()
    await migrate(sql, all.slice(0, 6))
    await sql.unsafe(`
      INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id,
                                    created_at, expires_at, settled_at, receipt, paid_at, redeemed_at, redeem_request_id)
      SELECT 'pay_' || n, 'acct_1', 'node_1', 'mpp', 21, 'tea', 'c', sha256(n::text::bytea), 'k', to_timestamp(n), to_timestamp(n),
             to_timestamp(n), 'receipt', CASE WHEN n > 1 THEN to_timestamp(n + 100) END, CASE WHEN n > 2 THEN to_timestamp(n + 200) END,
             CASE WHEN n > 3 THEN 'request' END
      FROM generate_series(1, 5) n`)
    const lines: [action: string, target: string][] = [
      ['payment.settled', 'pay_1'],
      ['payment.paid', 'pay_3'],
      ['payment.paid', 'pay_2'],
      ['key.created', 'key_1'],
      ['payment.paid', 'pay_4'],
    ]
    for (const [action, target] of lines)
      await sql`INSERT INTO activity (account_id, at, actor, action, target) VALUES ('acct_1', to_timestamp(${Number(target.slice(4)) + 100}), 'key_1', ${action}, ${target})`
    const before =
      await sql`SELECT id, floor(extract(epoch FROM at))::bigint AS at, actor, action, target, detail FROM activity ORDER BY id DESC`
    await migrate(sql, all)

    // The fifth payment was also paid, although it had no log entry.
    const [unheard, ...others] = await listActivity(sql, 'acct_1', 10)
    expect(unheard).toMatchObject({ at: 105, actor: 'node_1', action: 'payment.paid', target: 'pay_5' })
    expect(others).toEqual([...before])
    const payments = await Promise.all([1, 2, 3, 4, 5].map((n) => findPayment(sql, 'acct_1', `pay_${n}`)))
    expect(payments.map((payment) => [payment?.isPaid, payment?.redeemedAt])).toEqual([
      [false, null],
      [true, null],
      [true, 203],
      [true, 204],
      [true, 205],
    ])
    const claim = (requestId: string): Promise<Delivery | undefined> =>
      claimDelivery(sql, { accountId: 'acct_1', actor: 'key_1' }, 'pay_4', { requestId, holdSeconds: null })
    expect(await claim('another')).toBeUndefined()
    expect(await claim('request')).toMatchObject({ redeemedAt: 204, amountSat: 21 })
    await markPaid(sql, 'pay_1', 'key_1')
    await markPaid(sql, 'pay_2', 'key_1')
    expect((await listActivity(sql, 'acct_1', 10)).map(({ target }) => target)).toEqual([
      'pay_1',
      'pay_5',
      ...lines.map(([, target]) => target).reverse(),
    ])
  })

  test('C53: events that were written before schema 18 stay as they are, byte for byte', async () => {
    const sql = connect(await freshDatabase())
    const all = readMigrations()
    await migrate(sql, all.slice(0, 17))
    await sql`
      INSERT INTO events (account_id, seq, id, type, node_id, at, data)
      VALUES ('acct_1', 1, 'evt_1', 'payment.paid', 'node_1', to_timestamp(1), '{"paymentId" : "pay_1", "amountSat" : 21}'),
             ('acct_1', 2, 'evt_2', 'node.ready', 'node_1', to_timestamp(2), '{"nodeId":"node_1"}'),
             ('acct_1', 3, 'evt_3', 'key.created', NULL, to_timestamp(3), '{"keyId":"key_1"}')`
    const read = (): Promise<unknown[]> => sql`SELECT seq, id, type, node_id, at, data::text FROM events ORDER BY seq`
    const before = await read()
    await migrate(sql, all)
    expect(await read()).toEqual(before)
  })

  /** PostgreSQL 15.20 and 17.12 refuse to add a column with a default to a table whose row type is used by a parsed function. */
  test('no function that PostgreSQL keeps parsed uses the row type of a table, from schema 21 on', async () => {
    const sql = connect(await freshDatabase())
    const all = readMigrations()
    const found = async (): Promise<string[]> =>
      (
        await sql<{ name: string }[]>`
          SELECT DISTINCT proname AS name
          FROM pg_proc JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid
          LEFT JOIN pg_type ON refclassid = 'pg_type'::regclass AND refobjid = pg_type.oid
          WHERE prosqlbody IS NOT NULL AND pronamespace = 'public'::regnamespace
            AND (typrelid <> 0 OR refclassid = 'pg_class'::regclass)`
      ).map(({ name }) => name)
    await migrate(
      sql,
      all.filter(({ version }) => version <= 14),
    )
    expect(await found()).toEqual(['node_costs'])
    await migrate(
      sql,
      all.filter(({ version }) => version <= 21),
    )
    expect(await found()).toEqual([])
    // Simulates a database that ran an earlier text of migration 021, which did not replace the function yet.
    const [, asIn014 = ''] =
      /^CREATE (FUNCTION node_costs[^;]*;)/m.exec(all.find(({ version }) => version === 14)?.sql ?? '') ?? []
    await sql.unsafe(`CREATE OR REPLACE ${asIn014}`)
    expect(await found()).toEqual(['node_costs'])
    await migrate(sql)
    expect(await found()).toEqual([])
  })

  const one: Migration = { version: 1, name: '001-one.sql', sql: 'CREATE TABLE one (a int)' }
  const three: Migration = { version: 3, name: '003-three.sql', sql: 'CREATE TABLE three (a int)' }
  const second = (sql: string): Migration => ({ version: 2, name: '002-two.sql', sql })

  test.each([
    ['fails at the end', 'CREATE TABLE two (a int); INSERT INTO one VALUES (1); SELECT 1/0'],
    ['fails at the beginning', 'SELECT 1/0; CREATE TABLE two (a int)'],
    ['is not SQL', 'CREATE TABLE two (a int); CREATE TABEL nonsense'],
    [
      'breaks a constraint at commit',
      'CREATE TABLE two (a int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO two VALUES (1), (1)',
    ],
  ])('a migration that %s leaves nothing half-done, stops those after it, and can be repeated', async (_title, bad) => {
    const sql = connect(await freshDatabase())
    await expect(migrate(sql, [one, second(bad), three])).rejects.toThrow()
    expect(await applied(sql)).toEqual([1])
    expect(await tables(sql)).toEqual(['one', 'schema_migrations'])
    expect(await sql`SELECT * FROM one`).toEqual([])
    expect(await isLocked(sql)).toBe(false)
    await migrate(sql, [one, second('CREATE TABLE two (a int)'), three])
    expect(await applied(sql)).toEqual([1, 2, 3])
    expect(await tables(sql)).toEqual(['one', 'schema_migrations', 'three', 'two'])
  })

  test('a migration that arrives after one with a higher number is applied, once, before those that follow', async () => {
    const sql = connect(await freshDatabase())
    await migrate(sql, [one, three])
    const four: Migration = { version: 4, name: '004-four.sql', sql: 'CREATE TABLE four AS SELECT * FROM two' }
    const all = [one, second('CREATE TABLE two (a int)'), three, four]
    await migrate(sql, all)
    await migrate(sql, all)
    expect(await applied(sql)).toEqual([1, 2, 3, 4])
    expect(await tables(sql)).toEqual(['four', 'one', 'schema_migrations', 'three', 'two'])
  })

  test('a version that lacks a migration of the database is refused, whatever its number', async () => {
    const sql = connect(await freshDatabase())
    await migrate(sql, [one, second('CREATE TABLE two (a int)'), three])
    await expect(migrate(sql, [one, three])).rejects.toMatchObject({ exitCode: 78, message: expect.stringMatching(/schema 2;/) })
  })

  test('a database that lacks a migration is not up to date, even if it has the newest', async () => {
    const sql = connect(await freshDatabase())
    const all = readMigrations()
    await migrate(sql, [...all.slice(0, -2), ...all.slice(-1)])
    expect(await isUpToDate(sql)).toBe(false)
    await migrate(sql)
    expect(await isUpToDate(sql)).toBe(true)
  })

  test('an earlier version that is still running loses no statement to a migration, and the migration is applied', async () => {
    const address = await freshDatabase()
    const [serving, migrating] = [connect(address), connect(address)]
    const tables = second('CREATE TABLE payments (a int); CREATE TABLE claims (a int)')
    await migrate(migrating, [one, tables])
    const givesUpFirst = `DO $$ BEGIN
      ASSERT current_setting('lock_timeout')::interval * 2 <= current_setting('deadlock_timeout')::interval; END $$`
    const change = { ...three, sql: `${givesUpFirst}; ALTER TABLE payments ADD b int; ALTER TABLE claims ADD b int` }
    let migrated: Promise<void> | undefined
    await lockingTransaction(serving, async (transaction) => {
      // If the machine stalls, both the lock timeout and the deadlock timeout may pass, and PostgreSQL could cancel either side.
      await transaction`SET LOCAL deadlock_timeout = '10min'`
      await transaction`INSERT INTO claims VALUES (1)`
      migrated = migrate(migrating, [one, tables, change])
      await eventually(
        async () =>
          (await admin`SELECT 1 FROM pg_stat_activity WHERE datname = ${address.database} AND wait_event_type = 'Lock'`).length >
          0,
        'the migration, which has the payments, to wait for the claims',
      )
      await transaction`INSERT INTO payments VALUES (1)`
    })
    await migrated
    expect(await serving`SELECT payments.b FROM payments, claims`).toEqual([{ b: null }])
    expect(await applied(migrating)).toEqual([1, 2, 3])
  })

  test('a migration sometimes waits long enough for PostgreSQL to cancel an autovacuum that holds its table', async () => {
    const sql = connect(await freshDatabase())
    // PostgreSQL cancels an autovacuum only for a statement that has waited for the deadlock timeout, never for one that gives up earlier.
    const heldByAutovacuum = `DO $$ BEGIN
      IF current_setting('lock_timeout')::interval <= current_setting('deadlock_timeout')::interval THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available';
      END IF; END $$`
    await migrate(sql, [one, second(`${heldByAutovacuum}; CREATE TABLE two (a int)`)])
    expect(await applied(sql)).toEqual([1, 2])
  })

  test('a connection that breaks in the middle leaves nothing half-done, and a waiting instance continues', async () => {
    const address = await freshDatabase()
    const [breaking, waiting] = [connect(address), connect(address)]
    const long = second('CREATE TABLE two (a int); SELECT pg_sleep(600)')
    const broken = expect(migrate(breaking, [one, long])).rejects.toThrow()
    const sleeper = await eventually(async () => {
      const [row] = await admin<{ pid: number }[]>`
        SELECT pid FROM pg_stat_activity WHERE datname = ${address.database} AND wait_event = 'PgSleep'`
      return row?.pid
    }, 'the migration to sleep')
    const waited = migrate(waiting, [one, second('CREATE TABLE two (b int)'), three])
    await admin`SELECT pg_terminate_backend(${sleeper})`
    await broken
    await waited
    expect(await applied(waiting)).toEqual([1, 2, 3])
    expect(await waiting`SELECT column_name FROM information_schema.columns WHERE table_name = 'two'`).toEqual([
      { column_name: 'b' },
    ])
  })

  test('two services that start at once on a new database both serve it; no account is created', async () => {
    const env = { ...storeEnv(await freshDatabase(), randomBytes(32).toString('base64')), ROLE: 'api' }
    const [first, other] = await Promise.all([startServer({ command: PROCESS, env }), startServer({ command: PROCESS, env })])
    expect((await first.operator('GET', '/accounts')).json()).toEqual({ accounts: [], nextCursor: null })
    expect(existsSync(join(first.dataDir, 'first-run.json'))).toBe(false)
    const { key, accountId } = await first.newKey()
    expect((await other.send('GET', '/v1/api-key', { token: key })).json().accountId).toBe(accountId)
    await Promise.all([first.stop(), other.stop()])
  })

  test('of two services with different master keys that start at once on a fresh database, one serves it: the other exits 78', async () => {
    const address = await freshDatabase()
    const launch = () =>
      new Server({ command: PROCESS, env: { ...storeEnv(address, randomBytes(32).toString('base64')), ROLE: 'api' } }).launch()
    const ends = await Promise.all(
      [await launch(), await launch()].map(async (server) => {
        const serves = server.printed(/^boltyard ready/m).then(
          () => 'serves',
          () => server.exited,
        )
        const end = await Promise.race([server.exited, serves])
        await server.kill()
        return end
      }),
    )
    expect(ends).toContainEqual('serves')
    expect(ends).toContainEqual({ code: 78, signal: null })
  })
}

describe('on the embedded PostgreSQL', () => {
  promises(async () => (await startServer({ command: PROCESS, store: 'none' })).store)
})

const programs = debianPostgres()
if (!programs && process.env.CI !== 'true')
  process.stderr.write(
    '\n### SKIPPED: store.test.ts on a PostgreSQL of the distribution: /usr/lib/postgresql/*/bin/initdb is missing ###\n\n',
  )

describe.skipIf(!programs && process.env.CI !== 'true')('on the distribution’s PostgreSQL', () => {
  promises(() => {
    if (!programs) throw new Error('CI needs a PostgreSQL of the distribution: /usr/lib/postgresql/*/bin/initdb is missing')
    return startDebian(programs)
  })
})
