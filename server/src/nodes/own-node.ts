import { isId } from '../platform/ids.ts'
import { noSuchNode } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import { findNode, type NodeRow } from '../store/nodes/nodes.ts'

/** Who is calling, and for which account. */
export type Call = { accountId: string; actor: string }

/** Gives the same answer for another account's node, a deleted node and an unknown id. */
export async function ownNode(sql: Sql, call: Call, id: string): Promise<NodeRow> {
  // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
  const row = isId('node', id) ? await findNode(sql, call.accountId, id) : undefined
  if (!row) throw noSuchNode()
  return row
}
