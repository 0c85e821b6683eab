import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { root } from '../source-graph.ts'

/** What people copy from the documentation, also where running it would need a cluster, a registry or another machine. */

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const pages = [
  'README.md',
  'cli/README.md',
  'sdk/README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]
const blocks = pages.flatMap((page) =>
  [...read(page).matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({ page, language, text })),
)
const shell = blocks.filter(({ language }) => language === 'sh')
/** Joined to single lines, without comments. */
const lines = shell.flatMap(({ page, text }) =>
  text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => ({ page, line: line.replace(/\s#\s.*$/, '') })),
)

test('every shell block is valid shell, every JSON and YAML block can be parsed', () => {
  expect(shell.length).toBeGreaterThan(20)
  for (const { text } of shell) execFileSync('bash', ['-n'], { input: text })
  for (const { text } of blocks.filter(({ language }) => language === 'json')) JSON.parse(text)
  const yaml = blocks.filter(({ language }) => language === 'yaml')
  for (const { text } of yaml) expect(parse(text)).toBeTypeOf('object')
  expect(yaml.length).toBeGreaterThan(1)
})

test('every boltyard command in a shell block exists and has the options it is given', () => {
  const sections = new Map(
    read('docs/cli.md')
      .split(/^#{2,3} /m)
      .map((section) => [section.split('\n')[0] ?? '', section]),
  )
  const common = sections.get('boltyard') ?? ''
  const calls = lines.flatMap(({ page, line }) =>
    [...line.matchAll(/(?:^|\$\(|npx )boltyard ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^|;&)]*)/g)].map(
      ([, first, second, rest = '']) => {
        const name = [`boltyard ${first} ${second}`, `boltyard ${first}`].find((one) => sections.has(one))
        return { page, line, name, options: rest.match(/(?<= )--[a-z-]+/g) ?? [] }
      },
    ),
  )
  const wrong = calls.filter(
    ({ name, options }) =>
      name === undefined || options.some((option) => !`${sections.get(name)}${common}`.includes(`  ${option}`)),
  )
  expect(wrong.map(({ page, line }) => `${page}: ${line}`)).toEqual([])
  expect(calls.length).toBeGreaterThan(15)
})

test('every API path that a shell block calls is in openapi.json', () => {
  const patterns = Object.keys(JSON.parse(read('docs/openapi.json')).paths).map(
    (path) => new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  )
  const called = lines.flatMap(({ page, line }) =>
    [
      ...line.matchAll(/(?:\$SERVICE_BASE_URL|127\.0\.0\.1:8402(?=\/v1))(\/[^\s"'?]*)|127\.0\.0\.1:8402(\/operator[^\s"'?]*)/g),
    ].map(([whole, path = '', operator]) => ({ page, path: operator ?? (whole.startsWith('$') ? `/v1${path}` : path) })),
  )
  expect(called.length).toBeGreaterThan(3)
  expect(called.filter(({ path }) => !patterns.some((pattern) => pattern.test(path)))).toEqual([])
})
