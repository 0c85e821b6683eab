import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import { insertAccount } from '../../src/store/accounts.ts'
import { type Database, openStore, type Sql } from '../../src/store/db.ts'
import { migrate, readMigrations } from '../../src/store/migrate.ts'
import { track } from './server.ts'

/** The ledger and usage in a separate database, with the service's migrations and statements. */

export const PRICE_SAT = 100
export const PRICE_MSAT = PRICE_SAT * 1000
/** Neither the first second of a minute nor the first minute of a day, where mistakes in rounding would not show. */
export const NOON = 1_790_000_047

let databases = 0

/**
 * A database whose time can be set: functions that come before PostgreSQL's own in the search path replace its clock, so the service's
 * statements need no change.
 */
export class Clock {
  readonly sql: Sql

  constructor(sql: Sql) {
    this.sql = sql
  }

  async set(seconds: number): Promise<void> {
    await this.sql`UPDATE test_clock.hands SET at = to_timestamp(${seconds})`
  }

  async move(seconds: number): Promise<void> {
    await this.sql`UPDATE test_clock.hands SET at = at + ${seconds} * interval '1 second'`
  }
}

/** A new database whose clock can be set, with the migrations before version `until`. */
export async function freshDatabase(until = Number.POSITIVE_INFINITY): Promise<{ sql: Database; clock: Clock }> {
  const name = `credit_${databases++}_${randomBytes(4).toString('hex')}`
  const { store } = inject('postgres')
  // template0, because PostgreSQL cannot copy a database that is in use, and other tests connect to template1.
  const admin = openStore({ ...store, database: 'template1' }, 1)
  await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE template0`)
  await admin.end()
  const first = openStore({ ...store, database: name })
  await first.unsafe(`
    CREATE SCHEMA test_clock;
    CREATE TABLE test_clock.hands (at timestamptz NOT NULL);
    INSERT INTO test_clock.hands VALUES (to_timestamp(${NOON}));
    CREATE FUNCTION test_clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM test_clock.hands';
    CREATE FUNCTION test_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM test_clock.hands';
    ALTER DATABASE ${name} SET search_path = public, test_clock, pg_catalog`)
  await first.end()
  const sql = track(openStore({ ...store, database: name }))
  await migrate(
    sql,
    readMigrations().filter(({ version }) => version < until),
  )
  return { sql, clock: new Clock(sql) }
}

export async function newAccount(sql: Sql, creditMsat = 0): Promise<string> {
  const id = newId('acct')
  await insertAccount(sql, { id, name: 'test', creditMsat, reason: 'test', actor: 'test', isSelfRegistered: false })
  return id
}

export type NodeState = { status?: string; desired?: string; isDeleted?: boolean }

/** Inserts only the row: the node has no process. */
export async function newNode(
  sql: Sql,
  accountId: string,
  { status = 'ready', desired = 'running', isDeleted = false }: NodeState = {},
): Promise<string> {
  const id = newId('node')
  await sql`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history, status, desired_state, deleted_at)
    VALUES (${id}, ${accountId}, 'nowhere', '', 'x', '2m', 'limited', '', '{}', ${status}, ${desired}, ${isDeleted ? sql`now()` : null})`
  return id
}

export async function setNode(sql: Sql, id: string, { status, desired, isDeleted }: NodeState): Promise<void> {
  await sql`
    UPDATE nodes SET status = ${status ?? sql`status`}, desired_state = ${desired ?? sql`desired_state`},
      deleted_at = ${isDeleted === undefined ? sql`deleted_at` : isDeleted ? sql`now()` : null} WHERE id = ${id}`
}

/** The ledger is not deleted, because it is append-only. */
export async function forgetNodes(sql: Sql): Promise<void> {
  for (const table of ['top_ups', 'nodes', 'usage_intervals', 'credit_warnings']) await sql`DELETE FROM ${sql(table)}`
}

export type Interval = { from: number; to: number | null; isPosted: boolean }

export async function intervalsOf(sql: Sql, nodeId: string): Promise<Interval[]> {
  return [
    ...(await sql<Interval[]>`
      SELECT unix_minute(started_at) AS from, unix_minute(ended_at) AS to, posted_at IS NOT NULL AS "isPosted"
      FROM usage_intervals WHERE node_id = ${nodeId} ORDER BY started_at`),
  ]
}

export type Entry = { amountMsat: number; kind: string; reference: string | null }

export async function entriesOf(sql: Sql, accountId: string, kind?: string): Promise<Entry[]> {
  return [
    ...(await sql<Entry[]>`
      SELECT amount_msat AS "amountMsat", kind, reference FROM credit_entries
      WHERE account_id = ${accountId} ${kind === undefined ? sql`` : sql`AND kind = ${kind}`} ORDER BY id`),
  ]
}

export const sumOf = (entries: { amountMsat: number }[]): number => entries.reduce((sum, { amountMsat }) => sum + amountMsat, 0)

/** An independent calculation, minute by minute, from the price per day. */
export function costOf(priceMsat: number, minutes: Iterable<number>): number {
  const upTo = (minute: number): bigint => (BigInt(priceMsat) * BigInt(minute)) / 1440n
  let sum = 0n
  for (const minute of minutes) sum += upTo(minute + 1) - upTo(minute)
  return Number(sum)
}

export const minutes = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index)
