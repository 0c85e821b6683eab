import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'
import { expect, test } from 'vitest'

/**
 * Text that somebody wrote may be in any script. Without `<bdi>` or `dir="auto"`, a name such as "متجر 18" reorders the words
 * around it, and is cut off at its beginning.
 */

const source = fileURLToPath(new URL('../src', import.meta.url))

/** Fields of the API, and local names for them, that hold what somebody wrote. */
const WRITTEN = /^(name|description|reason|email|emails|(node|key|account|actor|target|webhook)Name|search)$/

/** Names that we chose: of menus, groups of results, secrets, scopes, steps, periods and fields. In `row.tsx`, `name` is an element already. */
const OURS = new Set([
  'components/dialogs/secrets-dialog.tsx: name',
  'components/layout/navigation.tsx: name',
  'components/layout/tabbed-page.tsx: name',
  'components/palette/results.tsx: name',
  'pages/developers/key-list.tsx: name',
  'pages/operator/shell.tsx: name',
  'pages/operator/statistics.tsx: name',
  'pages/overview/funnel.tsx: name',
  'pages/payments/payment.tsx: name',
  'pages/payments/timeline.tsx: name',
  'pages/payments/totals.tsx: name',
  'pages/settings/you.tsx: name',
  'pages/webhooks/choices.tsx: name',
  'pages/activity/row.tsx: name',
])

type Node = { type: string; [key: string]: any }

/** What an expression renders, without the conditions that decide whether it does. */
function renderedNames(node: Node | null): string[] {
  switch (node?.type) {
    case 'Identifier':
      return [node.name]
    case 'MemberExpression':
      return [node.property.name ?? '']
    case 'ChainExpression':
    case 'TSNonNullExpression':
    case 'ParenthesizedExpression':
      return renderedNames(node.expression)
    case 'ConditionalExpression':
      return [...renderedNames(node.consequent), ...renderedNames(node.alternate)]
    case 'LogicalExpression':
      return [...(node.operator === '&&' ? [] : renderedNames(node.left)), ...renderedNames(node.right)]
    case 'BinaryExpression':
      return node.operator === '+' ? [...renderedNames(node.left), ...renderedNames(node.right)] : []
    case 'TemplateLiteral':
      return node.expressions.flatMap(renderedNames)
    case 'CallExpression':
      // Functions that return elements are left out, because their own expressions are checked.
      return /^(map|flatMap)$/.test(node.callee.property?.name ?? '')
        ? []
        : [
            ...renderedNames(node.callee.type === 'MemberExpression' ? node.callee.object : node.callee),
            ...node.arguments.flatMap(renderedNames),
          ]
    default:
      return []
  }
}

const isIsolating = ({ openingElement: { name, attributes } }: Node): boolean =>
  name.name === 'bdi' || attributes.some((attribute: Node) => attribute.name?.name === 'dir' && attribute.value?.value === 'auto')

function* unguarded(node: Node, isGuarded = false): Generator<string> {
  const guarded = isGuarded || (node.type === 'JSXElement' && isIsolating(node))
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type !== 'string') continue
      // Attributes are checked where they become elements: in the component that gets them.
      if (child.type === 'JSXExpressionContainer' && /^JSX(Element|Fragment)$/.test(node.type) && !guarded)
        yield* renderedNames(child.expression).filter((name) => WRITTEN.test(name))
      yield* unguarded(child, guarded)
    }
  }
}

function findings(path: string, text: string): string[] {
  const { program, errors } = parseSync(path, text)
  expect(errors).toEqual([])
  return [...unguarded(program as unknown as Node)].map((name) => `${path}: ${name}`)
}

test('dashboard: whatever a person wrote is isolated, so that it cannot reorder the text around it', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.tsx'))
  expect(files.length).toBeGreaterThan(80)
  const found = files.flatMap((path) => findings(relative(source, join(source, path)), readFileSync(join(source, path), 'utf8')))
  expect(found.filter((finding) => !OURS.has(finding))).toEqual([])
  // An exception that is no longer needed would hide the next mistake.
  expect([...OURS].filter((exception) => !found.includes(exception))).toEqual([])
})

/** Text between tags, and all strings and templates of a file. */
function* textsIn(node: Node): Generator<string> {
  if (node.type === 'JSXText' || node.type === 'Literal') yield String(node.value)
  if (node.type === 'TemplateElement') yield node.value.cooked
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value]) if (typeof child?.type === 'string') yield* textsIn(child)
}

test('dashboard: apostrophes and quotation marks in what people read are curly', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.tsx'))
  const found = files.flatMap((path) => {
    const { program } = parseSync(path, readFileSync(join(source, path), 'utf8'))
    const texts = [...textsIn(program as unknown as Node)]
    // Not fields of JSON, such as "test": true.
    return texts
      .flatMap((text) => [...(text.match(/\p{L}+'\p{L}+/gu) ?? []), ...(text.match(/"\p{L}+ [\p{L} ]*"/gu) ?? [])])
      .map((words) => `${path}: ${words}`)
  })
  expect(found).toEqual([])
})

test('dashboard: the check for isolated text sees through conditions, lists and calls', () => {
  const shown = [
    '<p>{node.name}</p>',
    '<p>{node?.name ?? node.id}</p>',
    '<li>{isNew ? key.description + ", new" : null}</li>',
    '<>{people.map(({ email }) => <b>{email}</b>)}</>',
    '<p>{accounts.emails.join(", ")}</p>',
  ]
  for (const text of shown) expect([text, findings('a.tsx', text).length]).toEqual([text, 1])
  for (const text of ['<bdi>{node.name}</bdi>', '<p dir="auto"><b>{node.name}</b></p>', '<p>{node.name === "" && "none"}</p>'])
    expect([text, findings('a.tsx', text)]).toEqual([text, []])
})
