import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Answer, eventually, type Key, type Request, type Server, startServer } from '../support/server.ts'

let server: Server
/** Another process, which shares only the database. */
let replica: Server

beforeAll(async () => {
  server = await startServer({
    store: 'embedded',
    env: { TRUST_PROXY: '1', MAX_KEYS_PER_ACCOUNT: '10', NODE_PRICE_SAT_PER_DAY: '0' },
  })
  replica = await startServer({ env: { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1' } })
})

/** Each request comes from its own address, so that failures do not add up to a refusal (C44). */
let lastAddress = 0
function who(options: Request = {}, on = server): Promise<Answer> {
  const address = `10.0.${lastAddress >> 8}.${lastAddress++ & 255}`
  return on.send('GET', '/v1/api-key', { ...options, headers: { 'x-forwarded-for': address, ...options.headers } })
}

function expectUnauthorized(answer: Answer): void {
  expect([answer.status, answer.text, answer.headers['www-authenticate'], answer.headers['content-type']]).toEqual([
    401,
    '{"error":{"code":"unauthorized","message":"Unauthorized"}}',
    'Bearer',
    'application/json; charset=utf-8',
  ])
}

const keyPath = ({ accountId, id }: Key): string => `/accounts/${accountId}/keys/${id}`
const setDisabled = (key: Key, disabled: boolean): Promise<Answer> =>
  server.operator('PATCH', keyPath(key), { json: { disabled } })
const revoke = (key: Key): Promise<Answer> => server.operator('DELETE', keyPath(key))

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Calculates CRC-32 bit by bit and base 62 by long division, so that it shares no code with the service. */
function checkOf(text: string): string {
  let crc = 0xffffffff
  for (const byte of Buffer.from(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  let rest = BigInt((crc ^ 0xffffffff) >>> 0)
  let check = ''
  for (let index = 0; index < 6; index++) {
    check = BASE62[Number(rest % 62n)] + check
    rest /= 62n
  }
  return check
}

/** Well formed, but belongs to no account. */
function wellFormed(): string {
  let text = 'byk_'
  for (let index = 0; index < 30; index++) text += BASE62[Math.floor(Math.random() * 62)]
  return text + checkOf(text)
}

describe('C10: what a key looks like', () => {
  test('C10: byk_, 30 characters of base 62 and a 6-character checksum', async () => {
    // 0xcbf43926 is the standard check value of CRC-32 for this text.
    expect(checkOf('123456789')).toBe('3jZRME')
    const { id } = await server.newAccount()
    const keys = await Promise.all(Array.from({ length: 10 }, () => server.newKey([], id)))
    for (const { key } of [...keys, { key: server.firstRun.apiKey }]) {
      expect(key).toMatch(/^byk_[0-9A-Za-z]{36}$/)
      expect(key.slice(-6)).toBe(checkOf(key.slice(0, -6)))
    }
    expect(new Set(keys.map(({ key }) => key)).size).toBe(10)
  })

  test('C10: only its SHA-256 is stored, with the first eight characters to recognise it by', async () => {
    const { id, key } = await server.newKey()
    const [row] = await server.sql()`SELECT * FROM api_keys WHERE id = ${id}`
    expect(Buffer.from(row?.hash).toString('hex')).toBe(createHash('sha256').update(key).digest('hex'))
    expect(row?.prefix).toBe(key.slice(0, 8))
    expect(JSON.stringify(row)).not.toContain(key.slice(8))
  })

  test('C10: it is shown once, and no later response contains it', async () => {
    const key = await server.newKey()
    const later = await Promise.all([
      setDisabled(key, false),
      who({ token: key.key }),
      server.operator('GET', `/accounts/${key.accountId}`),
      server.operator('GET', `/accounts/${key.accountId}/activity`),
    ])
    for (const { text } of later) expect(text).not.toContain(key.key.slice(8))
    expect(server.stderr + server.stdout).not.toContain(key.key.slice(8))
  })
})

describe('C12: a key that does not work', () => {
  const flip = (key: string, at: number): string => `${key.slice(0, at)}${key[at] === 'a' ? 'b' : 'a'}${key.slice(at + 1)}`
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const reasons: [title: string, headers: (key: string) => Record<string, string | string[]>][] = [
    ['none', () => ({})],
    ['an empty header', () => ({ authorization: '' })],
    ['the scheme alone', () => ({ authorization: 'Bearer' })],
    ['the scheme and a space', () => ({ authorization: 'Bearer ' })],
    ['the key alone', (key) => ({ authorization: key })],
    ['another scheme', (key) => ({ authorization: `Token ${key}` })],
    ['Basic with the key as the password', (key) => ({ authorization: `Basic ${Buffer.from(`:${key}`).toString('base64')}` })],
    ['a node’s password', () => bearer('f'.repeat(64))],
    ['two words after the scheme', (key) => bearer(`${key} ${key}`)],
    ['two keys in one header', (key) => bearer(`${key},${key}`)],
    ['two Authorization headers, both right', (key) => ({ authorization: [`Bearer ${key}`, `Bearer ${key}`] })],
    ['two Authorization headers, one right', (key) => ({ authorization: [`Bearer ${key}`, 'Bearer x'] })],
    [
      'a right key in other headers',
      (key) => ({ 'x-api-key': key, 'proxy-authorization': `Bearer ${key}`, cookie: `key=${key}` }),
    ],
    ['a wrong random character', (key) => bearer(flip(key, 10))],
    ['a wrong check character', (key) => bearer(flip(key, 39))],
    ['one character less', (key) => bearer(key.slice(0, -1))],
    ['one character more', (key) => bearer(`${key}0`)],
    ['lower case', (key) => bearer(key.toLowerCase())],
    ['another prefix', (key) => bearer(`bzk_${key.slice(4)}`)],
    ['right in form, but unknown', () => bearer(wellFormed())],
    ['the operator’s token', () => bearer(server.operatorToken)],
    ['the word undefined', () => bearer('undefined')],
    ['5,000 characters', () => bearer('x'.repeat(5_000))],
  ]

  test.each(reasons)('C12: %s gets the same 401', async (_title, headers) => {
    expectUnauthorized(await who({ headers: headers(server.firstRun.apiKey) }))
  })

  test('C12: a key in the query is ignored', async () => {
    expectUnauthorized(await server.send('GET', `/v1/api-key?access_token=${server.firstRun.apiKey}`))
  })

  test('C12: neither an API key nor a missing token is accepted as the operator’s token', async () => {
    const headers = { 'x-forwarded-for': '10.9.9.9' }
    expectUnauthorized(await server.send('GET', '/operator/v1/accounts', { token: server.firstRun.apiKey, headers }))
    expectUnauthorized(await server.send('GET', '/operator/v1/accounts', { headers }))
    expectUnauthorized(await server.send('GET', '/operator/v1/accounts', { headers: { ...headers, authorization: 'Bearer ' } }))
    const twice = [`Bearer ${server.operatorToken}`, `Bearer ${server.operatorToken}`]
    expectUnauthorized(await server.send('GET', '/operator/v1/accounts', { headers: { ...headers, authorization: twice } }))
  })

  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('C12: the scheme may be written %s', async (scheme) => {
    expect((await who({ headers: { authorization: `${scheme} ${server.firstRun.apiKey}` } })).status).toBe(200)
  })

  test('C12: a disabled key stops working with the next request, and works again once enabled', async () => {
    const key = await server.newKey()
    for (let round = 0; round < 5; round++) {
      expect((await who({ token: key.key })).status).toBe(200)
      expect((await setDisabled(key, true)).status).toBe(200)
      expectUnauthorized(await who({ token: key.key }))
      expect((await setDisabled(key, false)).status).toBe(200)
    }
    expect((await who({ token: key.key })).status).toBe(200)
  })

  test('C12: disabled under load, no request that begins after the answer gets through', async () => {
    const key = await server.newKey()
    let disabled = false
    const late: number[] = []
    const hammer = async (): Promise<void> => {
      for (let lateRounds = 0; lateRounds < 15; ) {
        const after = disabled
        const { status } = await who({ token: key.key })
        if (!after) continue
        late.push(status)
        lateRounds++
      }
    }
    const hammers = Array.from({ length: 8 }, hammer)
    await setDisabled(key, true)
    disabled = true
    await Promise.all(hammers)
    expect(new Set(late)).toEqual(new Set([401]))
  })

  test('C12: revoking is final: the key cannot be enabled, and is unknown from then on', async () => {
    const key = await server.newKey()
    expect((await who({ token: key.key })).status).toBe(200)
    expect([(await revoke(key)).status, (await revoke(key)).status]).toEqual([204, 404])
    expectUnauthorized(await who({ token: key.key }))
    expect((await setDisabled(key, false)).status).toBe(404)
    expectUnauthorized(await who({ token: key.key }))
  })

  test('C12: a key that is both disabled and revoked stays revoked', async () => {
    const key = await server.newKey()
    await setDisabled(key, true)
    expect((await revoke(key)).status).toBe(204)
    expectUnauthorized(await who({ token: key.key }))
  })
})

describe('C12: on another replica', () => {
  test('C12: a new key works at once', async () => {
    expect((await who({ token: (await server.newKey()).key }, replica)).status).toBe(200)
  })

  test('C12: the replica is notified, so a disabled key stops working before the cache expires', async () => {
    // Without a notification, the replica would trust its cache for 5 s. On a busy machine, a notification may take as long; then the
    // round is repeated.
    await eventually(async () => {
      const key = await server.newKey()
      const secondsUntil = async (status: number, change: () => Promise<unknown>): Promise<number> => {
        const since = performance.now()
        await change()
        await eventually(async () => (await who({ token: key.key }, replica)).status === status, 'the replica to be told')
        return (performance.now() - since) / 1000
      }
      expect((await who({ token: key.key }, replica)).status).toBe(200)
      const seconds = [
        await secondsUntil(401, () => setDisabled(key, true)),
        await secondsUntil(200, () => setDisabled(key, false)),
        await secondsUntil(401, () => revoke(key)),
      ]
      return Math.max(...seconds) < 2.5
    }, 'the replica to be told in time')
  })

  test('C12: if the notification is lost, the key still stops working within 5 s', async () => {
    const sql = server.sql()
    // On a busy machine, the replica's cache entry may expire before the change; then another key is tried.
    const key = await eventually(async () => {
      const one = await server.newKey()
      expect((await who({ token: one.key }, replica)).status).toBe(200)
      // No notification is sent for this change.
      await sql`UPDATE api_keys SET disabled = true WHERE id = ${one.id}`
      return (await who({ token: one.key }, replica)).status === 200 ? one : undefined
    }, 'a key that the replica still trusts')
    await eventually(async () => (await who({ token: key.key }, replica)).status === 401, 'the replica to forget', 50_000)
  })
})

describe('C13: GET /api-key', () => {
  test.each([
    { wanted: [], scopes: ['nodes:read'] },
    { wanted: ['nodes:read'], scopes: ['nodes:read'] },
    { wanted: ['gateway:write'], scopes: ['nodes:read', 'gateway:write'] },
    { wanted: ['gateway:write', 'nodes:write', 'gateway:write'], scopes: ['nodes:read', 'nodes:write', 'gateway:write'] },
  ])(
    'C13: for a key created with $wanted, the response has its id, its account, $scopes and its expiry, and nothing else',
    async ({ wanted, scopes }) => {
      const key = await server.newKey(wanted)
      const answer = await who({ token: key.key })
      expect([answer.status, answer.json()]).toEqual([
        200,
        { id: key.id, accountId: key.accountId, scopes, expiresAt: null, secretExpiresAt: null },
      ])
      expect(key.scopes).toEqual(scopes)
    },
  )

  test('C13: the first key has every scope', async () => {
    const { apiKey, accountId } = server.firstRun
    expect((await who({ token: apiKey })).json()).toMatchObject({
      accountId,
      scopes: ['nodes:read', 'nodes:write', 'gateway:write', 'events:read', 'webhooks:write'],
    })
  })
})

describe('the operator’s API', () => {
  test('an account has an id, a name, credit and a creation time, and can be read alone and in the list', async () => {
    const made = await server.operator('POST', '/accounts', { json: { name: '  Alice & Co  ', creditSat: 21 } })
    expect(made.status).toBe(201)
    const account = made.json()
    expect(account).toEqual({
      id: expect.any(String),
      name: 'Alice & Co',
      emails: [],
      creditSat: 21,
      createdAt: expect.any(Number),
      signInMethods: [],
      nodes: 0,
      isTreasury: false,
    })
    expect((await server.operator('GET', `/accounts/${account.id}`)).json()).toMatchObject(account)
    const all = (await server.operator('GET', '/accounts')).json().accounts
    expect(all).toContainEqual(account)
    expect(all.map(({ id }: { id: string }) => id)).toEqual(all.map(({ id }: { id: string }) => id).sort())
    expect(all[0]).toMatchObject({ id: server.firstRun.accountId, name: 'default', creditSat: 10_000 })
  })

  test('without creditSat, an account gets the deployment’s sign-up credit; with 0, it gets none', async () => {
    expect((await server.newAccount()).creditSat).toBe(10_000)
    expect((await server.newAccount({ creditSat: 0 })).creditSat).toBe(0)
  })

  test('C31: credit can be added and deducted, and the balance is the sum', async () => {
    const { id } = await server.newAccount({ creditSat: 100 })
    const add = (amountSat: number) =>
      server.operator('POST', `/accounts/${id}/credit`, { json: { amountSat, reason: 'because' } })
    const entry = await add(50)
    expect(entry.status).toBe(201)
    expect(entry.json()).toEqual({
      id: expect.any(Number),
      amountSat: 50,
      kind: 'operator',
      reason: 'because',
      createdAt: expect.any(Number),
      creditSat: 150,
    })
    expect((await add(-30)).json().amountSat).toBe(-30)
    expect((await server.operator('GET', `/accounts/${id}`)).json().creditSat).toBe(120)
    const statuses = (await Promise.all(Array.from({ length: 20 }, () => add(1)))).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([201]))
    expect((await server.operator('GET', `/accounts/${id}`)).json().creditSat).toBe(140)
  })

  test('C31: millisatoshis are shown in whole satoshis, rounded down', async () => {
    const { id } = await server.newAccount({ creditSat: 1 })
    const sql = server.sql()
    await sql`INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${id}, 999, 'test', 'x')`
    expect((await server.operator('GET', `/accounts/${id}`)).json().creditSat).toBe(1)
    await sql`INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${id}, -2000, 'test', 'x')`
    expect((await server.operator('GET', `/accounts/${id}`)).json().creditSat).toBe(-1)
  })

  test('C31: the ledger is append-only: the database itself refuses to change it', async () => {
    const { id } = await server.newAccount({ creditSat: 7 })
    const sql = server.sql()
    const changes = [
      sql`UPDATE credit_entries SET amount_msat = 1 WHERE account_id = ${id}`,
      sql`DELETE FROM credit_entries WHERE account_id = ${id}`,
      sql`TRUNCATE credit_entries`,
    ]
    for (const change of changes) await expect(change).rejects.toThrow('this table is append-only')
    expect((await server.operator('GET', `/accounts/${id}`)).json().creditSat).toBe(7)
  })

  test('an unknown scope is refused with the list of valid ones', async () => {
    const { id } = await server.newAccount()
    const answer = await server.operator('POST', `/accounts/${id}/keys`, { json: { name: 'x', scopes: ['nodes:all'] } })
    expect([answer.status, answer.json().error.code]).toEqual([400, 'bad_request'])
    expect(answer.json().error.message).toMatch(/nodes:read, nodes:write, gateway:write/)
  })

  test('PATCH returns the changed key', async () => {
    const key = await server.newKey(['nodes:write'])
    const view = {
      id: key.id,
      name: 'test',
      prefix: key.key.slice(0, 8),
      scopes: ['nodes:read', 'nodes:write'],
      lastUsedAt: null,
      expiresAt: null,
      isExpired: false,
      rotatedAt: null,
      previousSecretUntil: null,
    }
    expect((await setDisabled(key, true)).json()).toEqual({ ...view, disabled: true, createdAt: expect.any(Number) })
    expect((await setDisabled(key, false)).json()).toEqual({ ...view, disabled: false, createdAt: expect.any(Number) })
  })

  test('C47: the account’s log says who did what and when, newest first, and contains no secret', async () => {
    const key = await server.newKey(['gateway:write'])
    await setDisabled(key, true)
    await setDisabled(key, false)
    await revoke(key)
    await server.operator('POST', `/accounts/${key.accountId}/credit`, { json: { amountSat: -5, reason: 'fee' } })
    const answer = await server.operator('GET', `/accounts/${key.accountId}/activity`)
    const row = { at: expect.any(Number), actor: 'operator', detail: { name: 'test' } }
    expect(answer.json()).toEqual({
      activity: [
        { ...row, action: 'credit.added', target: null, detail: { amountMsat: -5_000, reason: 'fee' } },
        { ...row, action: 'key.revoked', target: key.id },
        { ...row, action: 'key.enabled', target: key.id },
        { ...row, action: 'key.disabled', target: key.id },
        { ...row, action: 'key.created', target: key.id, detail: { name: 'test', scopes: ['nodes:read', 'gateway:write'] } },
        { ...row, action: 'account.created', target: null, detail: {} },
      ],
    })
    expect(answer.text).not.toContain(key.key.slice(4))
  })

  test('C47: an account’s log contains nothing about other accounts', async () => {
    const [one, other] = await Promise.all([server.newKey(), server.newKey()])
    const text = (await server.operator('GET', `/accounts/${one.accountId}/activity`)).text
    expect(text).toContain(one.id)
    expect(text).not.toContain(other.id)
  })
})

describe('C46: keys per account', () => {
  const create = (on: Server, id: string): Promise<Answer> =>
    on.operator('POST', `/accounts/${id}/keys`, { json: { name: 'x', scopes: [] } })
  const count = (answers: Answer[], status: number): number => answers.filter((answer) => answer.status === status).length

  test('C46: of 30 concurrent creations, as many succeed as the limit allows; the rest get limit_reached', async () => {
    const { id } = await server.newAccount()
    const answers = await Promise.all(Array.from({ length: 30 }, () => create(server, id)))
    expect([count(answers, 201), count(answers, 409)]).toEqual([10, 20])
    expect(answers.find(({ status }) => status === 409)?.json().error.code).toBe('limit_reached')
    const [{ count: rows } = {}] = await server.sql()`SELECT count(*)::int AS count FROM api_keys WHERE account_id = ${id}`
    expect(rows).toBe(10)
  })

  test('C46: a revoked key makes room, a disabled one does not', async () => {
    const { id } = await server.newAccount()
    const keys = await Promise.all(Array.from({ length: 10 }, () => server.newKey([], id)))
    await setDisabled(keys[0] as Key, true)
    expect((await create(server, id)).status).toBe(409)
    await revoke(keys[0] as Key)
    expect([(await create(server, id)).status, (await create(server, id)).status]).toEqual([201, 409])
  })

  test('C46: the limit is 50 unless it is set', async () => {
    const { id } = await server.newAccount()
    const answers = await Promise.all(Array.from({ length: 60 }, () => create(replica, id)))
    expect([count(answers, 201), count(answers, 409)]).toEqual([50, 10])
  })
})

test('the time of a key’s last use is written later, in batches, and at the latest when the service stops', async () => {
  const key = await server.newKey()
  const before = Math.floor(Date.now() / 1000)
  expect((await who({ token: key.key })).status).toBe(200)
  const after = Math.ceil(Date.now() / 1000)
  await server.restart()
  const { lastUsedAt } = (await setDisabled(key, false)).json()
  expect(lastUsedAt).toBeGreaterThanOrEqual(before)
  expect(lastUsedAt).toBeLessThanOrEqual(after)
})

/** Last, because it takes the store down. */
test('C10: malformed keys are refused without the store: while it is down they get 401, and a well-formed key 503', async () => {
  await replica.stop()
  const { giveBack } = await server.takeStoreAway()
  expectUnauthorized(await who({ token: 'junk' }))
  expectUnauthorized(await who({ token: `${wellFormed().slice(0, -1)}_` }))
  expect((await who({ token: wellFormed() })).status).toBe(503)
  giveBack()
  await eventually(async () => (await server.send('GET', '/readyz')).status === 200, 'the store to be back')
})
