import fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { operations } from '../../../contract/src/operations.ts'
import { addRoute } from '../../src/http/route.ts'
import { addSchemaCompilers } from '../../src/http/schema-compilers.ts'
import { mismatch, operationAt } from '../support/answers.ts'
import { openApp, registeredRoutes } from '../support/app.ts'
import { send } from '../support/server.ts'

/** Paths of files, pages, nodes and nodes' events, which are not part of the API that the contract describes. */
const ELSEWHERE = /^\/(dashboard\*?|docs.*|internal\/settled\/:nodeId|llms\.txt|n\/.*|openapi\.json)?$/
/** The routes for signing in and out, for links and for /me are not in the contract: most of them are better-auth's own. */
const SIGN_IN = /^\/dashboard\/api\/(auth\/|link\/|me$)/

describe('D11: the routes', () => {
  test('D11: the service registers exactly the routes of the contract', async () => {
    const registered = (await registeredRoutes())
      .filter(({ method, url }) => method !== 'HEAD' && !ELSEWHERE.test(url) && !SIGN_IN.test(url))
      .map(({ method, url }) => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`)
    expect(registered.sort()).toEqual(operations.map(({ method, path }) => `${method} ${path}`).sort())
  })

  test('D11: a response with a field, status or code that is not in the contract is detected', () => {
    const operation = operationAt('GET', '/v1/api-key')
    const found = (status: number, body: object) => operation && mismatch(operation, status, JSON.stringify(body))
    const key = { id: 'key_1', accountId: 'acct_1', scopes: ['nodes:read'], expiresAt: null, secretExpiresAt: null }
    expect(found(200, key)).toBeUndefined()
    expect(found(401, { error: { code: 'unauthorized', message: 'Unauthorized' } })).toBeUndefined()
    expect(found(200, { ...key, secret: 'x' })).toMatch(/additional/)
    expect(found(200, { ...key, scopes: ['root'] })).toMatch(/allowed values/)
    expect(found(404, { error: { code: 'not_found', message: 'x' } })).toMatch(/status 404/)
    expect(found(401, { error: { code: 'bad_request', message: 'x' } })).toMatch(/code bad_request/)
  })

  // The service compiles each schema on first use, so it would start even if one cannot be compiled.
  test('D11: every schema of the contract compiles', async () => {
    const app = fastify()
    addSchemaCompilers(app, 'at once')
    for (const operation of operations) addRoute(app, operation, async () => ({}) as never)
    await app.ready()
    await app.close()
  })

  test('C5: a number or boolean in a query has exactly one spelling', async () => {
    const { port } = await openApp(
      {},
      {
        requests: { record: () => undefined } as never,
        keys: { authenticate: async () => ({ id: 'key_1', accountId: 'a', scopes: ['gateway:write', 'nodes:write'] }) } as never,
      },
    )
    const refusal = async (method: string, path: string) => {
      const answer = await send(port, method, path, { token: 'x' })
      return [answer.status, answer.json().error.message]
    }
    for (const limit of ['', '0', '101', '01', '+1', '1.0', '1e1', '%201', '0x10', 'one', '1&limit=2', '99999999999999999999'])
      expect([limit, await refusal('GET', `/v1/gateway/payments?limit=${limit}`)]).toEqual([
        limit,
        [400, expect.stringMatching(/^The query parameter "limit" must be /)],
      ])
    for (const force of ['', '1', 'TRUE', 'yes', 'true&force=true'])
      expect([force, await refusal('DELETE', `/v1/nodes/node_1?force=${force}`)]).toEqual([
        force,
        [400, 'The query parameter "force" must be boolean.'],
      ])
  })
})
