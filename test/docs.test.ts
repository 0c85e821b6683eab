import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ERRORS } from '../contract/src/errors.ts'
import * as sdk from '../sdk/src/index.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const pages = [
  ...readdirSync(root).filter((name) => /\.(md|txt)$/.test(name)),
  ...['cli', 'sandboxd', 'sdk'].map((room) => `${room}/README.md`),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

test('docs/errors.md lists exactly the errors a caller can see, with their statuses', () => {
  const codes = Object.entries(ERRORS).map(([code, [status]]) => `${status} ${code}`)
  const rows = [...read('docs/errors.md').matchAll(/^\| (\d{3}) \| ([^|]+) \|/gm)].flatMap(([, status, cell = '']) =>
    [...(cell.split(' with ')[0] ?? '').matchAll(/`(\w+)`/g)].map(([, code]) => `${status} ${code}`),
  )
  expect(codes.length).toBeGreaterThan(15)
  expect([...new Set(rows)].sort()).toEqual(codes.sort())
})

test('every error class of the SDK is in docs/errors.md', () => {
  const classes = Object.keys(sdk).filter((name) => name.endsWith('Error'))
  const text = read('docs/errors.md')
  expect(classes.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
})

test('every link to a file works', () => {
  const links = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)/g)].map(([, to = '']) => ({ page, to })),
  )
  expect(links.length).toBeGreaterThan(5)
  const missing = links.filter(({ page, to }) => {
    try {
      readFileSync(join(root, dirname(page), to))
      return false
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== 'EISDIR'
    }
  })
  expect(missing.map(({ page, to }) => `${page} → ${relative('', to)}`)).toEqual([])
})

test('every table in the data diagram exists', () => {
  const [, drawing = ''] = /erDiagram\n([\s\S]*?)```/.exec(read('docs/architecture.md')) ?? []
  const drawn = [...drawing.matchAll(/^ {2}(\w+) [|}]\S+ (\w+)/gm)].flatMap(([, from = '', to = '']) => [from, to])
  const directory = 'server/src/store/migrations'
  const migrations = readdirSync(join(root, directory)).map((name) => read(join(directory, name)))
  const tables = migrations.flatMap((sql) => [...sql.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name]) => name))
  expect(drawn.length).toBeGreaterThan(10)
  expect(drawn.filter((name) => !tables.includes(name))).toEqual([])
})

test('docs/limits.md has the numbers of docs/operating.md', () => {
  const defaults = new Map(
    [...read('docs/operating.md').matchAll(/^\| (`[A-Z_`, ]+`) \| ([\d, ]+)/gm)].flatMap(([, names = '', values = '']) => {
      const numbers = values.split(',').map(Number)
      return [...names.matchAll(/[A-Z_]+/g)].map(([name], at) => [name, numbers[at]] as const)
    }),
  )
  const rows = [...read('docs/limits.md').matchAll(/^\|[^|]*\| ([\d,]+)[^|]*\|[^|]*\| `((?:\w+_)?MAX\w*)`/gm)]
  expect(rows).toHaveLength(6)
  for (const [, limit = '', name = ''] of rows)
    expect([name, Number(limit.replaceAll(',', ''))]).toEqual([name, defaults.get(name)])
})
