import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const here = dirname(fileURLToPath(import.meta.url))
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
const { paths } = JSON.parse(readFileSync(join(here, '../../docs/openapi.json'), 'utf8'))

type Schema = {
  type?: string
  enum?: string[]
  const?: string
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ')
  if (schema.type === 'array') return `(${typeOf(schema.items ?? {})})[]`
  if (schema.type === 'integer') return 'number'
  if (schema.type !== 'object') return schema.type ?? 'unknown'
  const members = Object.entries(schema.properties ?? {}).map(
    ([name, member]) => `${name}${schema.required?.includes(name) ? '' : '?'}: ${typeOf(member)}`,
  )
  return `{ ${members.join('; ')} }`
}

const answer = (path: string, method: string, status: number): string =>
  typeOf(paths[path][method].responses[status].content['application/json'].schema)
const body = (path: string, method: string): string => typeOf(paths[path][method].requestBody.content['application/json'].schema)

const payments = '/v1/gateway/payments'
/** Each type of the SDK, and what the service says of itself. */
const PAIRS: [ours: string, theirs: string][] = [
  ['Node', answer('/v1/nodes/{nodeId}', 'get', 200)],
  ['Node', answer('/v1/nodes/{nodeId}', 'patch', 200)],
  ['Node', answer('/v1/nodes/{nodeId}/start', 'post', 200)],
  ['Node', answer('/v1/nodes/{nodeId}/update', 'post', 202)],
  ['{ nodes: Node[] }', answer('/v1/nodes', 'get', 200)],
  ['CreatedNode', answer('/v1/nodes', 'post', 202)],
  ['NodeWish', body('/v1/nodes', 'post')],
  ['NodeUpdates', answer('/v1/nodes/{nodeId}/updates', 'get', 200)],
  ['ApiKey', answer('/v1/api-key', 'get', 200)],
  ['PaymentWish', body(payments, 'post')],
  ['CreatedPayment', answer(payments, 'post', 201)],
  ['PaymentPage', answer(payments, 'get', 200)],
  ['Payment', answer(`${payments}/{id}`, 'get', 200)],
  ['PaidPayment', answer(`${payments}/{id}/validate`, 'post', 200)],
  ['Redemption', body(`${payments}/{id}/redeem`, 'post')],
  ['RedeemedPayment', answer(`${payments}/{id}/redeem`, 'post', 200)],
  ['{ credential: string; expect?: ExpectedTerms }', body(`${payments}/{id}/validate`, 'post')],
  ['{ deliveries: DeliveryName[] }', body(`${payments}/delivered`, 'post')],
  ['{ deliveries: DeliveryResult[] }', answer(`${payments}/delivered`, 'post', 200)],
  ['Release', body(`${payments}/{id}/release`, 'post')],
  ['ReleasedPayment', answer(`${payments}/{id}/release`, 'post', 200)],
]

function compile(pairs: [string, string][]): string {
  const directory = mkdtempSync(join(here, '../types-'))
  try {
    const names =
      'ApiKey CreatedNode CreatedPayment DeliveryName DeliveryResult ExpectedTerms Node NodeUpdates NodeWish PaidPayment Payment PaymentPage PaymentWish RedeemedPayment Redemption Release ReleasedPayment'
        .split(' ')
        .join(', ')
    const lines = [
      `import type { ${names} } from '../src/index.ts'`,
      'type Flat<T> = T extends (infer I)[] ? Flat<I>[] : T extends object ? { [K in keyof T]: Flat<T[K]> } : T',
      'type Same<A, B> = (<T>() => T extends Flat<A> ? 1 : 2) extends <T>() => T extends Flat<B> ? 1 : 2 ? true : false',
      `export type All = [${names}]`,
      ...pairs.map(([ours, theirs], at) => `export const same${at}: Same<${ours}, ${theirs}> = true`),
    ]
    const file = join(directory, 'types.ts')
    writeFileSync(file, lines.join('\n'))
    const config = { extends: '../../tsconfig.base.json', files: ['types.ts'] }
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config))
    execFileSync(process.execPath, [tsc, '-p', directory], { encoding: 'utf8', stdio: 'pipe' })
    return ''
  } catch (error) {
    return String((error as { stdout?: string }).stdout ?? error)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

test('every type is what the service says of itself, no field more, none less', () => {
  expect(compile(PAIRS)).toBe('')
})

test('a field too many or too few is found', () => {
  const wrong = compile([
    ['ApiKey', '{ id: string; accountId: string; scopes: string[]; extra: string }'],
    ['ApiKey', '{ id: string; scopes: string[] }'],
    ['Node["status"]', '"ready"'],
    ['ApiKey', '{ id: string; accountId: string; scopes: string[] }'],
  ])
  expect(wrong.match(/same\d/g) ?? wrong.split('\n').filter((line) => line.includes('error'))).toHaveLength(3)
})
