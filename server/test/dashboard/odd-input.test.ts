import type { TProperties, TSchema } from 'typebox'
import { beforeAll, expect, test } from 'vitest'
import { dashboardOperations } from '../../../contract/src/operations.ts'
import { newRepeatKey, signUp, type Visitor } from '../support/dashboard.ts'
import { type Server, startServer } from '../support/server.ts'

/** Odd values in every parameter and field of the dashboard's routes: none of them may cause an internal error. */

let server: Server
let ann: Visitor

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  ann = await signUp(server)
})

const ODD_TEXTS = ['\u0000', 'a\u0000b', '\ufffd', "'", '%', 'x'.repeat(3_000), '']
const ODD_NUMBERS = [-1, 0, 9_999_999_999_999, 999_999_999_999_999, Number.MAX_SAFE_INTEGER, '9007199254740993', '1e30']
const ODD = [...ODD_TEXTS, ...ODD_NUMBERS]

type Schema = TSchema & { properties?: TProperties; required?: string[]; enum?: unknown[]; type?: string; minimum?: number }
const fieldsOf = (schema: TSchema | undefined): [string, Schema][] =>
  Object.entries((schema as Schema | undefined)?.properties ?? {}) as [string, Schema][]
/** A value that the field accepts, so that the odd value is the only mistake of a request. */
const usual = ({ enum: values, type, minimum }: Schema): unknown =>
  values?.[0] ??
  (type === 'integer'
    ? Math.max(minimum ?? 0, Math.floor(Date.now() / 1000))
    : type === 'boolean'
      ? true
      : type === 'array'
        ? []
        : 'x')
const usualOf = (schema: TSchema | undefined): Record<string, unknown> =>
  Object.fromEntries(
    fieldsOf(schema)
      .filter(([name]) => (schema as Schema).required?.includes(name))
      .map(([name, field]) => [name, usual(field)]),
  )

const routes = dashboardOperations.filter(
  ({ path }) => path.startsWith('/dashboard/api/') && !/\/(auth|link|operator|events)(\/|$)/.test(path),
)
const queryOf = (values: Record<string, unknown>): string =>
  new URLSearchParams(Object.entries(values).map(([name, value]): [string, string] => [name, String(value)])).toString()

test('the routes are those of the dashboard', () => {
  expect(routes.length).toBeGreaterThan(40)
})

test.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))(
  'C5: %s refuses odd values without an internal error',
  async (_name, { method, path, params, query, body }) => {
    const wrong: unknown[] = []
    const pathOf = (values: Record<string, unknown>): string =>
      path
        .replace('/dashboard/api', '')
        .replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name] ?? 'x')))
    const attempt = async (where: string, url: string, json?: unknown): Promise<void> => {
      const headers = { 'idempotency-key': newRepeatKey() }
      const answer = await ann.send(method, url, method === 'GET' ? {} : { headers, json: json ?? usualOf(body) })
      // A node or the treasury may be unavailable here, but that is never a 500.
      if (answer.status === 500) wrong.push([where, url.slice(0, 200), answer.text])
    }
    const search = queryOf(usualOf(query))
    const suffix = search && `?${search}`
    for (const odd of ODD) {
      for (const [name] of fieldsOf(params)) await attempt(name, pathOf({ [name]: odd }) + suffix)
      for (const [name] of fieldsOf(query)) await attempt(name, `${pathOf({})}?${queryOf({ ...usualOf(query), [name]: odd })}`)
      for (const [name, field] of fieldsOf(body))
        await attempt(name, pathOf({}) + suffix, { ...usualOf(body), [name]: field.type === 'array' ? [odd] : odd })
    }
    expect(wrong).toEqual([])
  },
)
