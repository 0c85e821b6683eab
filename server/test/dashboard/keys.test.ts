import { beforeAll, expect, test } from 'vitest'
import { signUp, type Visitor } from '../support/dashboard.ts'
import { type Server, startServer } from '../support/server.ts'

let server: Server
let bob: Visitor
let carl: Visitor

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', MAX_KEYS_PER_ACCOUNT: '5' } })
  ;[bob, carl] = await Promise.all([signUp(server), signUp(server)])
})

const create = (scopes: string[], name = 'key') => carl.want(201, 'POST', '/keys', { json: { name, scopes } })
const use = (key: string, method = 'GET', path = '/nodes') => server.send(method, `/v1${path}`, { token: key })

test('C11: every key has the read scope, whatever was selected', async () => {
  const made = [await create([]), await create(['gateway:write']), await create(['nodes:write', 'nodes:read'])]
  expect(made.map(({ scopes }) => scopes)).toEqual([
    ['nodes:read'],
    ['nodes:read', 'gateway:write'],
    ['nodes:read', 'nodes:write'],
  ])
  for (const { key } of made) expect((await use(key)).status).toBe(200)
  expect((await use(made[0].key, 'POST')).status).toBe(401)
  expect((await carl.refusal('POST', '/keys', { json: { name: 'x', scopes: ['admin'] } })).slice(0, 2)).toEqual([
    400,
    'bad_request',
  ])
  for (const { id } of made) await carl.want(204, 'DELETE', `/keys/${id}`)
})

test('C10: a key is shown once: later responses contain only its first characters', async () => {
  const { id, key, ...rest } = await create(['nodes:write'], '  laptop ')
  expect(rest).toEqual({ name: 'laptop', scopes: ['nodes:read', 'nodes:write'], expiresAt: null })
  expect(key).toMatch(/^byk_[0-9A-Za-z]{36}$/)
  const later = [
    await carl.send('GET', '/keys'),
    await carl.send('PATCH', `/keys/${id}`, { json: { disabled: false } }),
    await carl.send('GET', '/activity'),
    await carl.send('GET', '/overview'),
  ]
  for (const { status, text } of later) {
    expect(status).toBe(200)
    expect(text).not.toContain(key.slice(8))
    expect(text).not.toContain(key.slice(0, 9))
  }
  expect(later[0]?.json().keys[0]).toMatchObject({ id, prefix: key.slice(0, 8) })
  await carl.want(204, 'DELETE', `/keys/${id}`)
})

test('C12: disabling, enabling and revoking take effect with the next request, and are logged with who did it', async () => {
  const { id, key } = await create([])
  expect((await use(key)).status).toBe(200)
  expect(await carl.want(200, 'PATCH', `/keys/${id}`, { json: { disabled: true } })).toMatchObject({ disabled: true })
  expect((await use(key)).status).toBe(401)
  expect(await carl.want(200, 'PATCH', `/keys/${id}`, { json: { disabled: false } })).toMatchObject({ disabled: false })
  expect((await use(key)).status).toBe(200)
  await carl.want(204, 'DELETE', `/keys/${id}`, { json: {} })
  expect((await use(key)).status).toBe(401)
  expect(await carl.want(200, 'GET', '/keys')).toEqual({ keys: [] })
  expect(await carl.refusal('DELETE', `/keys/${id}`)).toEqual([404, 'not_found', expect.any(String)])
  const { activity } = await carl.want(200, 'GET', '/activity')
  expect(activity.slice(0, 4).map(({ action, actor, target }: Record<string, string>) => [action, actor, target])).toEqual(
    ['key.revoked', 'key.enabled', 'key.disabled', 'key.created'].map((action) => [action, carl.userId, id]),
  )
})

test('C46: as many keys as the deployment allows, even under concurrent creation', async () => {
  const answers = await Promise.all(
    Array.from({ length: 9 }, () => carl.send('POST', '/keys', { json: { name: 'k', scopes: [] } })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 201, 201, 201, 409, 409, 409, 409])
  expect((await carl.want(200, 'GET', '/keys')).keys).toHaveLength(5)
})

test('when a key was last used is shown', async () => {
  const { keys } = await bob.want(200, 'GET', '/keys')
  expect(keys).toEqual([])
  const { id, key } = await bob.want(201, 'POST', '/keys', { json: { name: 'k', scopes: [] } })
  expect((await bob.want(200, 'GET', '/keys')).keys[0].lastUsedAt).toBeNull()
  await use(key)
  await server.sql()`UPDATE api_keys SET last_used_at = to_timestamp(1700000000) WHERE id = ${id}`
  expect((await bob.want(200, 'GET', '/keys')).keys[0].lastUsedAt).toBe(1_700_000_000)
})
