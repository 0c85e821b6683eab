import { beforeAll, beforeEach, expect, test } from 'vitest'
import { isStoreDown } from '../../src/platform/store-down.ts'
import { type Database, openStore } from '../../src/store/db.ts'
import { emptyDatabase } from '../support/commands.ts'
import { lockingTransaction, newDatabase } from '../support/database.ts'
import { eventually, type Store, track } from '../support/server.ts'

let address: Store
let admin: Database
let sql: Database

beforeAll(async () => {
  address = (await newDatabase(1)).store
  admin = track(openStore(address, 2))
  await admin`CREATE TABLE things (id int PRIMARY KEY, big bigint, at timestamptz, raw bytea, detail jsonb)`
})
beforeEach(async () => {
  await admin`TRUNCATE things`
  sql = track(openStore(address, 2))
})

const errorOf = (work: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(work).then(
    () => undefined,
    (error: unknown) => error,
  )
/** Waits until a connection runs a statement that starts with this text. */
const pidOf = (text: string): Promise<number> =>
  eventually(async () => {
    const [row] = await admin<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE ${`${text}%`} AND pid <> pg_backend_pid() ORDER BY query_start DESC LIMIT 1`
    return row?.pid
  }, text)

test('values come back as they went in; an integer that a number cannot hold is refused, not rounded', async () => {
  const thing = { id: 1, big: 2 ** 53 - 1, at: new Date(1_234), raw: Buffer.from([0, 255]), detail: [{ a: 'ä"\\' }] }
  await sql`INSERT INTO things VALUES (${thing.id}, ${thing.big}, ${thing.at}, ${thing.raw}, ${sql.json(thing.detail)})`
  expect(await sql`SELECT * FROM things WHERE raw = ANY (${[thing.raw]}) AND id = ANY (${[1, 2]})`).toEqual([thing])
  await sql`UPDATE things SET big = big + 1`
  await expect(sql`SELECT big FROM things`).rejects.toThrow('too large')
  expect(await sql`SELECT id FROM things`).toEqual([{ id: 1 }])
})

test('a statement whose connection breaks says that the store is down; the next one gets another connection', async () => {
  const broken = errorOf(sql`SELECT pg_sleep(600)`)
  await admin`SELECT pg_terminate_backend(${await pidOf('SELECT pg_sleep')})`
  expect(isStoreDown(await broken)).toBe(true)
  expect(await sql`SELECT 1 AS one`).toEqual([{ one: 1 }])
})

test('a statement that needs a file PostgreSQL has lost says that the store is down', async () => {
  const statement = sql.unsafe(`CREATE FUNCTION lost() RETURNS int LANGUAGE c AS 'a-library-that-is-gone', 'lost'`)
  expect(isStoreDown(await errorOf(statement))).toBe(true)
})

test('a transaction whose connection breaks between two statements says so, and the process lives on', async () => {
  const broken = sql.begin(async (transaction) => {
    await transaction`INSERT INTO things (id) VALUES (1)`
    const pid = await pidOf('INSERT INTO things')
    await admin`SELECT pg_terminate_backend(${pid})`
    await eventually(async () => (await admin`SELECT 1 FROM pg_stat_activity WHERE pid = ${pid}`).length === 0, 'it to be gone')
    await transaction`INSERT INTO things (id) VALUES (2)`
  })
  expect(isStoreDown(await errorOf(broken))).toBe(true)
  expect(await sql`SELECT 1 FROM things`).toEqual([])
})

test('a transaction in which a statement failed is not reported as committed, even if its error was caught', async () => {
  const work = sql.begin(async (transaction) => {
    await transaction`INSERT INTO things (id) VALUES (1)`
    await errorOf(transaction`INSERT INTO things (id) VALUES (1)`)
  })
  await expect(work).rejects.toThrow('rolled back')
  expect(await sql`SELECT 1 FROM things`).toEqual([])
})

test('statements of a transaction that are sent at once run one after the other, and an error of the work undoes them all', async () => {
  const insert = (fails: boolean) =>
    sql.begin(async (transaction) => {
      await Promise.all([1, 2, 3].map((id) => transaction`INSERT INTO things (id) VALUES (${id})`))
      if (fails) throw new Error('no')
    })
  await expect(insert(true)).rejects.toThrow('no')
  expect(await sql`SELECT 1 FROM things`).toEqual([])
  await insert(false)
  expect(await sql`SELECT id FROM things ORDER BY id`).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }])
})

test('a table that another version alters under a prepared statement can still be read', async () => {
  const read = () => sql`SELECT * FROM altered`
  await admin`CREATE TABLE altered (a int)`
  await Promise.all([read(), read()])
  await admin`ALTER TABLE altered ADD COLUMN b int`
  await admin`INSERT INTO altered VALUES (1, 2)`
  for (const rows of await Promise.all([read(), read(), read()])) expect(rows).toEqual([{ a: 1, b: 2 }])
})

test('a listener is notified, and learns that it may have missed something after a lost connection', async () => {
  const heard: string[] = []
  let starts = 0
  const stop = sql.listen('test_channel', { onNotify: (payload) => heard.push(payload), onStart: () => starts++ })
  await eventually(() => starts === 1, 'listening to begin')
  await admin`SELECT pg_notify('test_channel', 'one')`
  await eventually(() => heard.includes('one'), 'the first')
  await admin`SELECT pg_terminate_backend(${await pidOf('LISTEN "test_channel"')})`
  await eventually(() => starts === 2, 'listening to begin again')
  await admin`SELECT pg_notify('test_channel', 'two')`
  await eventually(() => heard.includes('two'), 'the second')
  stop()
})

test('a listener that is closed while it connects leaves no connection behind, whose loss would end the process', async () => {
  const empty = await emptyDatabase()
  const closed = openStore(empty, 1)
  closed.listen('test_channel', { onNotify: () => undefined, onStart: () => undefined })
  await closed.end()
  const open = () => admin`SELECT 1 FROM pg_stat_activity WHERE datname = ${empty.database}`
  await eventually(async () => (await open()).length === 0, 'its connection to be gone')
})

test('closing waits for running statements, and then the store is down', async () => {
  let ended: Promise<void> | undefined
  let isEnded = false
  let running: Promise<unknown> | undefined
  await lockingTransaction(admin, async (transaction) => {
    await transaction`LOCK TABLE things`
    running = errorOf(sql`SELECT count(*) FROM things`)
    await pidOf('SELECT count(*) FROM things')
    ended = sql.end({ timeoutMs: 600_000 }).finally(() => {
      isEnded = true
    })
    await transaction`SELECT 1`
    expect(isEnded).toBe(false)
  })
  await ended
  expect(await running).toBeUndefined()
  expect(isStoreDown(await errorOf(sql`SELECT 1`))).toBe(true)
})

test('closing aborts statements that are too slow', async () => {
  const slow = errorOf(sql`SELECT pg_sleep(601)`)
  await pidOf('SELECT pg_sleep(601)')
  await sql.end({ timeoutMs: 100 })
  expect(isStoreDown(await slow)).toBe(true)
})

test('an unreachable server means that the store is down', async () => {
  const nowhere = track(openStore({ ...address, host: '/nowhere' }, 1))
  expect(isStoreDown(await errorOf(nowhere`SELECT 1`))).toBe(true)
})
