import { createHash } from 'node:crypto'
import type { DBAdapter } from '@better-auth/core/db/adapter'
import type { BetterAuthOptions } from 'better-auth/minimal'
import type { Database, Sql } from '../../store/db.ts'
import {
  type Condition,
  countRows,
  deleteRows,
  insertRow,
  type PeopleTable,
  type Row,
  selectRows,
  updateRows,
} from '../../store/people/people.ts'

type Where = { field: string; value: unknown; operator: string; connector: string }[]
type Target = { model: string; where: Where }

const TOKEN = 'token_hash'
const hashOf = (token: unknown): Buffer => createHash('sha256').update(String(token)).digest()

/**
 * Runs better-auth on the pool or in one of our transactions, so that a person and their account are created together. Session tokens are
 * stored only as hashes. better-auth's own lists of sessions need the plain tokens, so we never use them (store/people/people.ts has its
 * own).
 *
 * `noteFault` receives every error from the store, because better-auth treats some of them as "not signed in".
 */
export function peopleAdapter(
  library: Pick<typeof import('@better-auth/core/db/adapter'), 'createAdapterFactory'>,
  sql: Sql | Database,
  noteFault: (error: unknown) => void,
) {
  const noting = async <T>(statement: Promise<T>): Promise<T> => {
    try {
      return await statement
    } catch (error) {
      noteFault(error)
      throw error
    }
  }

  type FieldName = (data: { model: string; field: string }) => string
  const custom = (nameOf: FieldName) => ({
    create: async ({ model, data }: { model: string; data: Row }) => {
      const row = TOKEN in data ? { ...data, [TOKEN]: hashOf(data[TOKEN]) } : data
      const inserted = await noting(insertRow(sql, model as PeopleTable, row))
      return TOKEN in data ? { ...inserted, [TOKEN]: data[TOKEN] } : inserted
    },
    findOne: async ({ model, where }: Target) =>
      shown(await noting(selectRows(sql, model as PeopleTable, conditions(where), { limit: 1 })), where)[0] ?? null,
    findMany: async ({
      model,
      where,
      limit,
      offset,
      sortBy,
    }: {
      model: string
      where?: Where
      limit: number
      offset?: number
      sortBy?: { field: string; direction: 'asc' | 'desc' }
    }) => {
      const range = {
        limit,
        ...(offset === undefined ? {} : { offset }),
        ...(sortBy ? { sortBy: { column: nameOf({ model, field: sortBy.field }), direction: sortBy.direction } } : {}),
      }
      return shown(await noting(selectRows(sql, model as PeopleTable, conditions(where), range)), where)
    },
    count: ({ model, where }: { model: string; where?: Where }) =>
      noting(countRows(sql, model as PeopleTable, conditions(where))),
    update: async ({ model, where, update }: Target & { update: unknown }) =>
      shown(await noting(updateRows(sql, model as PeopleTable, conditions(where), update as Row)), where)[0] ?? null,
    updateMany: async ({ model, where, update }: Target & { update: unknown }) =>
      (await noting(updateRows(sql, model as PeopleTable, conditions(where), update as Row))).length,
    delete: async ({ model, where }: Target) => {
      await noting(deleteRows(sql, model as PeopleTable, conditions(where)))
    },
    deleteMany: async ({ model, where }: Target) =>
      (await noting(deleteRows(sql, model as PeopleTable, conditions(where)))).length,
    // A challenge can be used once: if two requests present the same one, only one of them deletes the row.
    consumeOne: async ({ model, where }: Target) =>
      (await noting(deleteRows(sql, model as PeopleTable, conditions(where))))[0] ?? null,
  })
  return (options: BetterAuthOptions): DBAdapter =>
    library.createAdapterFactory({
      config: {
        adapterId: 'boltyard',
        supportsJSON: false,
        supportsDates: true,
        supportsBooleans: true,
        // Our own transaction is already atomic, so the library must not begin another.
        transaction: 'begin' in sql && ((work) => sql.begin((tx) => work(peopleAdapter(library, tx, noteFault)(options)))),
      },
      // biome-ignore lint/suspicious/noExplicitAny: the library's caller chooses the row type, which is unknown here
      adapter: ({ getFieldName }) => custom(getFieldName) as any,
    })(options)
}

function conditions(where: Where = []): Condition[] {
  return where.map(({ field, value, operator, connector }) => {
    if (connector !== 'AND') throw new Error('queries on people do not support OR')
    if (field !== TOKEN) return { column: field, operator, value }
    return { column: field, operator, value: Array.isArray(value) ? value.map(hashOf) : hashOf(value) }
  })
}

/** Returns the token only to a caller that queried by it. */
function shown(rows: Row[], where: Where = []): Row[] {
  const asked = where.find(({ field, operator }) => field === TOKEN && operator === 'eq')?.value
  return rows.map((row) => (TOKEN in row ? { ...row, [TOKEN]: asked ?? '' } : row))
}
