import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { publicOperations } from '../../../contract/src/operations.ts'
import { newId } from '../../src/platform/ids.ts'
import { derivedKey, masterKeyOf, open } from '../../src/platform/secrets.ts'
import { type Created, directoryOf, infoOf, type Node, newOwner, Owner, runningPidOf } from '../support/nodes.ts'
import { type Answer, type Server, startServer } from '../support/server.ts'

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

describe('C14: the Node object', () => {
  test('C14: always the same nine fields in this order, in every response that contains a node', async () => {
    const beforeSeconds = Math.floor(Date.now() / 1000)
    const made = await owner.create()
    expect(made.node.createdAt).toBeGreaterThanOrEqual(beforeSeconds)
    expect(made.node.createdAt).toBeLessThanOrEqual(Date.now() / 1000)
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
    await owner.delete(id)
  })

  test('C14: updatedAt changes only when another field does', async () => {
    const { node } = await owner.createReady({ name: 'clock' })
    const sql = server.sql()
    /** Whether the action sets updatedAt to the current time, if the last change was an hour ago. */
    const moves = async (act: () => Promise<unknown>): Promise<boolean> => {
      const [row] = await sql`
        UPDATE nodes SET updated_at = now() - interval '1 hour' WHERE id = ${node.id}
        RETURNING floor(extract(epoch FROM updated_at))::bigint AS "setTo"`
      const beforeSeconds = Math.floor(Date.now() / 1000)
      await act()
      const { updatedAt } = await owner.get(node.id)
      if (updatedAt === row?.setTo) return false
      expect(updatedAt).toBeGreaterThanOrEqual(beforeSeconds)
      expect(updatedAt).toBeLessThanOrEqual(Date.now() / 1000)
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
  test('C15: each of many renames at once is answered with its own name', async () => {
    const { node } = await owner.createReady()
    const rename = (name: string) => owner.want<Node>(200, 'PATCH', `/nodes/${node.id}`, { json: { name } })
    const names = Array.from({ length: 40 }, (_, place) => `n${place}`)
    expect((await Promise.all(names.map(rename))).map(({ name }) => name)).toEqual(names)
    expect(names).toContain((await owner.get(node.id)).name)
    await owner.delete(node.id)
  })

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
    ['only invisible characters (security 29)', '\u200d\u200c'],
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

  test.each(good)('C15: PATCH accepts %s', async (_title, name, kept) => {
    const node = await owner.want<Node>(200, 'PATCH', `/nodes/${shared.node.id}`, { json: { name } })
    expect([node.name, (await owner.get(shared.node.id)).name]).toEqual([kept, kept])
  })

  test('C15: creation accepts and trims these names, too', async () => {
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

  test('C15: PATCH requires a name, and accepts no other field', async () => {
    const path = `/nodes/${shared.node.id}`
    expect(await owner.refusal('PATCH', path, { json: {} })).toEqual([400, 'bad_request'])
    expect(await owner.refusal('PATCH', path)).toEqual([400, 'bad_request'])
    expect(await owner.refusal('PATCH', path, { json: { name: 'a', status: 'ready' } })).toEqual([400, 'bad_request'])
  })

  test('C15: an omitted or blank name becomes Node n, counting all nodes the account ever created', async () => {
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

  test('C15 C46: 20 concurrent creations create exactly as many nodes as the account may have, each with its own number', async () => {
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

describe('C23 C24 C29: reading', () => {
  test('C23: a single node is not wrapped, and equals its entry in the list', async () => {
    const node = await owner.get(shared.node.id)
    expect(Object.keys(node)).toEqual(FIELDS)
    expect(await owner.list()).toContainEqual(node)
  })

  test('C24: the current version, the latest, and whether it is newer; a read-only key is enough', async () => {
    const reader = new Owner(server, await server.newKey([], owner.accountId))
    const updates = await reader.want<Record<string, unknown>>(200, 'GET', `/nodes/${shared.node.id}/updates`)
    expect(Object.keys(updates)).toEqual(['currentVersion', 'latestVersion', 'updateAvailable', 'lastUpdateError'])
    const { version } = await infoOf(shared)
    // 0.8.0-sandbox and 0.8.0: the part after the dash does not count.
    expect(updates).toEqual({ currentVersion: version, latestVersion: '0.8.0', updateAvailable: false, lastUpdateError: null })
    const before = await owner.get(shared.node.id)
    const refusals: [object, string][] = [
      [{}, 'There is no newer version available for this node.'],
      [{ version: '0.8.0' }, 'The requested version is not newer than the node’s version. The latest version is 0.8.0.'],
      [{ version: '9.9.9' }, 'The requested version is not in the catalog. The latest version is 0.8.0.'],
    ]
    for (const [json, message] of refusals) {
      const refused = await owner.send('POST', `/nodes/${shared.node.id}/update`, { json })
      expect(refused.status).toBe(400)
      expect(refused.json().error).toMatchObject({ code: 'no_update_available', message })
    }
    expect(await owner.get(shared.node.id)).toEqual(before)
  })

  test('C29: a new account’s list is empty; otherwise oldest first, without deleted nodes', async () => {
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

describe('C30: options of a creation', () => {
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
    'C5: %j is refused, naming its field',
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
  ] as const)('C30: accessMode %s: the dashboard can open only the %s', async (accessMode, which) => {
    const { node, credentials } = await owner.create(accessMode === undefined ? {} : { accessMode })
    const [row] = await server.sql()`SELECT dashboard_access FROM node_secrets WHERE node_id = ${node.id}`
    const key = derivedKey(masterKeyOf(Buffer.from(server.masterKey, 'base64')), 'dashboard access')
    const context = `${owner.accountId} ${node.id} dashboard access`
    expect(open(key, context, Buffer.from(row?.dashboard_access)).toString()).toBe(credentials[which])
    await owner.delete(node.id)
  })
})

describe('C9: other people’s nodes', () => {
  test('C9: every route answers as if they did not exist, and nothing happens to them', async () => {
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
