import { randomUUID } from 'node:crypto'
import type { Sql } from './db.ts'

/** Exactly one of any number of callers writes the value; all get the one that was written. */
export async function settingOnce(sql: Sql, name: string, value: Buffer): Promise<Buffer> {
  await sql`INSERT INTO settings (name, value) VALUES (${name}, ${value}) ON CONFLICT DO NOTHING`
  return findSetting(sql, name)
}

export async function replaceSetting(sql: Sql, name: string, value: Buffer): Promise<void> {
  await sql`UPDATE settings SET value = ${value} WHERE name = ${name}`
}

export async function hasSetting(sql: Sql, name: string): Promise<boolean> {
  return (await sql`SELECT 1 FROM settings WHERE name = ${name}`).length > 0
}

export async function findSetting(sql: Sql, name: string): Promise<Buffer> {
  const [row] = await sql<{ value: Buffer }[]>`SELECT value FROM settings WHERE name = ${name}`
  if (!row) throw new Error(`there is no setting ${name}`)
  return Buffer.from(row.value)
}

/**
 * Written once, because the objects of this installation on Kubernetes have this id as a label. It is also the `host` of the
 * cluster's nodes.
 */
export async function installationOf(sql: Sql): Promise<string> {
  return (await settingOnce(sql, 'installation', Buffer.from(randomUUID()))).toString('utf8')
}
