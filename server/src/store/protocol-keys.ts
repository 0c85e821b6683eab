import type { Sql } from './db.ts'

export type ProtocolKeyRow = { id: string; keyId: string; sealed: Buffer }

export async function keepProtocolKey(sql: Sql, key: ProtocolKeyRow): Promise<void> {
  await sql`INSERT INTO protocol_keys (id, key_id, sealed) VALUES (${key.id}, ${key.keyId}, ${key.sealed}) ON CONFLICT (id) DO NOTHING`
}

export async function findProtocolKey(sql: Sql, id: string): Promise<ProtocolKeyRow | undefined> {
  const [row] = await sql<ProtocolKeyRow[]>`SELECT id, key_id AS "keyId", sealed FROM protocol_keys WHERE id = ${id}`
  return row
}

export async function protocolKeysUnder(sql: Sql, keyId: string): Promise<ProtocolKeyRow[]> {
  return sql<ProtocolKeyRow[]>`SELECT id, key_id AS "keyId", sealed FROM protocol_keys WHERE key_id = ${keyId}`
}

/** Only replaces the value that was read: another replica may have resealed it meanwhile. */
export async function replaceProtocolKey(sql: Sql, oldKeyId: string, next: ProtocolKeyRow): Promise<void> {
  await sql`UPDATE protocol_keys SET key_id = ${next.keyId}, sealed = ${next.sealed} WHERE id = ${next.id} AND key_id = ${oldKeyId}`
}
