import { writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually, type Server, startServer } from '../../server/test/support/server.ts'
import { Customer, inHome, onTerminal, ROOMY, run } from './harness.ts'

let server: Server
let ada: Customer
let operator: Record<string, string>
let nodeId: string

beforeAll(async () => {
  server = await startServer({ env: ROOMY })
  ada = await Customer.of(server)
  operator = { DATA_DIR: server.dataDir }
  nodeId = (await ada.gets(['nodes', 'create', '--wait'])).node.id
})

const asks = (...more: string[]): string[] => [
  'payments',
  'create',
  '--node',
  nodeId,
  '--amount-sat',
  '1500',
  '--description',
  'Weather "today"',
  ...more,
]
const customerPays = async (challenge: string): Promise<any> =>
  ada.gets(['sandbox', 'pay', '-'], { input: challenge, env: operator })

describe.each(['mpp', 'l402'])('piped, %s', (protocol) => {
  test('from the challenge to the delivery: create, sandbox pay, validate, redeem, get', async () => {
    const created = await ada.gets(asks('--protocol', protocol))
    expect(created).toEqual({
      id: expect.stringMatching(/^pay_/),
      protocol,
      status: 'payment_required',
      challenge: expect.any(String),
    })
    const { credential, preimage, paymentHash } = await customerPays(created.challenge)
    expect([preimage, paymentHash]).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/), expect.stringMatching(/^[0-9a-f]{64}$/)])

    const validated = await ada.gets(['payments', 'validate'], { input: `${credential}\n` })
    expect(validated).toMatchObject({ id: created.id, status: 'paid' })
    writeFileSync(inHome('credential'), credential)
    expect(await ada.gets(['payments', 'validate', created.id, '--credential-file', inHome('credential')])).toEqual(validated)

    const redeem = ['payments', 'redeem', '--single-use', '--request-id', 'order-1']
    const redeemed = await ada.gets(redeem, { input: credential })
    expect(redeemed).toMatchObject({
      id: created.id,
      amountSat: 1500,
      description: 'Weather "today"',
      redeemedAt: expect.any(Number),
    })
    expect(await ada.gets(redeem, { input: credential })).toEqual(redeemed)
    const again = await ada.run(['payments', 'redeem', '--single-use'], { input: credential })
    expect([again.code, again.error().code]).toEqual([8, 'already_redeemed'])
    expect(await ada.gets(['payments', 'get', created.id])).toMatchObject({ status: 'paid', challenge: created.challenge })
  })

  test('an unpaid credential is a state conflict; a wrong, missing or malformed one is invalid input', async () => {
    const [one, two] = [await ada.gets(asks('--protocol', protocol)), await ada.gets(asks('--protocol', protocol))]
    const { credential } = await customerPays(one.challenge)
    expect(await ada.run(['payments', 'validate', two.id], { input: credential })).toMatchObject({ code: 2 })
    expect(await ada.run(['payments', 'validate'], { input: 'nonsense' })).toMatchObject({ code: 2 })
    expect(await ada.run(['payments', 'validate'], { input: '' })).toMatchObject({ code: 2 })
    expect(await ada.run(['payments', 'validate', 'pay_00000000000000000000'], { input: credential })).toMatchObject({ code: 5 })
    for (const { stderr } of [await ada.run(['payments', 'validate', two.id], { input: credential })])
      expect(stderr).not.toContain(credential)
  })
})

test('the same idempotency key gives the same payment', async () => {
  const created = await ada.gets(asks('--idempotency-key', 'order 7'))
  expect(await ada.gets(asks('--idempotency-key', 'order 7'))).toEqual(created)
  const other = await ada.run([...asks('--idempotency-key', 'order 7'), '--protocol', 'l402'])
  expect([other.code, other.error().code]).toEqual([8, 'idempotency_conflict'])
})

test('list: by state, by node, in pages and all of them', async () => {
  const bob = await Customer.of(server)
  const { node } = await bob.gets(['nodes', 'create', '--wait'])
  const ids: string[] = []
  for (let count = 0; count < 3; count++) {
    ids.unshift((await bob.gets(['payments', 'create', '--node', node.id, '--amount-sat', '1', '--description', 'x'])).id)
  }
  const page = await bob.gets(['payments', 'list', '--limit', '2', '--node', node.id])
  expect(page.payments.map((one: any) => one.id)).toEqual(ids.slice(0, 2))
  expect((await bob.gets(['payments', 'list', '--cursor', page.nextCursor])).payments.map((one: any) => one.id)).toEqual(
    ids.slice(2),
  )
  expect((await bob.gets(['payments', 'list', '--all', '--limit', '1'])).payments.map((one: any) => one.id)).toEqual(ids)
  expect(await bob.gets(['payments', 'list', '--status', 'paid'])).toEqual({ payments: [], nextCursor: null })
})

test('C45, C48, D9: a delivery is held, released and confirmed; payments that were paid but not delivered are listed', async () => {
  const eve = await Customer.of(server)
  const { node } = await eve.gets(['nodes', 'create', '--wait'])
  const resource = 'GET /report'
  const create = [
    'payments',
    'create',
    '--node',
    node.id,
    '--amount-sat',
    '10',
    '--description',
    'Report',
    '--resource',
    resource,
  ]
  // This payment stays unpaid, so none of the filters below may match it.
  await eve.gets(create)
  const { id, challenge } = await eve.gets(create)
  const { credential } = await customerPays(challenge)
  const listed = async (...filter: string[]): Promise<string[]> =>
    (await eve.gets(['payments', 'list', ...filter])).payments.map((one: any) => one.id)
  await eventually(async () => (await listed('--status', 'settled')).includes(id), 'the settlement')

  const redeem = (requestId: string, ...more: string[]) =>
    eve.run(['payments', 'redeem', '--request-id', requestId, '--hold-seconds', '600', ...more], { input: credential })
  for (const wrong of [
    ['--expect-resource', 'GET /dear'],
    ['--expect-min-sat', '11'],
    ['--expect-node', nodeId],
  ]) {
    const refused = await redeem('a', ...wrong)
    expect([refused.code, refused.error().code]).toEqual([8, 'terms_mismatch'])
  }
  expect(await listed('--status', 'settled')).toEqual([id])
  const right = ['--expect-resource', resource, '--expect-min-sat', '10', '--expect-node', node.id]
  expect((await redeem('a', ...right)).json()).toMatchObject({ id, resource })
  expect(await listed('--delivery', 'held')).toEqual([id])
  expect((await redeem('b')).error().code).toBe('delivery_in_progress')

  const release = ['payments', 'release', id, '--request-id', 'a', '--reason', 'out of paper']
  expect(await eve.gets(release)).toEqual({ id, status: 'paid', redeemable: true })
  const why = await server.sql()`SELECT detail FROM activity_log WHERE target = ${id} AND action = 'payment.released'`
  expect(why).toEqual([{ detail: { reason: 'out of paper' } }])
  expect(await listed('--status', 'paid', '--delivery', 'none')).toEqual([id])
  expect((await redeem('b')).code).toBe(0)
  expect([(await eve.run(release)).code, (await eve.run(release)).error().code]).toEqual([8, 'not_claimed'])
  const wrong = await eve.run(['payments', 'delivered', id, '--request-id', 'a'])
  expect([wrong.code, wrong.error().code]).toEqual([8, 'not_claimed'])
  expect(await eve.gets(['payments', 'delivered', id, '--request-id', 'b'])).toEqual({ id, requestId: 'b', result: 'delivered' })
  expect(await listed('--delivery', 'done')).toEqual([id])
  for (const command of ['delivered', 'release']) expect((await eve.run(['payments', command, id])).code).toBe(2)
})

test('key: account and scopes, never the key itself', async () => {
  const reader = await Customer.of(server, ['nodes:read'])
  const { code, stdout, json } = await reader.run(['key'])
  expect([code, json()]).toEqual([
    0,
    {
      id: expect.stringMatching(/^key_/),
      accountId: expect.stringMatching(/^acct_/),
      scopes: ['nodes:read'],
      expiresAt: null,
      secretExpiresAt: null,
    },
  ])
  expect(stdout).not.toContain(reader.env.SERVICE_API_KEY)
})

describe('sandbox', () => {
  test('fund, with each way to pass the operator token', async () => {
    writeFileSync(inHome('token'), server.operatorToken)
    const ways = [{ OPERATOR_TOKEN: server.operatorToken }, { OPERATOR_TOKEN_FILE: inHome('token') }, operator]
    for (const [index, env] of ways.entries()) {
      const before = index === 0 ? 0 : 1000 * index
      const { balanceSat } = await ada.gets(['sandbox', 'fund', nodeId, '1000'], { env: { ...env, SERVICE_API_KEY: undefined } })
      expect(balanceSat).toBeGreaterThan(before)
    }
  })

  test('a missing or wrong token is exit code 4, an unknown node 5, an invalid invoice 2', async () => {
    const env = { SERVICE_BASE_URL: `${server.url}/v1`, DATA_DIR: inHome('nowhere') }
    expect((await run(['sandbox', 'fund', nodeId, '1'], { env })).code).toBe(4)
    expect((await run(['sandbox', 'fund', nodeId, '1'], { env: { ...env, OPERATOR_TOKEN: 'x'.repeat(40) } })).code).toBe(4)
    expect((await ada.run(['sandbox', 'fund', 'node_00000000000000000000', '1'], { env: operator })).code).toBe(5)
    expect((await ada.run(['sandbox', 'pay', 'lnbcrt1nonsense'], { env: operator })).code).toBe(2)
    expect(
      (await run(['sandbox', 'pay', 'lnbcrt1x'], { env: { ...operator, SERVICE_BASE_URL: 'http://127.0.0.1:1/v1' } })).code,
    ).toBe(3)
  })

  test('for an invoice it prints the preimage', async () => {
    const { challenge } = await ada.gets(asks('--protocol', 'l402'))
    const [, invoice = ''] = /invoice="([^"]+)"/.exec(challenge) ?? []
    const paid = await ada.gets(['sandbox', 'pay', invoice], { env: operator })
    expect(Object.keys(paid)).toEqual(['paymentHash', 'preimage'])
    expect(await ada.gets(['sandbox', 'pay', invoice], { env: operator })).toEqual(paid)
  })
})

onTerminal('payments, key and sandbox', () => {
  test('every command prints a sheet or a table, with grouped amounts', async () => {
    await ada.gets(asks())
    const created = await ada.sees(asks('--protocol', 'l402'))
    expect(created.plain).toMatch(/^id +pay_\w+\nprice +1\u2009500 sat\nprotocol +l402\nchallenge +L402 macaroon="/)
    const [, id = ''] = /(pay_\w+)/.exec(created.plain) ?? []
    const { challenge } = await ada.gets(['payments', 'get', id])
    const paid = await ada.sees(['sandbox', 'pay', challenge], { env: operator })
    const [, credential = ''] = /^credential +(L402 .*)$/m.exec(paid.plain) ?? []
    writeFileSync(inHome('shown'), credential)
    expect((await ada.sees(['payments', 'validate', '--credential-file', inHome('shown')])).plain).toMatch(/status +paid\n/)
    expect((await ada.sees(['payments', 'redeem', '--credential-file', inHome('shown')])).plain).toMatch(
      /claimed by this request\nprice +1\u2009500 sat\n/,
    )
    await customerPays((await ada.gets(asks())).challenge)
    await eventually(
      async () => /settled, undelivered/.test((await ada.sees(['payments', 'list', '--status', 'settled'])).plain),
      'what was paid and not served to be seen',
    )
    expect((await ada.sees(['payments', 'get', id])).plain).toMatch(/status +paid\nprice +1\u2009500 sat\nfor +Weather "today"\n/)
    expect((await ada.sees(['payments', 'list', '--limit', '1'])).plain).toMatch(
      /^ID +PRICE +STATUS +PROTOCOL +CREATED +FOR\npay_.*\nMore: --cursor /,
    )
    const newcomer = await Customer.of(server)
    expect((await newcomer.sees(['payments', 'list', '--status', 'expired'])).plain).toBe('No payments.\n')
    expect((await ada.sees(['key'])).plain).toMatch(/^key +key_\w+\naccount +acct_\w+\nscopes +.*gateway:write.*\nservice +http/)
    expect((await ada.sees(['sandbox', 'fund', nodeId, '1000000'], { env: operator })).plain).toMatch(
      /^balance +1\u2009\d{3}\u2009\d{3} sat\n$/,
    )
  })

  test('a credential is not asked for at the keyboard, where it would be seen', async () => {
    const { code, plain } = await ada.sees(['payments', 'validate'])
    expect(code).toBe(2)
    expect(plain).toContain('Pipe it in, or name a file.')
  })
})
