import { type IdPrefix, isId } from '../../platform/ids.ts'
import { badCursor } from '../../problems.ts'
import type { Fragment, Sql } from '../db.ts'

export type Page = {
  /** Undefined: all. */
  limit?: number | undefined
  /** The id of the last row of the page before. */
  cursor?: string | undefined
  order?: 'oldest' | 'newest' | undefined
}
export type ListParams = Page & { search?: string | undefined }

/** The end of a query whose WHERE clause has begun. Ids begin with the creation time, so their order is that of creation. */
export function pageOf(sql: Sql, id: Fragment, { limit, cursor, order = 'oldest' }: Page): Fragment {
  const isNewest = order === 'newest'
  const after = cursor === undefined ? sql`` : isNewest ? sql`AND ${id} < ${cursor}` : sql`AND ${id} > ${cursor}`
  const most = limit === undefined ? sql`` : sql`LIMIT ${limit}`
  return sql`${after} ORDER BY ${id} ${isNewest ? sql`DESC` : sql``} ${most}`
}

/** A pattern for ILIKE that matches the text literally. */
export const containing = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`

/**
 * One page of a list that is ordered by id. One extra row shows whether there is a next page. Without a limit, it has all rows.
 */
export async function listPage<P extends ListParams, R extends { id: string }>(
  params: P,
  prefix: IdPrefix,
  list: (params: P) => Promise<R[]>,
): Promise<{ items: R[]; nextCursor: string | null }> {
  const { limit, cursor, search } = params
  if (cursor !== undefined && !isId(prefix, cursor)) throw badCursor()
  // PostgreSQL cannot store a NUL character, so nothing can match.
  const trimmed = search?.trim() || undefined
  if (Object.values(params).some((value) => typeof value === 'string' && value.includes('\0')))
    return { items: [], nextCursor: null }
  const rows = await list({ ...params, search: trimmed, limit: limit === undefined ? undefined : limit + 1 })
  if (limit === undefined || rows.length <= limit) return { items: rows, nextCursor: null }
  const items = rows.slice(0, limit)
  return { items, nextCursor: items.at(-1)?.id ?? null }
}
