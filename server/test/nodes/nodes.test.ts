import { hkdfSync } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { validateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { beforeAll, describe, expect, test } from 'vitest'
import { publicOperations } from '../../../contract/src/operations.ts'
import { newId } from '../../src/platform/ids.ts'
import { derivedKey, masterKeyOf, open } from '../../src/platform/secrets.ts'
import { newRepeatKey, signUp, type Visitor } from '../support/dashboard.ts'
import {
  balanceOf,
  type Created,
  callNode,
  catalogue,
  control,
  directoryOf,
  fault,
  freezeHub,
  fund,
  infoOf,
  invoiceOf,
  isRunning,
  type Node,
  newOwner,
  Owner,
  pidOf,
  runningPidOf,
} from '../support/nodes.ts'
import { type Answer, eventually, type Server, startServer } from '../support/server.ts'

const PRICE_SAT = 100
const MAX_NODES = 15
const FIELDS = [
  'id',
  'name',
  'status',
  'endpointUrl',
  'failureMessage',
  'updateStatus',
  'updateCompletedAt',
  'createdAt',
  'updatedAt',
]

let server: Server
let owner: Owner
/** A node that tests share and leave ready. */
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

describe('C14: the Node object', () => {
  test('C14: nine fields, always all of them, in this order, in every answer that has one', async () => {
    const made = await owner.create()
    const id = made.node.id
    const answers: [string, Node][] = [['POST /nodes', made.node]]
    answers.push(['GET', await owner.until(id, 'ready')])
    answers.push(['list', (await owner.list()).find((node) => node.id === id) as Node])
    answers.push(['PATCH', await owner.want(200, 'PATCH', `/nodes/${id}`, { json: { name: 'nine' } })])
    for (const action of ['restart', 'stop', 'start'] as const) answers.push([action, await owner.act(id, action)])
    for (const [from, node] of answers) expect([from, Object.keys(node)]).toEqual([from, FIELDS])
    expect(Object.keys(made)).toEqual(['node', 'credentials'])
    expect(Object.keys(made.credentials)).toEqual(['seed', 'password', 'restrictedPassword'])
    expect(made.node).toEqual({
      id: expect.stringMatching(/^node_[0-9a-hjkmnp-tv-z]{20}$/),
      name: expect.any(String),
      status: 'provisioning',
      endpointUrl: `${server.url}/n/${id}`,
      failureMessage: null,
      updateStatus: null,
      updateCompletedAt: null,
      createdAt: expect.any(Number),
      updatedAt: made.node.createdAt,
    })
    expect(Math.abs(made.node.createdAt - Date.now() / 1000)).toBeLessThan(30)
    await owner.delete(id)
  })

  test('C14: updatedAt moves when another field changes, never otherwise', async () => {
    const { node } = await owner.createReady({ name: 'clock' })
    const sql = server.sql()
    /** What it does to the time when the last change was long ago. */
    const moves = async (act: () => Promise<unknown>): Promise<boolean> => {
      const [row] = await sql`
        UPDATE nodes SET updated_at = now() - interval '1 hour' WHERE id = ${node.id}
        RETURNING floor(extract(epoch FROM updated_at))::bigint AS "setTo"`
      await act()
      const { updatedAt } = await owner.get(node.id)
      if (updatedAt === row?.setTo) return false
      expect(Math.abs(updatedAt - Date.now() / 1000)).toBeLessThan(30)
      return true
    }
    const path = `/nodes/${node.id}`
    const rename = (name: string) => () => owner.want(200, 'PATCH', path, { json: { name } })
    expect(await moves(() => Promise.all([owner.get(node.id), owner.list()]))).toBe(false)
    expect(await moves(rename('clock'))).toBe(false)
    expect(await moves(rename('  clock '))).toBe(false)
    expect(await moves(() => owner.act(node.id, 'restart'))).toBe(false)
    expect(await moves(() => owner.send('POST', `${path}/start`))).toBe(false)
    expect(await moves(() => owner.send('PATCH', path, { json: { name: '' } }))).toBe(false)
    expect(await moves(rename('other'))).toBe(true)
    expect(await moves(() => owner.act(node.id, 'stop'))).toBe(true)
    expect(await moves(() => owner.act(node.id, 'start'))).toBe(true)
    expect((await owner.get(node.id)).createdAt).toBe(node.createdAt)
    await owner.delete(node.id)
  })
})

describe('C15: names', () => {
  const good: [title: string, name: string, kept: string][] = [
    ['one character', 'a', 'a'],
    ['16 characters', 'sixteen letters!', 'sixteen letters!'],
    ['16 characters and white space around', '  sixteen letters!\t\n', 'sixteen letters!'],
    ['16 code points of 32 UTF-16 units', '👩'.repeat(16), '👩'.repeat(16)],
    ['16 code points of one letter and its marks', `e${'\u0301'.repeat(15)}`, `e${'\u0301'.repeat(15)}`],
    ['other scripts', '東京 Ωλ', '東京 Ωλ'],
    ['quotes, markup and a backslash', `'"<b>\\`, `'"<b>\\`],
    ['a family: five code points, one sign', '👩‍👩‍👧', '👩‍👩‍👧'],
    ['a Persian word with its non-joiner', 'می\u200cخواهم', 'می\u200cخواهم'],
  ]
  const bad: [title: string, name: unknown][] = [
    ['17 characters', 'seventeen letters'],
    ['17 code points that would be 16 without the emoji', `${'a'.repeat(16)}👩`],
    ['a NUL inside', 'a\u0000b'],
    ['a line break inside', 'a\nb'],
    ['a tab inside', 'a\tb'],
    ['an escape', '\u001b[31m'],
    ['DEL', 'a\u007f'],
    ['a C1 control', 'a\u0085b'],
    ['a bidirectional override (security 29)', 'a\u202eb'],
    ['a zero-width space (security 29)', 'a\u200bb'],
    ['nothing to see (security 29)', '\u200d\u200c'],
    ['null', null],
    ['a number', 5],
    ['a boolean', true],
    ['a list', ['a']],
    ['an object', { a: 1 }],
  ]
  const blank: [title: string, name: string][] = [
    ['nothing', ''],
    ['spaces', '   '],
    ['line breaks and tabs', '\n\t\r'],
    ['an ideographic space', '\u3000'],
  ]

  test.each(good)('C15: PATCH takes %s', async (_title, name, kept) => {
    const node = await owner.want<Node>(200, 'PATCH', `/nodes/${shared.node.id}`, { json: { name } })
    expect([node.name, (await owner.get(shared.node.id)).name]).toEqual([kept, kept])
  })

  test('C15: creation takes and trims them, too', async () => {
    const tried = [good[2], good[3]].flatMap((one) => (one ? [one] : []))
    for (const [, name, kept] of tried) {
      const { node } = await owner.create({ name })
      expect([node.name, (await owner.get(node.id)).name]).toEqual([kept, kept])
      await owner.delete(node.id)
    }
  })

  test.each(bad)('C15: PATCH and creation refuse %s', async (_title, name) => {
    const before = await owner.list()
    expect(await owner.refusal('PATCH', `/nodes/${shared.node.id}`, { json: { name } })).toEqual([400, 'bad_request'])
    expect(await owner.refusal('POST', '/nodes', { json: { name } })).toEqual([400, 'bad_request'])
    expect(await owner.list()).toEqual(before)
  })

  test.each(blank)('C15: blank (%s) is refused by PATCH', async (_title, name) => {
    const before = await owner.get(shared.node.id)
    expect(await owner.refusal('PATCH', `/nodes/${shared.node.id}`, { json: { name } })).toEqual([400, 'bad_request'])
    expect(await owner.get(shared.node.id)).toEqual(before)
  })

  test('C15: PATCH needs a name, and knows no other field', async () => {
    const path = `/nodes/${shared.node.id}`
    expect(await owner.refusal('PATCH', path, { json: {} })).toEqual([400, 'bad_request'])
    expect(await owner.refusal('PATCH', path)).toEqual([400, 'bad_request'])
    expect(await owner.refusal('PATCH', path, { json: { name: 'a', status: 'ready' } })).toEqual([400, 'bad_request'])
  })

  test('C15: omitted or blank on creation is Node n: the account’s nodes so far and one, named and deleted ones included', async () => {
    const mine = await newOwner(server)
    const names = async (body: unknown): Promise<string> => (await mine.create(body)).node.name
    expect(await names({})).toBe('Node 1')
    for (const [index, [, name]] of blank.entries()) expect(await names({ name })).toBe(`Node ${index + 2}`)
    expect((await mine.want<Created>(202, 'POST', '/nodes')).node.name).toBe('Node 6')
    expect(await names({ name: 'named' })).toBe('named')
    for (const { id } of await mine.list()) expect((await mine.delete(id)).status).toBe(204)
    expect(await mine.list()).toEqual([])
    expect(await names({})).toBe('Node 8')
    await mine.delete((await mine.list())[0]?.id ?? '')
  })

  test('C15 C46: 20 creations at once make exactly as many nodes as the account may have, each with a number of its own', async () => {
    const mine = await newOwner(server)
    const answers = await Promise.all(times(20, () => mine.send('POST', '/nodes')))
    expect(statuses(answers)).toEqual([...times(MAX_NODES, () => 202), ...times(20 - MAX_NODES, () => 409)])
    for (const { json } of answers.filter(({ status }) => status === 409)) expect(json().error.code).toBe('limit_reached')
    const expected = times(MAX_NODES, (index) => `Node ${index + 1}`).sort()
    const made = answers.filter(({ status }) => status === 202).map(({ json }) => json() as Created)
    expect(made.map(({ node }) => node.name).sort()).toEqual(expected)
    expect((await mine.list()).map(({ name }) => name).sort()).toEqual(expected)
    expect(new Set(made.map(({ credentials }) => credentials.seed)).size).toBe(MAX_NODES)

    const [first] = await mine.list()
    expect((await mine.delete(first?.id ?? '')).status).toBe(204)
    expect((await mine.create()).node.name).toBe(`Node ${MAX_NODES + 1}`)
    expect(await mine.refusal('POST', '/nodes')).toEqual([409, 'limit_reached'])
    for (const { id } of await mine.list()) expect((await mine.delete(id)).status).toBe(204)
    expect((await newOwner(server).then((other) => other.send('POST', '/nodes'))).status).toBe(202)
  })
})

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

  test('C17 C28: both passwords are valid at endpointUrl, a wrong one is not, and the restricted one cannot pay', async () => {
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

  test('C17: no later answer, log line, argument, environment or table has any of them', async () => {
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

/** A secret as it is, in hex, and in base64 at each of the three places it can begin; a password also as the bytes it stands for. */
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

describe('C20 C21 C22: start, restart and stop', () => {
  test('C22: stop answers when the process is gone; C20: start when the software answers, as the same node; C21: restart is both', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    const [lightningId, first] = [(await infoOf(made)).nodeId, runningPidOf(server, made.node)]

    expect(await owner.act(id, 'stop')).toMatchObject({ status: 'stopped', failureMessage: null })
    expect([isRunning(first), pidOf(server, made.node)]).toEqual([false, undefined])
    const down = await callNode(made.node, made.credentials.password, 'GET', '/getinfo')
    expect([down.status, down.json().error.code]).toEqual([502, 'payment_service_unavailable'])

    expect((await owner.act(id, 'start')).status).toBe('ready')
    expect((await infoOf(made)).nodeId).toBe(lightningId)
    const second = runningPidOf(server, made.node)

    expect((await owner.act(id, 'restart')).status).toBe('ready')
    expect((await infoOf(made)).nodeId).toBe(lightningId)
    expect([isRunning(second), runningPidOf(server, made.node) !== second]).toEqual([false, true])
    await owner.delete(id)
  })

  type State = 'provisioning' | 'ready' | 'stopped'
  const refused: [State, string[]][] = [
    ['provisioning', ['start', 'restart', 'stop', 'update']],
    ['ready', ['start']],
    ['stopped', ['restart', 'stop']],
  ]
  test.each(refused)('C20 C21 C22 C25: from %s %j is 400 invalid_node_state, and changes nothing', async (state, actions) => {
    const hub = state === 'provisioning' ? freezeHub(server) : undefined
    try {
      const { node } = await owner.create()
      if (state !== 'provisioning') await owner.until(node.id, 'ready')
      if (state === 'stopped') await owner.act(node.id, 'stop')
      const before = await owner.get(node.id)
      expect(before.status).toBe(state)
      for (const action of actions)
        expect(await owner.refusal('POST', `/nodes/${node.id}/${action}`)).toEqual([400, 'invalid_node_state'])
      expect(await owner.get(node.id)).toEqual(before)
      expect((await owner.delete(node.id)).status).toBe(204)
    } finally {
      hub?.thaw()
    }
  })

  test('C6: actions take no body, an empty one and {}; anything else in it is refused by name', async () => {
    const path = `/nodes/${shared.node.id}/start`
    for (const options of [{}, { json: {} }])
      expect(await owner.refusal('POST', path, options)).toEqual([400, 'invalid_node_state'])
    const answer = await owner.send('POST', path, { json: { force: true } })
    expect([answer.status, answer.json().error]).toEqual([
      400,
      { code: 'bad_request', message: expect.stringContaining('"force"') },
    ])
  })
})

describe('C23 C24 C29: reading', () => {
  test('C23: one node is not wrapped, and the same as in the list', async () => {
    const node = await owner.get(shared.node.id)
    expect(Object.keys(node)).toEqual(FIELDS)
    expect(await owner.list()).toContainEqual(node)
  })

  test('C24: what runs, what is newest, and whether that is newer; a key that can only read may ask', async () => {
    const reader = new Owner(server, await server.newKey([], owner.accountId))
    const updates = await reader.want<Record<string, unknown>>(200, 'GET', `/nodes/${shared.node.id}/updates`)
    expect(Object.keys(updates)).toEqual(['currentVersion', 'latestVersion', 'updateAvailable', 'lastUpdateError'])
    const { version } = await infoOf(shared)
    // 0.8.0-sandbox and 0.8.0: what follows the dash does not count.
    expect(updates).toEqual({ currentVersion: version, latestVersion: '0.8.0', updateAvailable: false, lastUpdateError: null })
    const before = await owner.get(shared.node.id)
    for (const options of [{}, { json: { version: '0.8.0' } }, { json: { version: '9.9.9' } }])
      expect(await owner.refusal('POST', `/nodes/${shared.node.id}/update`, options)).toEqual([400, 'no_update_available'])
    expect(await owner.get(shared.node.id)).toEqual(before)
  })

  test('C29: nobody’s list is empty; otherwise the oldest is first, and deleted nodes are not in it', async () => {
    const mine = await newOwner(server)
    expect((await mine.send('GET', '/nodes')).text).toBe('{"nodes":[]}')
    const ids: string[] = []
    for (const name of ['c', 'a', 'b']) ids.push((await mine.create({ name })).node.id)
    expect((await mine.list()).map(({ id }) => id)).toEqual(ids)
    await mine.want(200, 'PATCH', `/nodes/${ids[0]}`, { json: { name: 'z' } })
    await mine.delete(ids[1] ?? '')
    expect((await mine.list()).map(({ name }) => name)).toEqual(['z', 'b'])
    for (const id of ids) await mine.delete(id)
  })
})

describe('C26: deleting', () => {
  const GONE = /^(absent|exited)$/
  test('C26: it is gone from every read and its endpoint, its process soon, its data not', async () => {
    const made = await owner.createReady()
    const pid = runningPidOf(server, made.node)
    const answer = await owner.delete(made.node.id)
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect((await callNode(made.node, made.credentials.password, 'GET', '/getinfo')).status).toBe(404)
    expect(await owner.refusal('GET', `/nodes/${made.node.id}`)).toEqual([404, 'node_not_found'])
    expect((await owner.list()).map(({ id }) => id)).not.toContain(made.node.id)
    expect(await owner.refusal('DELETE', `/nodes/${made.node.id}`)).toEqual([404, 'node_not_found'])
    await eventually(() => !isRunning(pid), 'its process to be gone', 60_000)
    expect(readFileSync(join(directoryOf(server, made.node), 'seed.dat'), 'utf8')).toBe(made.credentials.seed)
  })

  test('C26: one that never came up, and one that is stopped, can be deleted, too', async () => {
    const { node } = await owner.create()
    expect((await owner.delete(node.id)).status).toBe(204)
    await eventually(async () => GONE.test(await phaseOf(node)), 'nothing to run')
    const stopped = await owner.createReady()
    await owner.act(stopped.node.id, 'stop')
    expect((await owner.delete(stopped.node.id)).status).toBe(204)
  })

  const phaseOf = async (node: Node): Promise<string> =>
    (await server.operator('GET', '/nodes')).json().nodes.find(({ id }: Node) => id === node.id).phase

  test('C26: a node that holds funds is 409 node_has_funds and stays as it is, running or stopped', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    await fund(server, made, 1234)
    for (const query of ['', '?force=false']) {
      const answer = await owner.delete(id, query)
      expect([answer.status, answer.json().error.code]).toEqual([409, 'node_has_funds'])
    }
    expect([await owner.get(id), await balanceOf(made)]).toEqual([made.node, 1234])
    await owner.act(id, 'stop')
    expect(await owner.refusal('DELETE', `/nodes/${id}`)).toEqual([409, 'node_has_funds'])
    expect(await owner.refusal('DELETE', `/nodes/${id}?force=yes`)).toEqual([400, 'bad_request'])
    expect((await owner.delete(id, '?force=true')).status).toBe(204)
    expect(await owner.refusal('GET', `/nodes/${id}`)).toEqual([404, 'node_not_found'])
  })

  test('C26: funds that were seen are not forgotten while channels are offline, and are when it is seen empty', async () => {
    const made = await owner.createReady()
    const { node, credentials } = made
    // Earned, so that nobody but the node knows of it.
    const income = { json: { invoice: await invoiceOf(made, '&amountSat=1000') } }
    expect((await server.operator('POST', '/sandbox/pay', income)).status).toBe(200)
    expect(await owner.refusal('DELETE', `/nodes/${node.id}`)).toEqual([409, 'node_has_funds'])
    await fault(server, made, 'peer_down')
    expect(await balanceOf(made)).toBe(0)
    expect(await owner.refusal('DELETE', `/nodes/${node.id}`)).toEqual([409, 'node_has_funds'])
    await fault(server, made, 'none')

    const invoice = await invoiceOf(shared)
    const sent = await callNode(node, credentials.password, 'POST', '/payinvoice', `invoice=${invoice}&sendAll=`)
    expect([sent.status, sent.json()]).toEqual([200, expect.objectContaining({ paymentPreimage: expect.any(String) })])
    expect((await owner.delete(node.id)).status).toBe(204)
  })

  test('C26: a channel opening that was refused hides no funds, and is none', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    await control(server, made, 'channels', { others: ['Aborted'] })
    // Earned, so that nobody but the node knows of it.
    const income = { json: { invoice: await invoiceOf(made, '&amountSat=176500') } }
    expect((await server.operator('POST', '/sandbox/pay', income)).status).toBe(200)
    expect(await owner.refusal('DELETE', `/nodes/${id}`)).toEqual([409, 'node_has_funds'])
    expect(await balanceOf(made)).toBe(176_500)

    const empty = await owner.createReady()
    await control(server, empty, 'channels', { others: ['Hibernating'] })
    expect(await owner.refusal('DELETE', `/nodes/${empty.node.id}`)).toEqual([409, 'node_has_funds'])
    await control(server, empty, 'channels', { others: ['Aborted'] })
    expect((await owner.delete(empty.node.id)).status).toBe(204)
  })

  test('C26: a gift from the operator counts at once, also when the peer goes away with it', async () => {
    const made = await owner.createReady()
    await fund(server, made, 1)
    await fault(server, made, 'peer_down')
    expect(await owner.refusal('DELETE', `/nodes/${made.node.id}`)).toEqual([409, 'node_has_funds'])
    expect((await owner.delete(made.node.id, '?force=true')).status).toBe(204)
  })

  test('C26: the operator brings it back within the retention period: the same node, with the same money', async () => {
    const made = await owner.createReady({ name: 'lazarus' })
    const { id } = made.node
    await fund(server, made, 4321)
    const { nodeId } = await infoOf(made)
    const undelete = (): Promise<Answer> => server.operator('POST', `/nodes/${id}/undelete`)
    // Frozen it cannot stop, so its deletion goes on until it is thawed.
    const pid = runningPidOf(server, made.node)
    process.kill(pid, 'SIGSTOP')
    expect((await owner.delete(id, '?force=true')).status).toBe(204)
    const early = await undelete()
    expect([early.status, early.json().error.code, early.headers['retry-after']]).toEqual([409, 'operation_in_progress', '1'])
    process.kill(pid, 'SIGCONT')
    const back = await eventually(async () => {
      const answer = await undelete()
      return answer.status === 200 ? answer : undefined
    }, 'the deletion to have ended')
    expect(back.json()).toMatchObject({ id, name: 'lazarus', status: 'stopped' })
    expect((await undelete()).status).toBe(404)
    expect((await owner.act(id, 'start')).status).toBe('ready')
    expect([(await infoOf(made)).nodeId, await balanceOf(made)]).toEqual([nodeId, 4321])
    expect((await callNode(made.node, made.credentials.restrictedPassword, 'GET', '/getinfo')).status).toBe(200)

    expect((await owner.delete(id, '?force=true')).status).toBe(204)
    const sql = server.sql()
    await eventually(async () => GONE.test(await phaseOf(made.node)), 'its process to be gone')
    await sql`UPDATE nodes SET deleted_at = now() - interval '30 days 1 minute' WHERE id = ${id}`
    expect([(await undelete()).status, (await undelete()).json().error.code]).toEqual([404, 'node_not_found'])
  })

  test('C26 C2: an unknown node cannot be brought back, nor one that is there', async () => {
    for (const id of [newId('node'), shared.node.id])
      expect((await server.operator('POST', `/nodes/${id}/undelete`)).status).toBe(404)
  })
})

describe('C27: one operation at a time', () => {
  test('C27: of 20 at once one wins and the others are 409; reads and renaming neither wait nor fail, and the status stays', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    const pid = runningPidOf(server, made.node)
    // Frozen it can neither stop nor answer: whatever wins cannot end before the others were told.
    process.kill(pid, 'SIGSTOP')
    const kinds = ['restart', 'stop'] as const
    const running = times(20, async (index) => {
      const kind = kinds[index % 2] as (typeof kinds)[number]
      return { kind, answer: await owner.send('POST', `/nodes/${id}/${kind}`) }
    })
    let answered = 0
    for (const one of running) void one.then(() => answered++)
    await eventually(() => answered === 19, 'all but one to be told')

    expect(await owner.refusal('DELETE', `/nodes/${id}?force=true`)).toEqual([409, 'operation_in_progress'])
    expect(await owner.refusal('POST', `/nodes/${id}/start`)).toEqual([400, 'invalid_node_state'])
    const began = performance.now()
    const renamed = await owner.want<Node>(200, 'PATCH', `/nodes/${id}`, { json: { name: 'meanwhile' } })
    expect([renamed.name, renamed.status]).toEqual(['meanwhile', 'ready'])
    expect(await owner.get(id)).toEqual(renamed)
    expect(await owner.list()).toContainEqual(renamed)
    await owner.want(200, 'GET', `/nodes/${id}/updates`)
    expect(performance.now() - began).toBeLessThan(2_000)
    expect(answered).toBe(19)

    process.kill(pid, 'SIGCONT')
    const results = await Promise.all(running)
    const [winner, ...more] = results.filter(({ answer }) => answer.status === 200)
    expect(more).toEqual([])
    for (const { answer } of results.filter((one) => one !== winner)) {
      expect([answer.status, answer.json().error.code]).toEqual([409, 'operation_in_progress'])
      expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    }
    const expected = winner?.kind === 'stop' ? 'stopped' : 'ready'
    expect(winner?.answer.json()).toMatchObject({ status: expected, name: 'meanwhile' })
    expect(await owner.get(id)).toEqual(winner?.answer.json())
    expect(pidOf(server, made.node) !== undefined).toBe(expected === 'ready')
    await owner.delete(id)
  })

  test('C27: in a storm of operations every answer is one of the allowed, and the end is what the last winner said', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    const path = `/nodes/${id}`
    const won: { at: number; node: Node }[] = []
    const worker = async (index: number): Promise<void> => {
      for (let round = 0; round < 4; round++) {
        const action = ['stop', 'start', 'restart'][(index + round) % 3]
        const answer = await owner.send('POST', `${path}/${action}`)
        if (answer.status === 200) won.push({ at: performance.now(), node: answer.json() })
        else expect([400, 409]).toContain(answer.status)
        if (answer.status !== 200) expect(['invalid_node_state', 'operation_in_progress']).toContain(answer.json().error.code)
        expect((await owner.want<Node>(200, 'PATCH', path, { json: { name: `n${index}` } })).name).toBe(`n${index}`)
      }
    }
    await Promise.all(times(6, worker))
    const last = won.sort((a, b) => a.at - b.at).at(-1)
    expect(won.length).toBeGreaterThan(0)
    const { status } = await owner.get(id)
    expect(status).toBe(last?.node.status)
    expect(pidOf(server, made.node) !== undefined).toBe(status === 'ready')
    await owner.delete(id)
  })
})

describe('C30: what creation was told', () => {
  test.each([
    [undefined, '2m'],
    ['2m', '2m'],
    ['5m', '5m'],
    ['10m', '10m'],
  ])('C30: autoLiquidity %s is %s in the node’s configuration', async (asked, written) => {
    const { node } = await owner.createReady(asked === undefined ? {} : { autoLiquidity: asked })
    const conf = readFileSync(join(directoryOf(server, node), 'phoenix.conf'), 'utf8')
    expect(conf.split('\n').filter((line) => line.startsWith('auto-liquidity'))).toEqual([`auto-liquidity=${written}`])
    await owner.delete(node.id)
  })

  test.each([{ autoLiquidity: '3m' }, { autoLiquidity: 2 }, { accessMode: 'none' }, { accessMode: null }, { color: 'red' }])(
    'C5: %j is refused by the name of its field',
    async (body) => {
      const answer = await owner.send('POST', '/nodes', { json: body })
      expect([answer.status, answer.json().error.code]).toEqual([400, 'bad_request'])
      expect(answer.json().error.message).toContain(`"${Object.keys(body)[0]}"`)
    },
  )

  test.each([
    [undefined, 'restrictedPassword'],
    ['limited', 'restrictedPassword'],
    ['full', 'password'],
  ] as const)('C30: accessMode %s: what the dashboard can open is the %s and nothing else', async (accessMode, which) => {
    const { node, credentials } = await owner.create(accessMode === undefined ? {} : { accessMode })
    const [row] = await server.sql()`SELECT dashboard_access FROM node_secrets WHERE node_id = ${node.id}`
    const key = derivedKey(masterKeyOf(Buffer.from(server.masterKey, 'base64')), 'dashboard access')
    const context = `${owner.accountId} ${node.id} dashboard access`
    expect(open(key, context, Buffer.from(row?.dashboard_access)).toString()).toBe(credentials[which])
    await owner.delete(node.id)
  })
})

describe('C31 C32: credit', () => {
  const insufficient = [402, 'insufficient_credit']

  test.each([
    { creditSat: PRICE_SAT * 2, nodes: 2 },
    { creditSat: PRICE_SAT * 2 - 1, nodes: 1 },
    { creditSat: PRICE_SAT - 1, nodes: 0 },
    { creditSat: 0, nodes: 0 },
  ])('C32: $creditSat sat carry $nodes nodes, also when all are asked for at once', async ({ creditSat, nodes }) => {
    const poor = await newOwner(server, { creditSat })
    const answers = await Promise.all(times(4, () => poor.send('POST', '/nodes')))
    expect(statuses(answers)).toEqual([...times(nodes, () => 202), ...times(4 - nodes, () => 402)])
    for (const { json } of answers.filter(({ status }) => status === 402)) expect(json().error.code).toBe('insufficient_credit')
    expect(await poor.list()).toHaveLength(nodes)
    for (const { id } of await poor.list()) await poor.delete(id)
  })

  test('C31 C32: one millisatoshi too little is too little, and nothing is created: no node, no number, no log, no kept answer', async () => {
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
    // And a little for the minutes that the test takes.
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
    // What runs already needs no more credit to run again.
    expect((await poor.act(first.node.id, 'restart')).status).toBe('ready')
    await poor.delete(first.node.id)
  })

  test('C32: two stopped nodes cannot be started at once on the credit of one', async () => {
    const poor = await newOwner(server, { creditSat: PRICE_SAT * 2 + 5 })
    const nodes = [await poor.createReady(), await poor.createReady()]
    for (const { node } of nodes) await poor.act(node.id, 'stop')
    await server.operator('POST', `/accounts/${poor.accountId}/credit`, { json: { amountSat: -PRICE_SAT, reason: 'test' } })
    const answers = await Promise.all(nodes.map(({ node }) => poor.send('POST', `/nodes/${node.id}/start`)))
    expect(statuses(answers)).toEqual([200, 402])
    for (const { node } of nodes) await poor.delete(node.id)
  })

  test('C4: a full account without credit hears of the limit first, a wrong body of the body', async () => {
    const poor = await newOwner(server, { creditSat: 0 })
    expect(await poor.refusal('POST', '/nodes', { json: { name: 5 } })).toEqual([400, 'bad_request'])
    expect(await poor.refusal('POST', '/nodes')).toEqual(insufficient)
    // As if it had been there before the price was raised.
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

  test('C41: the same request gets the same answer to the byte, credentials included, and makes nothing', async () => {
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

  test('C41: the same key with another body is 409 idempotency_conflict, before and after', async () => {
    const mine = await newOwner(server)
    const { node } = await mine.create({ name: 'one' }, keyed('k').headers)
    for (const json of [{ name: 'two' }, {}, { name: 'one', accessMode: 'full' }])
      expect(await mine.refusal('POST', '/nodes', { ...keyed('k'), json })).toEqual([409, 'idempotency_conflict'])
    expect((await mine.create({ name: 'one' }, keyed('k').headers)).node.id).toBe(node.id)
    expect(await mine.list()).toHaveLength(1)
    await mine.delete(node.id)
  })

  test('C41: after an error the key is free again, for another body, too', async () => {
    const mine = await newOwner(server, { creditSat: 0 })
    expect(await mine.refusal('POST', '/nodes', { ...keyed('k'), json: { name: 5 } })).toEqual([400, 'bad_request'])
    expect(await mine.refusal('POST', '/nodes', { ...keyed('k'), json: { name: 'a' } })).toEqual([402, 'insufficient_credit'])
    await server.operator('POST', `/accounts/${mine.accountId}/credit`, { json: { amountSat: PRICE_SAT, reason: 'test' } })
    const { node } = await mine.create({ name: 'b' }, keyed('k').headers)
    expect(node.name).toBe('b')
    await mine.delete(node.id)
  })

  test('C41: 20 requests at once with one key make one node; who comes too early is told to come again', async () => {
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

  test('C41: another API key with the same idempotency key makes another node, also of the same account', async () => {
    const mine = await newOwner(server)
    const colleague = await newOwner(server, { accountId: mine.accountId })
    const stranger = await newOwner(server)
    const ids = [mine, colleague, stranger].map(async (one) => (await one.create({}, keyed('k').headers)).node.id)
    expect(new Set(await Promise.all(ids)).size).toBe(3)
    expect([(await mine.list()).length, (await stranger.list()).length]).toEqual([2, 1])
    for (const one of [mine, stranger]) for (const { id } of await one.list()) await one.delete(id)
  })

  test('C41: it outlives the node, and is forgotten after 24 hours', async () => {
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

  test('C41: one whose process is gone is taken over when its time is up', async () => {
    const mine = await newOwner(server)
    const { node } = await mine.create({}, keyed('k').headers)
    await mine.delete(node.id)
    const sql = server.sql()
    // As a process leaves it that dies between claiming the key and committing its answer.
    const running = (until: string) =>
      sql`UPDATE idempotency_keys SET answer = NULL, status = NULL, running_until = now() + ${until}::interval WHERE caller_id = ${mine.key.id}`
    const [row] = await sql`
      SELECT extract(epoch FROM running_until - created_at)::float AS seconds FROM idempotency_keys WHERE caller_id = ${mine.key.id}`
    expect(row?.seconds).toBeLessThanOrEqual(30)
    await running('30 seconds')
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

  test('C41: every printable character may stand in it, 255 of them', async () => {
    const mine = await newOwner(server)
    const printable = times(95, (index) => String.fromCharCode(32 + index))
      .join('')
      .trim()
    const key = `${printable}${'~'.repeat(255 - printable.length)}`
    const { node } = await mine.create({}, keyed(key).headers)
    expect((await mine.create({}, keyed(key).headers)).node.id).toBe(node.id)
    await mine.delete(node.id)
  })

  test('C41: it is ignored where nothing is created', async () => {
    const { id } = shared.node
    for (const name of ['one', 'two'])
      expect((await owner.want<Node>(200, 'PATCH', `/nodes/${id}`, { ...keyed('k'), json: { name } })).name).toBe(name)
  })

  test('C41: the database and the master key together do not open the kept answer; the API key and the idempotency key do', async () => {
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
    // So that the above proves something: this is how it is sealed.
    expect(JSON.parse(open(under(`${mine.key.key}sealed`), context, answer).toString())).toMatchObject(first.json())
    await mine.delete(node.id)
  })
})

describe('C42: 180 node operations per minute and address', () => {
  test('C42: the 181st is 429 with this body and four headers, whatever the 180 were; nothing else is limited by it', async () => {
    const mine = await newOwner(server)
    const here = { headers: { 'x-forwarded-for': '10.200.0.1' } }
    const kinds: (() => Promise<Answer>)[] = [
      () => mine.send('GET', '/nodes', here),
      () => mine.send('GET', `/nodes/${newId('node')}`, here),
      () => mine.send('POST', '/nodes', { ...here, json: { name: 5 } }),
      () => mine.send('DELETE', `/nodes/${newId('node')}`, here),
    ]
    const answers = await Promise.all(times(180, (index) => (kinds[index % kinds.length] as () => Promise<Answer>)()))
    expect(new Set(statuses(answers))).toEqual(new Set([200, 400, 404]))

    const limited = await mine.send('GET', '/nodes', here)
    expect([limited.status, limited.text]).toEqual([429, '{"error":{"code":"rate_limited","message":"rate limit exceeded"}}'])
    expect([limited.headers['x-ratelimit-limit'], limited.headers['x-ratelimit-remaining']]).toEqual(['180', '0'])
    for (const name of ['retry-after', 'x-ratelimit-reset']) {
      expect(limited.headers[name]).toMatch(/^\d+$/)
      expect(Number(limited.headers[name])).toBeGreaterThanOrEqual(1)
      expect(Number(limited.headers[name])).toBeLessThanOrEqual(60)
    }
    expect((await owner.send('GET', '/nodes', here)).status).toBe(429)
    expect((await mine.send('POST', '/nodes', here)).status).toBe(429)
    expect((await mine.send('GET', '/api-key', here)).status).toBe(200)
    expect((await callNode(shared.node, shared.credentials.password, 'GET', '/getinfo')).status).toBe(200)
    expect((await mine.send('GET', '/nodes')).status).toBe(200)
  })

  test('C36: /api-key counts for nothing', async () => {
    const here = { headers: { 'x-forwarded-for': '10.200.0.2' } }
    const answers = await Promise.all(times(200, () => owner.send('GET', '/api-key', here)))
    expect(new Set(statuses(answers))).toEqual(new Set([200]))
    expect((await owner.send('GET', '/nodes', here)).status).toBe(200)
  })

  test('C4: the limit comes before the key', async () => {
    const here = { headers: { 'x-forwarded-for': '10.200.0.3' } }
    await Promise.all(times(180, () => owner.send('GET', '/nodes', here)))
    expect((await server.send('GET', '/v1/nodes', here)).status).toBe(429)
  })
})

describe('C9: other people’s nodes', () => {
  test('C9: on every route they are answered like nodes that do not exist, and nothing happens to them', async () => {
    const stranger = await newOwner(server)
    const routes = publicOperations.filter(({ path }) => path.startsWith('/v1/') && path.includes('{nodeId}'))
    expect(routes.length).toBeGreaterThanOrEqual(8)
    const deleted = await stranger.create()
    await stranger.delete(deleted.node.id)
    const before = await owner.get(shared.node.id)
    const pid = runningPidOf(server, shared.node)

    for (const { path, method, body } of routes) {
      const json = Object.fromEntries((body?.required ?? []).map((name) => [name, 'x']))
      const ask = async (id: string): Promise<unknown[]> => {
        const options = method === 'GET' ? {} : { json }
        const answer = await stranger.send(method, path.replace('/v1', '').replace('{nodeId}', id), options)
        const { 'x-request-id': _id, date: _date, ...headers } = answer.headers
        return [answer.status, answer.text, headers]
      }
      const unknown = await ask(newId('node'))
      expect([method, path, ...unknown.slice(0, 2)]).toEqual([
        method,
        path,
        404,
        '{"error":{"code":"node_not_found","message":"There is no such node."}}',
      ])
      for (const id of [shared.node.id, deleted.node.id, shared.node.id.toUpperCase(), 'x', "'--", '%00', '%F0%9F%91%A9'])
        expect([method, path, id, await ask(id)]).toEqual([method, path, id, unknown])
    }
    expect([await owner.get(shared.node.id), runningPidOf(server, shared.node)]).toEqual([before, pid])
    expect(await stranger.list()).toEqual([])
  })
})

describe('another price, another limit, another version', () => {
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

  test('C32: at price 0 nobody is ever told to pay', async () => {
    const poor = await newOwner(other, { creditSat: 0 })
    const { node } = await poor.createReady()
    await poor.act(node.id, 'stop')
    expect((await poor.act(node.id, 'start')).status).toBe('ready')
    await other.sql()`INSERT INTO credit_entries (account_id, amount_msat, kind, reason) VALUES (${poor.accountId}, -5, 'test', 'test')`
    const second = await poor.create()
    for (const one of [node, second.node]) expect((await poor.delete(one.id)).status).toBe(204)
  })

  test('C46: a host takes as many nodes as it may hold, also when many accounts ask at once', async () => {
    const owners = await Promise.all(times(10, () => newOwner(other)))
    const answers = await Promise.all(owners.map((one) => one.send('POST', '/nodes')))
    expect(statuses(answers)).toEqual([...times(HOST_MAX, () => 202), ...times(10 - HOST_MAX, () => 409)])
    for (const { json } of answers.filter(({ status }) => status === 409)) expect(json().error.code).toBe('limit_reached')
    for (const one of owners) for (const { id } of await one.list()) await one.delete(id)
  })

  test('security 13: strangers who sign up cannot take the last places of a host; who is known or has topped up gets them', async () => {
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
    // Credit that somebody stands for makes a stranger known; the first credit, which everybody gets, does not.
    const [payer] = strangers
    await other.operator('POST', `/accounts/${payer?.accountId}/credit`, { json: { amountSat: 1, reason: 'paid' } })
    expect((await create(payer as Visitor)).status).toBe(202)
    for (const one of strangers)
      for (const { id } of (await one.want(200, 'GET', '/nodes')).nodes) await one.want(204, 'DELETE', `/nodes/${id}`)
  })

  test('C47 C24: everything that was done to a node is in the account’s log: what, to which, by whom', async () => {
    const mine = await newOwner(other)
    const { node } = await mine.createReady()
    const path = `/nodes/${node.id}`
    await mine.want(200, 'PATCH', path, { json: { name: 'logged' } })
    for (const action of ['stop', 'start', 'restart'] as const) await mine.act(node.id, action)
    // What is refused has not happened.
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
      ['created', 'renamed', 'stop', 'start', 'restart', 'update', 'delete'].map((what) => `node.${what}`),
    )
    for (const { actor, target } of log) expect([actor, target]).toEqual([mine.key.id, node.id])

    await eventually(async () => (await other.operator('POST', `/nodes/${node.id}/undelete`)).status === 200, 'undeletion')
    expect((await activityOf(other, mine))[0]).toMatchObject({ actor: 'operator', action: 'node.undeleted', target: node.id })
    expect(existsSync(directoryOf(other, node))).toBe(true)
  })
})
