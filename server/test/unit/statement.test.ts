import { expect, test } from 'vitest'
import { type Sql, sqlOn } from '../../src/store/postgres/sql.ts'
import type { Query } from '../../src/store/postgres/statement.ts'

const sent: Query[] = []
const sql: Sql = sqlOn({
  run: async (query) => {
    sent.push(query)
    return []
  },
  runText: async () => [],
})
const queryOf = async (statement: PromiseLike<unknown>): Promise<Query | undefined> => {
  await statement
  return sent.at(-1)
}

test('values become numbered parameters, also in nested fragments; names are quoted, objects are jsonb', async () => {
  const inner = sql`b = ${2} AND ${sql('we"ird')} = ${'three'}`
  const query = await queryOf(sql`SELECT ${1}::int WHERE ${sql`${inner} OR c = ${null}`} AND d = ${sql.json({ a: [1] })}`)
  expect(query?.text).toBe('SELECT $1::int WHERE b = $2 AND "we""ird" = $3 OR c = $4 AND d = $5::jsonb')
  expect(query?.values).toEqual([1, 2, 'three', null, '{"a":[1]}'])
})

test('the same place in the source may get a value, then a fragment, then a value again', async () => {
  const at = (time: string | null) => sql`UPDATE t SET at = ${time === 'now' ? sql`now()` : time} WHERE id = ${7}`
  for (const time of ['yesterday', 'now', null, 'now', 'today']) {
    const query = await queryOf(at(time))
    if (time === 'now') expect(query).toMatchObject({ text: 'UPDATE t SET at = now() WHERE id = $1', values: [7] })
    else expect(query).toMatchObject({ text: 'UPDATE t SET at = $1 WHERE id = $2', values: [time, 7] })
  }
})

test('the same text has the same name, and a different text a different one', async () => {
  const select = (n: number) => sql`SELECT ${n}`
  const [one, two] = [await queryOf(select(1)), await queryOf(select(2))]
  expect(two?.name).toBe(one?.name)
  expect((await queryOf(sql`SELECT ${1} `))?.name).not.toBe(one?.name)
})

test('a statement is sent when it is awaited, and once', async () => {
  const before = sent.length
  const statement = sql`SELECT 1`
  expect(sent).toHaveLength(before)
  await Promise.all([statement, statement, statement.finally(() => undefined)])
  expect(sent).toHaveLength(before + 1)
})

test('undefined is refused: the driver would send null', async () => {
  const forgotten = {} as { id: string }
  const select = (id: string) => sql`SELECT 1 WHERE id = ${id}`
  await expect(select(forgotten.id)).rejects.toThrow('undefined')
  await select('x')
  await expect(select(forgotten.id)).rejects.toThrow('undefined')
})
