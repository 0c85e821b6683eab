import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const LINE = /C\d+|S\d\d|P\d+|B\d+|D\d+|(?:MPP|L402) §?\d+|selling \d+|security \d+|Reliability \d+/.source

/** The contract lines named at the start of a title, comment or bracket, up to the first colon: `C38, MPP 8, 10: …` names three. */
function linesNamedIn(text: string): string[] {
  const titles = text.matchAll(new RegExp(`(?:['"\`(]|/\\*\\* |// )((?:${LINE})\\b[^:'"\`\\n]*)`, 'g'))
  return [...titles].flatMap(([, title = '']) => {
    let list = ''
    return [...title.matchAll(new RegExp(`\\b(${LINE})\\b|(?:, | and )(\\d+)\\b`, 'g'))].map(([, name, number = '']) => {
      if (name === undefined) return `${list}${number}`
      list = name.replace(/\d+$/, '')
      return name
    })
  })
}

const testFiles = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  (path) => path.endsWith('.test.ts') && path !== 'test/contract.test.ts' && !/(^|\/)(node_modules|dist)\//.test(path),
)
const named = new Map(
  testFiles.flatMap((path) => linesNamedIn(readFileSync(join(root, path), 'utf8')).map((line) => [line, path])),
)

const pages = readdirSync(join(root, 'docs/contract')).map((name) => readFileSync(join(root, 'docs/contract', name), 'utf8'))
const lines = new Map(
  pages.flatMap((page) =>
    [...page.matchAll(new RegExp(`^- \\*\\*(${LINE})\\*\\* ((?:.|\\n  )+)`, 'gm'))].map(([, name = '', text = '']) => [
      name,
      text,
    ]),
  ),
)

test('several lines in one title are each found', () => {
  expect(
    linesNamedIn("test('C38, MPP 8, 10 and L402 §6: one', …)\ntest('C41 C17: two', …)\n/** Reliability 1, 7 and 8 at */"),
  ).toEqual([...['C38', 'MPP 8', 'MPP 10', 'L402 §6', 'C41', 'C17', 'Reliability 1', 'Reliability 7', 'Reliability 8']])
})

test('every line named by a test is in docs/contract', () => {
  expect([...named].filter(([line]) => !lines.has(line)).map(([line, path]) => `${line} in ${path}`)).toEqual([])
})

test('every line of docs/contract has a test, or says why it has none', () => {
  const untested = [...lines].filter(([line, text]) => !named.has(line) && !text.includes('*No test')).map(([line]) => line)
  expect(untested).toEqual([])
})

test('a line that says “No test” has no test; one that says “No test yet” may have one', () => {
  const says = /\*No test(?! yet)/
  expect([...lines].filter(([line, text]) => named.has(line) && says.test(text)).map(([line]) => line)).toEqual([])
})

test('the lists are complete, and no line is repeated', () => {
  const count = (prefix: string): number => [...lines.keys()].filter((line) => new RegExp(`^${prefix}\\d+$`).test(line)).length
  expect(['C', 'S', 'MPP ', 'L402 ', 'P', 'selling ', 'D'].map(count)).toEqual([89, 54, 59, 62, 32, 10, 15])
  expect(pages.join('\n').match(/^- \*\*/gm)).toHaveLength(lines.size)
})
