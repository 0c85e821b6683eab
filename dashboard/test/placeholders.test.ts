import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const source = join(import.meta.dirname, '../src')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => ({ path, text: readFileSync(join(source, path), 'utf8') }))

/** The exported query, up to the next one. */
const QUERY = /export (?:const|function) (\w+Query)\b[\s\S]*?(?=\nexport |$)/g

test('dashboard: data of the previous selection is marked as old wherever it is shown in the meantime', () => {
  const keeping = files.flatMap(({ text }) =>
    [...text.matchAll(QUERY)].flatMap(([body, name = '']) => (body.includes('keepPreviousData') ? [name] : [])),
  )
  expect(keeping).not.toEqual([])
  const users = files.filter(({ text }) => keeping.some((name) => new RegExp(`use\\w*Query\\(${name}\\(`).test(text)))
  expect(users.length).toBeGreaterThanOrEqual(keeping.length)
  // Only a query of the api folder may keep data: this test does not see others.
  const others = files.filter(({ path, text }) => !path.startsWith('api/') && text.includes('keepPreviousData'))
  const silent = users.filter(({ text }) => !/\bisPlaceholderData\b/.test(text))
  expect([...silent, ...others].map(({ path }) => path)).toEqual([])
})
