import type { TSchema } from 'typebox'
import { Check, Errors } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { openApiDocument } from '../src/openapi.ts'
import { operations, publicOperations } from '../src/operations.ts'

type Schema = TSchema & { $id?: string; examples?: unknown[] }

/** All named schemas, including repeated ones. */
function namedIn(value: unknown): Schema[] {
  if (typeof value !== 'object' || value === null) return []
  const inside = Object.values(value).flatMap(namedIn)
  return typeof (value as Schema).$id === 'string' ? [value as Schema, ...inside] : inside
}
const named = operations.flatMap(({ params, query, body, response }) => namedIn([params, query, body, response]))

describe('D11: the contract', () => {
  test('D11: operation ids are unique, and every method and path has one operation', () => {
    const ids = operations.map(({ operationId }) => operationId)
    const places = operations.map(({ method, path }) => `${method} ${path}`)
    expect([new Set(ids).size, new Set(places).size]).toEqual([ids.length, places.length])
    expect(ids.filter((id) => !/^[a-z][A-Za-z]+$/.test(id))).toEqual([])
  })

  test('D11: a name always means the same schema', () => {
    const meanings = new Map<string, Set<string>>()
    for (const schema of named) {
      const id = schema.$id ?? ''
      meanings.set(id, (meanings.get(id) ?? new Set()).add(JSON.stringify(schema)))
    }
    expect([...meanings].filter(([, texts]) => texts.size > 1).map(([id]) => id)).toEqual([])
    expect(meanings.size).toBeGreaterThan(60)
  })

  test('D11: every body and every object response has a name and a description', () => {
    const nameless = operations
      .flatMap(({ operationId, body, response }) => [body, response].map((schema) => ({ operationId, schema: schema as Schema })))
      .filter(({ schema }) => schema !== undefined && (schema.$id === undefined || !('description' in schema)))
    // Its response is an empty object, which needs no name.
    expect(nameless.map(({ operationId }) => operationId)).toEqual(['setSandboxFault'])
  })

  test('D11: every example matches its schema', () => {
    const wrong = named.flatMap((schema) =>
      (schema.examples ?? []).filter((one) => !Check(schema, one)).map((one) => [schema.$id, [...Errors(schema, one)]]),
    )
    expect(wrong).toEqual([])
    expect(named.filter(({ examples }) => examples !== undefined).length).toBeGreaterThan(30)
  })

  test('D11: an operation’s parameters are those in its path', () => {
    for (const { path, params } of operations)
      expect([path, Object.keys(params?.properties ?? {})]).toEqual([
        path,
        [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      ])
  })
})

describe('D11: openapi.json', () => {
  const document = openApiDocument(publicOperations, [{ url: 'http://127.0.0.1:8402', description: 'Here.' }]) as any
  const at = (path: string, method: string) => document.paths[path][method]

  test('D11: parameters have their types, and the Idempotency-Key header is documented', () => {
    const parameter = (path: string, method: string, name: string) =>
      at(path, method).parameters.find((one: any) => one.name === name)
    expect(parameter('/v1/gateway/payments', 'get', 'limit').schema).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 100,
      default: 20,
    })
    expect(parameter('/v1/nodes/{nodeId}', 'delete', 'force').schema).toEqual({ type: 'boolean' })
    for (const path of ['/v1/nodes', '/v1/gateway/payments'])
      expect(at(path, 'post').parameters).toEqual([{ $ref: '#/components/parameters/IdempotencyKey' }])
  })

  test('C6, D11: a body is required if, and only if, one of its fields is required', () => {
    const required = (path: string) => at(path, 'post').requestBody.required
    expect(['/v1/nodes', '/v1/nodes/{nodeId}/start', '/operator/v1/accounts/{id}/sign-in-link'].map(required)).toEqual([
      false,
      false,
      false,
    ])
    expect(['/v1/gateway/payments', '/operator/v1/accounts'].map(required)).toEqual([true, true])
  })

  test('D11: every pattern is one that Python, Go and Java compile and read the same way', () => {
    const patterns = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, one = '']) =>
      JSON.parse(one),
    )
    expect(patterns.length).toBeGreaterThan(5)
    // No lookaround, no Unicode classes or escapes, no backreferences.
    expect(patterns.filter((one: string) => /\(\?|\\[^x]/.test(one))).toEqual([])
  })

  test('D11: an integer that may need more than 32 bits says so, or Go and Java clients cut it off', () => {
    const integers = (value: unknown): any[] => {
      if (typeof value !== 'object' || value === null) return []
      const inside = Object.values(value).flatMap(integers)
      return (value as { type?: unknown }).type === 'integer' ? [value, ...inside] : inside
    }
    const all = integers(document.components.schemas)
    expect(all.filter(({ format }) => format === 'int64').length).toBeGreaterThan(30)
    expect(all.filter(({ format, maximum = Infinity }) => (format === 'int64') !== maximum > 2 ** 31 - 1)).toEqual([])
  })

  test('D11: every error response has an example of each of its codes', () => {
    const { responses } = at('/v1/gateway/payments/{id}/redeem', 'post')
    const conflict = responses['409'].content['application/json'].examples
    expect(Object.keys(conflict)).toEqual(expect.arrayContaining(['already_redeemed', 'delivery_in_progress', 'terms_mismatch']))
    for (const [code, { value }] of Object.entries<any>(conflict)) expect(value.error.code).toBe(code)
    expect(responses['409'].headers).toHaveProperty('Retry-After')
  })

  test('D11: every operation lists the statuses that any call can return', () => {
    for (const { method, path, caller } of publicOperations) {
      const statuses = Object.keys(at(path, method.toLowerCase()).responses).map(Number)
      const always = caller === 'anyone' ? [400, 500, 503] : [400, 401, 421, 429, 500, 503]
      expect([path, statuses]).toEqual([path, expect.arrayContaining([...always, ...(method === 'GET' ? [] : [413, 415])])])
    }
  })
})
