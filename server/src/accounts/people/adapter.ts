import { createHash } from 'node:crypto'
import type { DBAdapter } from '@better-auth/core/db/adapter'
import type { BetterAuthOptions } from 'better-auth/minimal'
import type { Sql } from '../../store/db.ts'
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
import type { Transactions } from '../../store/transactions.ts'

type Where = { field: string; value: unknown; operator: string; connector: string }[]
type Target = { model: string; where: Where }

const TOKEN = 'token_hash'
const hashOf = (token: unknown): Buffer => createHash('sha256').update(String(token)).digest()

/**
 * better-auth over the connections that everything else uses: so that a person and the account are one transaction, and the token of a
 * session is in the database as its hash only. better-auth compares tokens that it has listed itself; those lists are therefore never
 * asked of it (store/people.ts has its own).
 *
 * `noteFault` is told of everything the store refuses: better-auth takes some of it for "nobody is signed in".
 */
export function peopleAdapter(
  { createAdapterFactory }: typeof import('@better-auth/core/db/adapter'),
  transactions: Transactions,
  noteFault: (error: unknown) => void,
) {
  const store = async <T>(connection: Promise<Sql>, work: (sql: Sql) => Promise<T>): Promise<T> => {
    try {
      return await work(await connection)
    } catch (error) {
      noteFault(error)
      throw error
    }
  }
  const read = <T>(work: (sql: Sql) => Promise<T>): Promise<T> => store(transactions.reader(), work)
  const write = <T>(work: (sql: Sql) => Promise<T>): Promise<T> => store(transactions.writer(), work)

  type FieldName = (data: { model: string; field: string }) => string
  const custom = (nameOf: FieldName) => ({
    create: async ({ model, data }: { model: string; data: Row }) => {
      const row = TOKEN in data ? { ...data, [TOKEN]: hashOf(data[TOKEN]) } : data
      const inserted = await write((sql) => insertRow(sql, model as PeopleTable, row))
      return TOKEN in data ? { ...inserted, [TOKEN]: data[TOKEN] } : inserted
    },
    findOne: async ({ model, where }: Target) =>
      shown(await read((sql) => selectRows(sql, model as PeopleTable, conditions(where), { limit: 1 })), where)[0] ?? null,
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
      return shown(await read((sql) => selectRows(sql, model as PeopleTable, conditions(where), range)), where)
    },
    count: ({ model, where }: { model: string; where?: Where }) =>
      read((sql) => countRows(sql, model as PeopleTable, conditions(where))),
    update: async ({ model, where, update }: Target & { update: unknown }) =>
      shown(await write((sql) => updateRows(sql, model as PeopleTable, conditions(where), update as Row)), where)[0] ?? null,
    updateMany: async ({ model, where, update }: Target & { update: unknown }) =>
      (await write((sql) => updateRows(sql, model as PeopleTable, conditions(where), update as Row))).length,
    delete: async ({ model, where }: Target) => {
      await write((sql) => deleteRows(sql, model as PeopleTable, conditions(where)))
    },
    deleteMany: async ({ model, where }: Target) =>
      (await write((sql) => deleteRows(sql, model as PeopleTable, conditions(where)))).length,
    // A challenge is signed once: of two that bring the same one, the DELETE decides.
    consumeOne: async ({ model, where }: Target) =>
      (await write((sql) => deleteRows(sql, model as PeopleTable, conditions(where))))[0] ?? null,
  })
  return (options: BetterAuthOptions): DBAdapter => {
    const adapter: DBAdapter = createAdapterFactory({
      config: {
        adapterId: 'boltyard',
        supportsJSON: false,
        supportsDates: true,
        supportsBooleans: true,
        transaction: (work) => transactions.run(() => work(adapter)),
      },
      // biome-ignore lint/suspicious/noExplicitAny: the library lets the caller choose the type of a row, which only it can know
      adapter: ({ getFieldName }) => custom(getFieldName) as any,
    })(options)
    return adapter
  }
}

function conditions(where: Where = []): Condition[] {
  return where.map(({ field, value, operator, connector }) => {
    if (connector !== 'AND') throw new Error('people cannot be looked for by OR')
    if (field !== TOKEN) return { column: field, operator, value }
    return { column: field, operator, value: Array.isArray(value) ? value.map(hashOf) : hashOf(value) }
  })
}

/** Who asked by the token gets it back; nobody else ever does. */
function shown(rows: Row[], where: Where = []): Row[] {
  const asked = where.find(({ field, operator }) => field === TOKEN && operator === 'eq')?.value
  return rows.map((row) => (TOKEN in row ? { ...row, [TOKEN]: asked ?? '' } : row))
}
