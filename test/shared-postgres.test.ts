import { expect, test } from 'vitest'
import { files } from './source-graph.ts'

test('a statement of a test about locks or connections names its database: all test files share one PostgreSQL', () => {
  const statements = files
    .filter(({ isTest }) => isTest)
    .flatMap(({ path, text }) =>
      [...text.matchAll(/\bFROM pg_(?:locks|stat_activity)\b[^`]*/g)].map(([statement]) => ({ path, statement })),
    )
  expect(statements.length).toBeGreaterThan(5)
  expect(statements.filter(({ statement }) => !/\bdatname = |\bpid = /.test(statement))).toEqual([])
})
