import { hkdfSync } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { validateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { beforeAll, describe, expect, test } from 'vitest'
import { derivedKey, masterKeyOf, open } from '../../src/platform/secrets.ts'
import { newRepeatKey, signUp, type Visitor } from '../support/dashboard.ts'
import {
  balanceOf,
  type Created,
  callNode,
  catalogue,
  directoryOf,
  fund,
  invoiceOf,
  type Node,
  newOwner,
  type Owner,
  runningPidOf,
} from '../support/nodes.ts'
import { type Answer, eventually, type Server, startServer } from '../support/server.ts'

const PRICE_SAT = 100
const MAX_NODES = 15

let server: Server
let owner: Owner
/** A node that the tests share. Each test must leave it ready. */
let shared: Created

beforeAll(async () => {
  server = await startServer({
    env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: String(PRICE_SAT), MAX_NODES_PER_ACCOUNT: String(MAX_NODES) },
  })
  owner = await newOwner(server)
  shared = await owner.createReady({ name: 'shared' })
})

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))
const statuses = (answers: Answer[]): number[] => answers.map(({ status }) => status).sort()
const activityOf = async (on: Server, { accountId }: Owner): Promise<{ actor: string; action: string; target: string }[]> =>
  (await on.operator('GET', `/accounts/${accountId}/activity`)).json().activity

/** A secret as text, in hex, and in base64 at each of the three offsets. For a password in hex, also the bytes that it encodes. */
function spellings(secret: string): string[] {
  const forms = [Buffer.from(secret), ...(/^[0-9a-f]{64}$/.test(secret) ? [Buffer.from(secret, 'hex')] : [])]
  return [
    secret,
    ...forms.flatMap((bytes) => [
      bytes.toString('hex'),
      ...[0, 1, 2].map((skip) => bytes.subarray(skip, skip + 3 * Math.floor((bytes.length - skip) / 3)).toString('base64')),
    ]),
  ]
}

describe('C17: credentials', () => {
  test('C17: the seed is twelve valid BIP39 words, the passwords are 64 hex digits each and differ', async () => {
    const others = await Promise.all(times(3, () => owner.create()))
    for (const { credentials } of [shared, ...others]) {
      expect(credentials.seed.split(' ')).toHaveLength(12)
      expect(validateMnemonic(credentials.seed, wordlist)).toBe(true)
      expect(credentials.password).toMatch(/^[0-9a-f]{64}$/)
      expect(credentials.restrictedPassword).toMatch(/^[0-9a-f]{64}$/)
    }
    const secrets = [shared, ...others].flatMap(({ credentials }) => Object.values(credentials))
    expect(new Set(secrets).size).toBe(secrets.length)
    for (const { node } of others) await owner.delete(node.id)
  })

  test('C17 C28: both passwords work at endpointUrl, a wrong one does not, and the restricted one cannot pay', async () => {
    const { node, credentials } = shared
    const { password, restrictedPassword } = credentials
    const infos = await Promise.all([password, restrictedPassword].map((one) => callNode(node, one, 'GET', '/getinfo')))
    expect(statuses(infos)).toEqual([200, 200])
    expect(infos[0]?.json().nodeId).toBe(infos[1]?.json().nodeId)
    expect((await callNode(node, 'wrong', 'GET', '/getinfo')).status).toBe(401)

    const payee = await owner.createReady()
    await fund(server, shared, 50_000)
    const invoice = await invoiceOf(payee, '&amountSat=1000')
    const made = await callNode(node, restrictedPassword, 'POST', '/createinvoice', 'description=x&amountSat=5')
    expect([made.status, made.json().serialized]).toEqual([200, expect.stringMatching(/^lnbcrt/)])
    const pay = (one: string): Promise<Answer> => callNode(node, one, 'POST', '/payinvoice', `invoice=${invoice}`)
    expect((await pay(restrictedPassword)).status).toBe(401)
    expect(await balanceOf(payee)).toBe(0)
    const paid = await pay(password)
    expect([paid.status, paid.json().recipientAmountSat]).toEqual([200, 1000])
    expect(await balanceOf(payee)).toBe(1000)
    await owner.delete(payee.node.id, '?force=true')
  })

  test('C17: no later response, log line, argument, environment or table contains any of them', async () => {
    const made = await owner.createReady({ name: 'secretive' })
    const { node, credentials } = made
    const path = `/nodes/${node.id}`
    const answers = [
      await owner.send('GET', path),
      await owner.send('GET', '/nodes'),
      await owner.send('PATCH', path, { json: { name: 'renamed' } }),
      await owner.send('POST', `${path}/restart`),
      await owner.send('POST', `${path}/start`),
      await owner.send('GET', `${path}/updates`),
      await owner.send('POST', `${path}/update`),
      await server.operator('GET', '/nodes'),
      await server.operator('GET', `/accounts/${owner.accountId}/activity`),
      await server.operator('GET', '/stats'),
    ]
    const pid = runningPidOf(server, node)
    const sql = server.sql()
    const tables = await sql<{ name: string }[]>`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`
    expect(tables.map(({ name }) => name)).toContain('node_secrets')
    const places = [
      ...answers.map(({ text }) => text),
      server.stdout + server.stderr,
      readFileSync(`/proc/${pid}/cmdline`, 'latin1') + readFileSync(`/proc/${pid}/environ`, 'latin1'),
      ...(await Promise.all(
        tables.map(async ({ name }) =>
          (await sql`SELECT ${sql(name)}::text AS row FROM ${sql(name)}`).map(({ row }) => row).join('\n'),
        ),
      )),
    ]
    for (const secret of Object.values(credentials)) {
      for (const spelling of spellings(secret)) for (const place of places) expect(place.includes(spelling)).toBe(false)
    }
    await owner.delete(node.id)
  })
})

describe('C31 C32: credit', () => {
  const insufficient = [402, 'insufficient_credit']

  test.each([
    // One satoshi more, because the first node may already be charged for a minute before the second one is created.
    { creditSat: PRICE_SAT * 2 + 1, nodes: 2 },
    { creditSat: PRICE_SAT * 2 - 1, nodes: 1 },
    { creditSat: PRICE_SAT - 1, nodes: 0 },
    { creditSat: 0, nodes: 0 },
  ])('C32: $creditSat sat are enough for $nodes nodes, even with concurrent requests', async ({ creditSat, nodes }) => {
    const poor = await newOwner(server, { creditSat })
    const answers = await Promise.all(times(4, () => poor.send('POST', '/nodes')))
    expect(statuses(answers)).toEqual([...times(nodes, () => 202), ...times(4 - nodes, () => 402)])
    for (const { json } of answers.filter(({ status }) => status === 402)) expect(json().error.code).toBe('insufficient_credit')
    expect(await poor.list()).toHaveLength(nodes)
    for (const { id } of await poor.list()) await poor.delete(id)
  })

  test('C31 C32: one millisatoshi too little is refused, and nothing is created: no node, number, log entry or stored answer', async () => {
    const poor = await newOwner(server, { creditSat: PRICE_SAT })
    const sql = server.sql()
    const credit = (msat: number) =>
      sql`INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${poor.accountId}, ${msat}, 'test', 'test')`
    await credit(-1)
    expect((await server.operator('GET', `/accounts/${poor.accountId}`)).json().creditSat).toBe(PRICE_SAT - 1)
    const headers = { 'idempotency-key': 'poor' }
    expect(await poor.refusal('POST', '/nodes', { headers })).toEqual(insufficient)
    expect(await poor.list()).toEqual([])
    expect((await activityOf(server, poor)).map(({ action }) => action)).not.toContain('node.created')
    await credit(1)
    const { node } = await poor.create({}, headers)
    expect(node.name).toBe('Node 1')
    await poor.delete(node.id)
  })

  test('C32: stopped and deleted nodes cost nothing; starting needs what creating needs', async () => {
    // A little more, because nodes are charged for the minutes that the test takes.
    const poor = await newOwner(server, { creditSat: PRICE_SAT + 5 })
    const first = await poor.createReady()
    expect(await poor.refusal('POST', '/nodes')).toEqual(insufficient)
    await poor.act(first.node.id, 'stop')
    const second = await poor.createReady()
    const before = await poor.get(first.node.id)
    expect(await poor.refusal('POST', `/nodes/${first.node.id}/start`)).toEqual(insufficient)
    expect(await poor.get(first.node.id)).toEqual(before)
    expect((await poor.delete(second.node.id)).status).toBe(204)
    expect((await poor.act(first.node.id, 'start')).status).toBe('ready')
    // Restarting a running node needs no additional credit.
    expect((await poor.act(first.node.id, 'restart')).status).toBe('ready')
    await poor.delete(first.node.id)
  })

  test('C32: two stopped nodes cannot both be started on credit for one', async () => {
    const poor = await newOwner(server, { creditSat: PRICE_SAT * 2 + 5 })
    const nodes = [await poor.createReady(), await poor.createReady()]
    for (const { node } of nodes) await poor.act(node.id, 'stop')
    await server.operator('POST', `/accounts/${poor.accountId}/credit`, { json: { amountSat: -PRICE_SAT, reason: 'test' } })
    const answers = await Promise.all(nodes.map(({ node }) => poor.send('POST', `/nodes/${node.id}/start`)))
    expect(statuses(answers)).toEqual([200, 402])
    for (const { node } of nodes) await poor.delete(node.id)
  })

  test('C4: the node limit is reported before missing credit, and an invalid body before both', async () => {
    const poor = await newOwner(server, { creditSat: 0 })
    expect(await poor.refusal('POST', '/nodes', { json: { name: 5 } })).toEqual([400, 'bad_request'])
    expect(await poor.refusal('POST', '/nodes')).toEqual(insufficient)
    // An account without credit may have nodes from the time before the price was raised.
    const sql = server.sql()
    await sql`
      INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history, desired_state)
      SELECT 'node_' || lpad(n::text, 20, '0'), ${poor.accountId}, 'elsewhere', '', 'x', '2m', 'limited', '', '{}', 'stopped'
      FROM generate_series(1, ${MAX_NODES}) n`
    expect(await poor.refusal('POST', '/nodes')).toEqual([409, 'limit_reached'])
    await sql`DELETE FROM nodes WHERE account_id = ${poor.accountId}`
  })
})

describe('C41: repeating a creation', () => {
  const keyed = (key: string) => ({ headers: { 'idempotency-key': key } })

  test('C41: the same request gets the identical answer, including credentials, and creates nothing', async () => {
    const mine = await newOwner(server)
    const request = { ...keyed('order 1'), json: { name: 'once', autoLiquidity: '5m' } }
    const first = await mine.send('POST', '/nodes', request)
    expect(first.status).toBe(202)
    await mine.until(first.json().node.id, 'ready')
    const again = await Promise.all(times(5, () => mine.send('POST', '/nodes', request)))
    for (const { status, text } of again) expect([status, text]).toEqual([202, first.text])
    const reordered = { ...keyed('order 1'), json: { autoLiquidity: '5m', name: 'once' } }
    expect((await mine.send('POST', '/nodes', reordered)).text).toBe(first.text)
    expect(await mine.list()).toHaveLength(1)
    expect((await mine.create()).node.name).toBe('Node 2')
    for (const { id } of await mine.list()) await mine.delete(id)
  })

  test('C41: the same key with a different body is 409 idempotency_conflict, and does not affect the stored answer', async () => {
    const mine = await newOwner(server)
    const { node } = await mine.create({ name: 'one' }, keyed('k').headers)
    for (const json of [{ name: 'two' }, {}, { name: 'one', accessMode: 'full' }])
      expect(await mine.refusal('POST', '/nodes', { ...keyed('k'), json })).toEqual([409, 'idempotency_conflict'])
    expect((await mine.create({ name: 'one' }, keyed('k').headers)).node.id).toBe(node.id)
    expect(await mine.list()).toHaveLength(1)
    await mine.delete(node.id)
  })

  test('C41: after an error the key can be reused, even with a different body', async () => {
    const mine = await newOwner(server, { creditSat: 0 })
    expect(await mine.refusal('POST', '/nodes', { ...keyed('k'), json: { name: 5 } })).toEqual([400, 'bad_request'])
    expect(await mine.refusal('POST', '/nodes', { ...keyed('k'), json: { name: 'a' } })).toEqual([402, 'insufficient_credit'])
    await server.operator('POST', `/accounts/${mine.accountId}/credit`, { json: { amountSat: PRICE_SAT, reason: 'test' } })
    const { node } = await mine.create({ name: 'b' }, keyed('k').headers)
    expect(node.name).toBe('b')
    await mine.delete(node.id)
  })

  test('C41: 20 concurrent requests with one key create one node; early ones are told to retry', async () => {
    const mine = await newOwner(server)
    const answers = await Promise.all(times(20, () => mine.send('POST', '/nodes', keyed('at once'))))
    const made = answers.filter(({ status }) => status === 202)
    expect(made.length).toBeGreaterThanOrEqual(1)
    expect(new Set(made.map(({ text }) => text)).size).toBe(1)
    for (const { status, json, headers } of answers.filter((answer) => !made.includes(answer))) {
      expect([status, json().error.code]).toEqual([409, 'operation_in_progress'])
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1)
    }
    expect(await mine.list()).toHaveLength(1)
    expect((await mine.send('POST', '/nodes', keyed('at once'))).text).toBe(made[0]?.text)
    for (const { id } of await mine.list()) await mine.delete(id)
  })

  test('C41: another API key with the same idempotency key creates another node, even in the same account', async () => {
    const mine = await newOwner(server)
    const colleague = await newOwner(server, { accountId: mine.accountId })
    const stranger = await newOwner(server)
    const ids = [mine, colleague, stranger].map(async (one) => (await one.create({}, keyed('k').headers)).node.id)
    expect(new Set(await Promise.all(ids)).size).toBe(3)
    expect([(await mine.list()).length, (await stranger.list()).length]).toEqual([2, 1])
    for (const one of [mine, stranger]) for (const { id } of await one.list()) await one.delete(id)
  })

  test('C41: a stored answer outlives the node, and is deleted after 24 hours', async () => {
    const mine = await newOwner(server)
    const first = await mine.send('POST', '/nodes', keyed('k'))
    const { id } = first.json().node
    await mine.delete(id)
    expect((await mine.send('POST', '/nodes', keyed('k'))).text).toBe(first.text)
    const sql = server.sql()
    const age = (interval: string) =>
      sql`UPDATE idempotency_keys SET created_at = now() - ${interval}::interval WHERE caller_id = ${mine.key.id}`
    await age('23 hours 59 minutes')
    expect((await mine.send('POST', '/nodes', keyed('k'))).text).toBe(first.text)
    await age('24 hours 1 second')
    const { node } = await mine.create({ name: 'new' }, keyed('k').headers)
    expect(node.id).not.toBe(id)
    await mine.delete(node.id)
  })

  test('C41: a key whose process has died is taken over after a timeout', async () => {
    const mine = await newOwner(server)
    const { node } = await mine.create({}, keyed('k').headers)
    await mine.delete(node.id)
    const sql = server.sql()
    // The state that a process leaves if it dies between claiming the key and committing its answer.
    const running = (until: string) =>
      sql`UPDATE idempotency_keys SET answer = NULL, status = NULL, running_until = now() + ${until}::interval WHERE caller_id = ${mine.key.id}`
    const [row] = await sql`
      SELECT extract(epoch FROM running_until - created_at)::float AS seconds FROM idempotency_keys WHERE caller_id = ${mine.key.id}`
    expect(row?.seconds).toBeLessThanOrEqual(30)
    await running('30 minutes')
    expect(await mine.refusal('POST', '/nodes', keyed('k'))).toEqual([409, 'operation_in_progress'])
    await running('-1 second')
    const second = await mine.create({}, keyed('k').headers)
    expect(second.node.id).not.toBe(node.id)
    expect((await mine.create({}, keyed('k').headers)).node.id).toBe(second.node.id)
    await mine.delete(second.node.id)
  })

  test.each([
    ['empty', ''],
    ['256 characters', 'k'.repeat(256)],
    ['beyond ASCII', 'schl\u00fcssel'],
    ['a tab', 'a\tb'],
  ])('C41: a key that is %s is refused', async (_title, key) => {
    expect(await owner.refusal('POST', '/nodes', keyed(key))).toEqual([400, 'bad_request'])
  })

  test('C41: a key may contain every printable character, up to 255 of them', async () => {
    const mine = await newOwner(server)
    const printable = times(95, (index) => String.fromCharCode(32 + index))
      .join('')
      .trim()
    const key = `${printable}${'~'.repeat(255 - printable.length)}`
    const { node } = await mine.create({}, keyed(key).headers)
    expect((await mine.create({}, keyed(key).headers)).node.id).toBe(node.id)
    await mine.delete(node.id)
  })

  test('C41: a key is ignored by routes that create nothing', async () => {
    const { id } = shared.node
    for (const name of ['one', 'two'])
      expect((await owner.want<Node>(200, 'PATCH', `/nodes/${id}`, { ...keyed('k'), json: { name } })).name).toBe(name)
  })

  test('C41: the database and the master key together cannot open the stored answer; the API key and the idempotency key can', async () => {
    const mine = await newOwner(server)
    const first = await mine.send('POST', '/nodes', keyed('sealed'))
    const { node, credentials } = first.json() as Created
    const [row] = await server.sql()`SELECT * FROM idempotency_keys WHERE caller_id = ${mine.key.id}`
    const answer = Buffer.from(row?.answer)
    const places = [answer.toString('latin1'), answer.toString('hex'), answer.toString('base64'), JSON.stringify(row)]
    for (const secret of Object.values(credentials))
      for (const spelling of spellings(secret)) for (const place of places) expect(place.includes(spelling)).toBe(false)

    const master = masterKeyOf(Buffer.from(server.masterKey, 'base64'))
    const salt = derivedKey(master, 'idempotent answers')
    const [apiKey] = await server.sql()`SELECT hash, prefix FROM api_keys WHERE id = ${mine.key.id}`
    const context = `${mine.key.id} POST /v1/nodes sealed`
    const under = (secret: string | Buffer): Buffer => Buffer.from(hkdfSync('sha256', secret, salt, 'boltyard answer', 32))
    const hash = Buffer.from(apiKey?.hash)
    const known = [
      master.bytes,
      salt,
      derivedKey(master, 'node material'),
      derivedKey(master, 'dashboard access'),
      ...['', 'sealed', mine.key.id, `${mine.key.id}sealed`, `${apiKey?.prefix}sealed`, hash].map(under),
      ...[Buffer.concat([hash, Buffer.from('sealed')]), `${hash.toString('hex')}sealed`, Buffer.from(row?.body_hash)].map(under),
    ]
    for (const key of known) expect(() => open(key, context, answer)).toThrow()
    // Shows that the checks above can fail: this is the key that opens the answer.
    expect(JSON.parse(open(under(`${mine.key.key}sealed`), context, answer).toString())).toMatchObject(first.json())
    await mine.delete(node.id)
  })
})

describe('with other prices, limits and versions', () => {
  const HOST_MAX = 4
  let other: Server

  beforeAll(async () => {
    other = await startServer({
      env: {
        TRUST_PROXY: '1',
        NODE_PRICE_SAT_PER_DAY: '0',
        MAX_NODES: String(HOST_MAX),
        NODE_VERSIONS: catalogue([{ version: '1.0.0' }]),
      },
    })
  })

  test('C32: at price 0 no one is ever asked to pay', async () => {
    const poor = await newOwner(other, { creditSat: 0 })
    const { node } = await poor.createReady()
    await poor.act(node.id, 'stop')
    expect((await poor.act(node.id, 'start')).status).toBe('ready')
    await other.sql()`INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${poor.accountId}, -5, 'test', 'test')`
    const second = await poor.create()
    for (const one of [node, second.node]) expect((await poor.delete(one.id)).status).toBe(204)
  })

  test('C46: a host accepts nodes up to its limit, even if many accounts ask concurrently', async () => {
    const owners = await Promise.all(times(10, () => newOwner(other)))
    const answers = await Promise.all(owners.map((one) => one.send('POST', '/nodes')))
    expect(statuses(answers)).toEqual([...times(HOST_MAX, () => 202), ...times(10 - HOST_MAX, () => 409)])
    for (const { json } of answers.filter(({ status }) => status === 409)) expect(json().error.code).toBe('limit_reached')
    for (const one of owners) for (const { id } of await one.list()) await one.delete(id)
  })

  test('security 13: newcomers cannot take the last places of a host; accounts that are known or have topped up can', async () => {
    const known = await newOwner(other)
    const strangers = await Promise.all(times(3, () => signUp(other)))
    const create = (one: Visitor): Promise<Answer> =>
      one.send('POST', '/nodes', { headers: { 'idempotency-key': newRepeatKey() } })
    const answers: Answer[] = []
    for (const one of [...strangers, ...strangers]) answers.push(await create(one))
    expect(statuses(answers)).toEqual([...times(HOST_MAX - 1, () => 202), ...times(6 - HOST_MAX + 1, () => 409)])
    const refused = answers.find(({ status }) => status === 409)
    expect(refused?.json().error).toEqual({ code: 'limit_reached', message: expect.stringMatching(/have bought credit/) })
    const { node } = await known.create()
    expect((await known.delete(node.id)).status).toBe(204)
    // With credit from the operator, an account is no longer a newcomer. The credit that every new account gets does not count.
    const [payer] = strangers
    await other.operator('POST', `/accounts/${payer?.accountId}/credit`, { json: { amountSat: 1, reason: 'paid' } })
    expect((await create(payer as Visitor)).status).toBe(202)
    for (const one of strangers)
      for (const { id } of (await one.want(200, 'GET', '/nodes')).nodes) await one.want(204, 'DELETE', `/nodes/${id}`)
  })

  test('C47 C24: every operation on a node is in the account’s log: what, on which node, by whom', async () => {
    const mine = await newOwner(other)
    const { node } = await mine.createReady()
    const path = `/nodes/${node.id}`
    // The second call changes nothing, so it is not logged.
    for (const name of ['logged', 'logged']) await mine.want(200, 'PATCH', path, { json: { name } })
    for (const action of ['stop', 'start', 'restart'] as const) await mine.act(node.id, action)
    // Refused calls, which must not appear in the log.
    for (const action of ['start', 'update']) await mine.refusal('POST', `${path}/${action}`)
    await mine.refusal('PATCH', path, { json: { name: '' } })

    await other.restart('SIGTERM', { NODE_VERSIONS: catalogue([{ version: '1.0.0' }, { version: '1.1.0' }]) })
    const updates = (): Promise<unknown> => mine.want(200, 'GET', `${path}/updates`)
    expect(await updates()).toEqual({
      currentVersion: '1.0.0-sandbox',
      latestVersion: '1.1.0',
      updateAvailable: true,
      lastUpdateError: null,
    })
    expect((await mine.want(202, 'POST', `${path}/update`)).updateStatus).toBe('updating')
    await eventually(async () => (await mine.get(node.id)).updateStatus === 'updated', 'the update')
    expect(await updates()).toMatchObject({ currentVersion: '1.1.0-sandbox', updateAvailable: false })
    expect((await mine.delete(node.id)).status).toBe(204)

    const log = (await activityOf(other, mine)).filter(({ action }) => action.startsWith('node.'))
    expect(log.reverse().map(({ action }) => action)).toEqual(
      ['created', 'renamed', 'stop', 'start', 'restart', 'update', 'updated', 'delete'].map((what) => `node.${what}`),
    )
    // The actor of the update's outcome is the node, and of everything else the API key.
    for (const { action, actor, target } of log)
      expect([action, actor, target]).toEqual([action, action === 'node.updated' ? node.id : mine.key.id, node.id])

    await eventually(async () => (await other.operator('POST', `/nodes/${node.id}/undelete`)).status === 200, 'undeletion')
    expect((await activityOf(other, mine))[0]).toMatchObject({ actor: 'operator', action: 'node.undeleted', target: node.id })
    expect(existsSync(directoryOf(other, node))).toBe(true)
  })
})
