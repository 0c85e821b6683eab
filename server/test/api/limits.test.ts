import { beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type Server, startServer } from '../support/server.ts'

/** Counts in memory and trusts no proxy. */
let alone: Server
/** Count in the database and trust the configured proxies. */
let behindOne: Server
let behindTwo: Server
let behindList: Server

beforeAll(async () => {
  alone = await startServer({ store: 'embedded', env: { NODE_PRICE_SAT_PER_DAY: '0' } })
  const behind = (TRUST_PROXY: string): Promise<Server> =>
    startServer({ env: { ...alone.sharedStoreEnv, ROLE: 'api', TRUST_PROXY } })
  ;[behindOne, behindTwo, behindList] = await Promise.all([
    behind('1'),
    behind('2'),
    behind('127.0.0.1, 10.0.0.0/8, 2001:db8:9::/48'),
  ])
})

const MANY = 30

function fail(server: Server, from: string | undefined, path = '/v1/api-key', token = 'junk'): Promise<Answer> {
  return server.send('GET', path, { token, ...(from === undefined ? {} : { headers: { 'x-forwarded-for': from } }) })
}

async function failOften(
  server: Server,
  times: number,
  from: (index: number) => string | undefined,
  path?: string,
): Promise<number[]> {
  const statuses: number[] = []
  for (let index = 0; index < times; index++) statuses.push((await fail(server, from(index), path)).status)
  return statuses
}

const refused = (times: number): number[] => Array.from({ length: times }, () => 401)

function expectLimited(answer: Answer): void {
  expect([answer.status, answer.json()]).toEqual([429, { error: { code: 'rate_limited', message: 'rate limit exceeded' } }])
  const seconds = Number(answer.headers['retry-after'])
  expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60).toBe(true)
  expect(answer.headers).toMatchObject({
    'x-ratelimit-limit': '30',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': String(seconds),
  })
}

let lastRequest = 0
/** The client address in the service's log, which is also the address that its limits use. */
async function addressSeen(server: Server, forwarded: string | string[] | undefined): Promise<string> {
  const id = `address-${lastRequest++}`
  const headers = { 'x-request-id': id, ...(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }) }
  await server.send('GET', '/healthz', { headers })
  const [line] = await server.printed(new RegExp(`^.*"reqId":"${id}".*"ip".*$`, 'm'), 'stderr')
  return JSON.parse(line).req.ip
}

describe('C44: failed authentications', () => {
  test('C44: 30 from one address get 401, all further ones 429; a valid key is never refused', async () => {
    const from = '192.0.2.1'
    expect(await failOften(behindOne, MANY, () => from)).toEqual(refused(MANY))
    expectLimited(await fail(behindOne, from))
    expectLimited(await fail(behindOne, from))
    const valid = await behindOne.send('GET', '/v1/api-key', {
      token: alone.firstRun.apiKey,
      headers: { 'x-forwarded-for': from },
    })
    expect(valid.status).toBe(200)
    expect((await fail(behindOne, '192.0.2.2')).status).toBe(401)
  })

  test('C44: of 60 concurrent ones, 30 get 401', async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => fail(behindOne, '192.0.2.3')))
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(30)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(30)
  })

  test('C44: every kind of failure counts: no header, another scheme, an unknown key', async () => {
    const headers = { 'x-forwarded-for': '192.0.2.4' }
    for (let index = 0; index < 10; index++) {
      await behindOne.send('GET', '/v1/api-key', { headers })
      await behindOne.send('GET', '/v1/api-key', { headers: { ...headers, authorization: 'Basic Og==' } })
      await behindOne.send('GET', '/v1/api-key', { headers, token: 'byk_0000000000000000000000000000000000cR7l' })
    }
    expectLimited(await fail(behindOne, '192.0.2.4'))
  })

  test('C44: the same for the operator’s token; the right one is never refused', async () => {
    const from = '192.0.2.5'
    expect(await failOften(behindOne, MANY, () => from, '/operator/v1/accounts')).toEqual(refused(MANY))
    expectLimited(await fail(behindOne, from, '/operator/v1/accounts'))
    const valid = await behindOne.operator('GET', '/accounts', { headers: { 'x-forwarded-for': from } })
    expect(valid.status).toBe(200)
  })

  test('C44: replicas count together', async () => {
    const from = '192.0.2.6'
    expect(await failOften(behindOne, 15, () => from)).toEqual(refused(15))
    expect(await failOften(behindTwo, 15, () => `${from}, 10.0.0.1`)).toEqual(refused(15))
    expectLimited(await fail(behindList, from))
  })

  test('C44: the count starts again after a minute', async () => {
    const from = '192.0.2.7'
    await failOften(behindOne, MANY, () => from)
    expectLimited(await fail(behindOne, from))
    await alone.sql()`UPDATE rate_limits SET resets_at = now() WHERE key LIKE ${`% ${from}`}`
    expect(await failOften(behindOne, MANY, () => from)).toEqual(refused(MANY))
    expectLimited(await fail(behindOne, from))
  })

  test('C44: requests without authentication are not limited', async () => {
    const from = { headers: { 'x-forwarded-for': '192.0.2.1' } }
    for (const path of ['/healthz', '/readyz', '/openapi.json'])
      expect((await behindOne.send('GET', path, from)).status).toBe(200)
    expect((await behindOne.send('GET', '/nothing', from)).status).toBe(404)
  })
})

describe('C43: which address counts', () => {
  const seen: [title: string, server: () => Server, forwarded: string | string[] | undefined, address: string][] = [
    ['alone, no header', () => alone, undefined, '127.0.0.1'],
    ['alone, a claim', () => alone, '1.1.1.1', '127.0.0.1'],
    ['one hop, no header', () => behindOne, undefined, '127.0.0.1'],
    ['one hop, what the proxy saw', () => behindOne, '1.1.1.1', '1.1.1.1'],
    ['one hop, a claim before it', () => behindOne, '9.9.9.9, 1.1.1.1', '1.1.1.1'],
    ['one hop, a claim in a separate header', () => behindOne, ['9.9.9.9', '1.1.1.1'], '1.1.1.1'],
    ['two hops', () => behindTwo, '1.1.1.1, 2.2.2.2', '1.1.1.1'],
    ['two hops, a claim before them', () => behindTwo, '9.9.9.9, 1.1.1.1, 2.2.2.2', '1.1.1.1'],
    ['two hops, but only one came', () => behindTwo, '1.1.1.1', '1.1.1.1'],
    ['a list, what the proxy saw', () => behindList, '1.1.1.1', '1.1.1.1'],
    ['a list, through two of its networks', () => behindList, '1.1.1.1, 2001:db8:9::1, 10.1.2.3', '1.1.1.1'],
    ['a list, a claim before a stranger', () => behindList, '9.9.9.9, 1.1.1.1', '1.1.1.1'],
    ['a list, a claim to be in it', () => behindList, '10.1.1.1, 1.1.1.1', '1.1.1.1'],
    ['IPv6', () => behindOne, '2001:db8::1', '2001:db8::1'],
  ]

  test.each(seen)('C43: %s', async (_title, server, forwarded, address) => {
    expect(await addressSeen(server(), forwarded)).toBe(address)
  })

  test('C43: a proxy that is not on the list is not trusted', async () => {
    const stranger = await startServer({ env: { ...alone.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '10.0.0.0/8' } })
    expect(await addressSeen(stranger, '1.1.1.1')).toBe('127.0.0.1')
    await stranger.stop()
  })

  test.each([
    'nonsense',
    '',
    ',',
    '1.1.1.1,',
    '999.1.1.1',
    '::1%eth0',
    '1.1.1.1:80',
    '[::1]:80',
    'unknown',
    `${'1.1.1.1,'.repeat(500)}2.2.2.2`,
  ])('C43: a header of %j does no harm', async (forwarded) => {
    for (const server of [behindOne, behindTwo, behindList]) expect((await fail(server, forwarded)).status).toBe(401)
  })

  test('C43: without TRUST_PROXY, a forged address does not bypass the limit', async () => {
    expect(await failOften(alone, MANY, (index) => `198.51.100.${index}`)).toEqual(refused(MANY))
    expectLimited(await fail(alone, '198.51.100.99'))
    expect((await alone.send('GET', '/v1/api-key', { token: alone.firstRun.apiKey })).status).toBe(200)
    expectLimited(await fail(alone, undefined, '/operator/v1/accounts'))
    expect((await alone.operator('GET', '/accounts')).status).toBe(200)
  })
})

describe('C42, C44: an address', () => {
  test('IPv6 counts by /64, in any notation, because one customer has at least that many addresses', async () => {
    const statuses = await failOften(behindOne, MANY, (index) =>
      index % 2 ? `2001:db8:1:2::${index}` : `2001:0DB8:1:2:ffff:${index}:0:1`,
    )
    expect(statuses).toEqual(refused(MANY))
    expectLimited(await fail(behindOne, '2001:db8:1:2:3:4:5:6'))
    expect((await fail(behindOne, '2001:db8:1:3::1')).status).toBe(401)
  })

  test('IPv4 counts per address, even when mapped to IPv6', async () => {
    expect(await failOften(behindOne, MANY, (index) => (index % 2 ? '203.0.113.1' : '::ffff:203.0.113.1'))).toEqual(refused(MANY))
    expectLimited(await fail(behindOne, '203.0.113.1'))
    expect((await fail(behindOne, '203.0.113.2')).status).toBe(401)
    expect((await fail(behindOne, '::ffff:203.0.113.2')).status).toBe(401)
  })
})
