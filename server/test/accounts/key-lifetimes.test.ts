import { beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/db.ts'
import { forgetOldSecrets } from '../../src/store/keys.ts'
import { type Answer, eventually, type Key, type Server, startServer } from '../support/server.ts'

let server: Server
/** Another process, which shares only the database. */
let replica: Server
let sql: Database

beforeAll(async () => {
  server = await startServer({ store: 'embedded', env: { TRUST_PROXY: '1' } })
  sql = server.sql()
  replica = await startServer({ env: { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1' } })
})

/** Each request comes from its own address, so that failures do not add up to a refusal (C44). */
let lastAddress = 0
const who = (token: string, on = server): Promise<Answer> =>
  on.send('GET', '/v1/api-key', { token, headers: { 'x-forwarded-for': `10.1.${lastAddress >> 8}.${lastAddress++ & 255}` } })
const statuses = async (token: string): Promise<number[]> =>
  (await Promise.all([who(token), who(token, replica)])).map(({ status }) => status)

const keyPath = ({ accountId, id }: Key): string => `/accounts/${accountId}/keys/${id}`
const change = (key: Key, json: unknown): Promise<Answer> => server.operator('PATCH', keyPath(key), { json })
const rotate = (key: Key, overlapSeconds: number, more: { endOverlap?: boolean } = {}): Promise<Answer> =>
  server.operator('POST', `${keyPath(key)}/rotate`, { json: { overlapSeconds, ...more } })

/** Keys expire by the database's clock, so tests wait for that clock. */
async function databaseTime(): Promise<number> {
  const [row] = await sql<{ now: number }[]>`SELECT extract(epoch FROM now())::float8 AS now`
  return row?.now ?? 0
}
const untilDatabaseTime = (at: number): Promise<unknown> =>
  eventually(async () => (await databaseTime()) >= at, `the database's clock to reach ${at}`)

async function newKey(json: Record<string, unknown> = {}): Promise<Key & { expiresAt: number | null }> {
  const { id: accountId } = await server.newAccount()
  const answer = await server.operator('POST', `/accounts/${accountId}/keys`, { json: { name: 'x', scopes: [], ...json } })
  expect(answer.status).toBe(201)
  return { ...answer.json(), accountId }
}

/** On a busy machine, a short lifetime may be over before both processes have cached the key; then a longer one is tried. */
async function inTime<T>(attempt: (seconds: number) => Promise<T | undefined>): Promise<T> {
  for (const seconds of [4, 8, 16, 32]) {
    const result = await attempt(seconds).catch(() => undefined)
    if (result) return result
  }
  throw new Error('the key was never accepted by both processes')
}

describe('C84: expiry', () => {
  test('C84: an expired key is refused like an unknown one at that moment, also by replicas that have cached it', async () => {
    const { key, expiresAt } = await inTime(async (seconds) => {
      const expiresAt = Math.ceil(await databaseTime()) + seconds
      const key = await newKey({ expiresAt })
      const [here, there] = [await who(key.key), await who(key.key, replica)]
      return here.status === 200 && there.status === 200 ? { key, expiresAt } : undefined
    })
    expect(key.expiresAt).toBe(expiresAt)
    await untilDatabaseTime(expiresAt)
    // Both processes have cached the key. Without a check of its expiry, they would accept it for some seconds more.
    const answers = await Promise.all([who(key.key), who(key.key, replica)])
    for (const { status, text, headers } of answers)
      expect([status, text, headers['www-authenticate']]).toEqual([
        401,
        '{"error":{"code":"unauthorized","message":"Unauthorized"}}',
        'Bearer',
      ])
    expect((await change(key, { name: 'still listed' })).json()).toMatchObject({ isExpired: true, expiresAt })

    // Rotating or enabling an expired key does not make it valid again; changing its expiry does.
    expect((await rotate(key, 0)).json().error).toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('expired'),
    })
    await change(key, { disabled: false })
    expect(await statuses(key.key)).toEqual([401, 401])
    expect((await change(key, { expiresAt: null })).json()).toMatchObject({ isExpired: false, expiresAt: null })
    expect((await who(key.key)).json().expiresAt).toBe(null)
  })

  test('C84: the past is refused, and changes nothing', async () => {
    const { id: accountId } = await server.newAccount()
    const past = Math.floor(await databaseTime()) - 1
    for (const expiresAt of [past, 0, -1, 1.5, '2030-01-01', 1e15]) {
      const json = { name: 'x', scopes: [], expiresAt }
      expect((await server.operator('POST', `/accounts/${accountId}/keys`, { json })).status, String(expiresAt)).toBe(400)
    }
    const key = await newKey()
    const refused = await change(key, { expiresAt: past, name: 'y' })
    expect(refused.json().error).toMatchObject({ code: 'bad_request', message: 'expiresAt must be in the future.' })
    expect((await change(key, { disabled: false })).json()).toMatchObject({ name: 'x', expiresAt: null })
    expect((await change(key, {})).status).toBe(400)
  })
})

describe('C84: rotation', () => {
  test('C84: both secrets work during the overlap, and then only the new one, in every process', async () => {
    const { key, rotated, withOld } = await inTime(async (seconds) => {
      const key = await newKey()
      const rotated = (await rotate(key, seconds)).json()
      expect(rotated.previousSecretUntil - rotated.rotatedAt).toBe(seconds)
      const [withOld, there] = [await who(key.key), await who(key.key, replica)]
      return withOld.status === 200 && there.status === 200 ? { key, rotated, withOld: withOld.json() } : undefined
    })
    const { key: secret, id, prefix, previousSecretUntil } = rotated
    expect([id, prefix]).toEqual([key.id, secret.slice(0, 8)])
    expect(await statuses(secret)).toEqual([200, 200])
    expect(withOld.secretExpiresAt).toBe(previousSecretUntil)
    expect((await who(secret)).json()).toMatchObject({ id: key.id, expiresAt: null, secretExpiresAt: null })
    // After a restart, the replica knows of the rotation only from the row in the database.
    await replica.restart()
    await untilDatabaseTime(previousSecretUntil + 1)
    expect([await statuses(key.key), await statuses(secret)]).toEqual([
      [401, 401],
      [200, 200],
    ])
    expect((await change(key, { disabled: false })).json().previousSecretUntil).toBe(null)
    await forgetOldSecrets(sql)
    expect(await sql`SELECT previous_hash, previous_until FROM api_keys WHERE id = ${key.id}`).toEqual([
      { previous_hash: null, previous_until: null },
    ])
    expect((await who(secret)).status).toBe(200)
  })

  test('C84: without an overlap, the old secret stops with the next request', async () => {
    const key = await newKey()
    expect(await statuses(key.key)).toEqual([200, 200])
    const { key: secret } = (await rotate(key, 0)).json()
    expect([(await who(key.key)).status, (await who(secret)).status]).toEqual([401, 200])
    await eventually(async () => (await who(key.key, replica)).status === 401, 'the replica to refuse it')
  })

  test('C84: there are never more than two secrets: a second rotation ends the overlap of the first', async () => {
    const key = await newKey()
    const second = (await rotate(key, 72 * 3600)).json().key
    const third = (await rotate(key, 72 * 3600, { endOverlap: true })).json().key
    expect([(await who(key.key)).status, (await who(second)).status, (await who(third)).status]).toEqual([401, 200, 200])
    expect((await rotate(key, 72 * 3600 + 1)).status).toBe(400)
  })

  test('C84: repeated after a lost response, a rotation with an overlap is refused, and the secret in use keeps working', async () => {
    const key = await newKey()
    // As if the response with this secret had been lost.
    const { key: unseen, previousSecretUntil } = (await rotate(key, 600)).json()
    const again = await rotate(key, 600)
    expect([again.status, again.json().error]).toEqual([
      400,
      expect.objectContaining({
        reason: 'overlap_running',
        previousSecretUntil,
        message: expect.stringContaining('another key'),
      }),
    ])
    expect([(await who(key.key)).status, (await who(unseen)).status]).toEqual([200, 200])
    // After a leak, a rotation without an overlap voids both earlier secrets.
    const { key: fresh } = (await rotate(key, 0)).json()
    expect([(await who(key.key)).status, (await who(unseen)).status, (await who(fresh)).status]).toEqual([401, 401, 200])
    expect((await rotate(key, 600)).status).toBe(200)
  })

  test('C84: after concurrent rotations, exactly two secrets work', async () => {
    const key = await newKey()
    const secrets: string[] = (await Promise.all(Array.from({ length: 6 }, () => rotate(key, 600, { endOverlap: true })))).map(
      (answer) => answer.json().key,
    )
    const found = await Promise.all([key.key, ...secrets].map(async (secret) => (await who(secret)).status))
    expect(found.filter((status) => status === 200)).toHaveLength(2)
  })

  test('C84: revoking and disabling end both secrets', async () => {
    const key = await newKey()
    const { key: secret } = (await rotate(key, 600)).json()
    await change(key, { disabled: true })
    expect([(await who(key.key)).status, (await who(secret)).status]).toEqual([401, 401])
    await change(key, { disabled: false })
    expect([(await who(key.key)).status, (await who(secret)).status]).toEqual([200, 200])
    expect((await server.operator('DELETE', keyPath(key))).status).toBe(204)
    expect([(await who(key.key)).status, (await who(secret)).status]).toEqual([401, 401])
    expect((await rotate(key, 0)).status).toBe(404)
  })

  test('C84: the secret appears in the response of the rotation only', async () => {
    const key = await newKey()
    const { key: secret } = (await rotate(key, 600)).json()
    const later = [
      await change(key, { name: 'y' }),
      await who(secret),
      await server.operator('GET', `/accounts/${key.accountId}/activity`),
    ]
    for (const { text } of later) expect(text).not.toContain(secret.slice(8))
    expect(later[2]?.text).toContain('key.rotated')
    const rows = await sql`SELECT * FROM api_keys WHERE id = ${key.id}`
    expect(JSON.stringify(rows)).not.toContain(secret.slice(8))
    expect(server.stderr + server.stdout).not.toContain(secret.slice(8))
  })

  test('C84: C41: after a rotation, a stored response opens with the earlier secret only, and nothing is done twice', async () => {
    const key = await server.newKey(['nodes:write'])
    const create = (token: string) =>
      server.send('POST', '/v1/nodes', { token, json: {}, headers: { 'idempotency-key': 'first node' } })
    const first = await create(key.key)
    expect(first.status).toBe(202)
    const { key: secret } = (await rotate(key, 600)).json()
    const withNew = await create(secret)
    expect([withNew.status, withNew.json().error.message]).toEqual([503, expect.stringContaining('earlier secret')])
    expect((await create(key.key)).json()).toEqual(first.json())
    const { nodes } = (await server.send('GET', '/v1/nodes', { token: secret })).json()
    expect(nodes).toHaveLength(1)
  })
})

test('C84: new scopes take effect with the next request, and within seconds in every other process', async () => {
  const key = await newKey({ scopes: ['events:read'] })
  const events = (on: Server): Promise<Answer> =>
    on.send('GET', '/v1/events', { token: key.key, headers: { 'x-forwarded-for': `10.2.0.${lastAddress++ & 255}` } })
  expect([(await events(server)).status, (await events(replica)).status]).toEqual([200, 200])
  const changed = await change(key, { scopes: ['gateway:write'], name: '  Shop ' })
  expect(changed.json()).toMatchObject({ name: 'Shop', scopes: ['nodes:read', 'gateway:write'], disabled: false })
  expect((await events(server)).status).toBe(401)
  await eventually(async () => (await events(replica)).status === 401, 'the replica to be told')
  const { activity } = (await server.operator('GET', `/accounts/${key.accountId}/activity`)).json()
  expect(activity[0]).toMatchObject({
    action: 'key.changed',
    target: key.id,
    detail: { name: 'Shop', scopes: ['nodes:read', 'gateway:write'] },
  })
})
