import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import {
  balanceOf,
  type Created,
  callNode,
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
  withhold,
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

describe('C20 C21 C22: start, restart and stop', () => {
  test('C22: stop returns when the process is gone; C20: start when the node responds, as the same node; C21: restart does both', async () => {
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

  test('C6: actions accept no body, an empty one and {}; any field is refused by name', async () => {
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

describe('C26: deleting', () => {
  const GONE = /^(absent|exited)$/
  test('C26: a deleted node disappears from every response and from its endpoint, its process exits soon, and its data is kept', async () => {
    const made = await owner.createReady()
    const pid = runningPidOf(server, made.node)
    const answer = await owner.delete(made.node.id)
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect((await callNode(made.node, made.credentials.password, 'GET', '/getinfo')).status).toBe(404)
    expect(await owner.refusal('GET', `/nodes/${made.node.id}`)).toEqual([404, 'node_not_found'])
    expect((await owner.list()).map(({ id }) => id)).not.toContain(made.node.id)
    expect(await owner.refusal('DELETE', `/nodes/${made.node.id}`)).toEqual([404, 'node_not_found'])
    await eventually(() => !isRunning(pid), 'its process to be gone')
    expect(readFileSync(join(directoryOf(server, made.node), 'seed.dat'), 'utf8')).toBe(made.credentials.seed)
  })

  test('C26: a node that never started, and a stopped one, can be deleted too', async () => {
    const { node } = await owner.create()
    expect((await owner.delete(node.id)).status).toBe(204)
    await eventually(async () => GONE.test(await phaseOf(node)), 'nothing to run')
    const stopped = await owner.createReady()
    await owner.act(stopped.node.id, 'stop')
    expect((await owner.delete(stopped.node.id)).status).toBe(204)
  })

  const phaseOf = async (node: Node): Promise<string> =>
    (await server.operator('GET', '/nodes')).json().nodes.find(({ id }: Node) => id === node.id).phase

  /** Retries, because each deletion waits only briefly for the node's answer, and until then the last known funds count. */
  const deletedOnceSeenEmpty = (node: Node): Promise<boolean> =>
    eventually(async () => (await owner.delete(node.id)).status === 204, 'the node to be seen empty')

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

  test('C26: known funds are remembered while channels are offline, until the node is seen empty', async () => {
    const made = await owner.createReady()
    const { node, credentials } = made
    // Received as a payment, which the service can learn only from the node.
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
    await deletedOnceSeenEmpty(node)
  })

  test('C26: the node itself is asked about its funds, also by a process that runs no nodes', async () => {
    const env = { ...server.sharedStoreEnv, ROLE: 'api', NODE_CALLBACK_URL: server.url }
    const api = await startServer({ dataDir: server.dataDir, env })
    const made = await owner.createReady()
    const sql = server.sql()
    // While the test has the lease, no other process asks the node.
    const { giveBack } = await withhold(sql, made.node)
    const income = { json: { invoice: await invoiceOf(made, '&amountSat=1000') } }
    expect((await server.operator('POST', '/sandbox/pay', income)).status).toBe(200)
    await sql`UPDATE nodes SET has_funds = false, funded_at = NULL WHERE id = ${made.node.id}`
    const elsewhere = new Owner(api, owner.key)
    expect(await elsewhere.refusal('DELETE', `/nodes/${made.node.id}`)).toEqual([409, 'node_has_funds'])
    await api.stop()
    await giveBack()
    expect((await owner.delete(made.node.id, '?force=true')).status).toBe(204)
  })

  test('C26: a refused channel opening neither hides funds nor counts as funds', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    await control(server, made, 'channels', { others: ['Aborted'] })
    // Received as a payment, which the service can learn only from the node.
    const income = { json: { invoice: await invoiceOf(made, '&amountSat=176500') } }
    expect((await server.operator('POST', '/sandbox/pay', income)).status).toBe(200)
    expect(await owner.refusal('DELETE', `/nodes/${id}`)).toEqual([409, 'node_has_funds'])
    expect(await balanceOf(made)).toBe(176_500)

    const empty = await owner.createReady()
    await control(server, empty, 'channels', { others: ['Hibernating'] })
    expect(await owner.refusal('DELETE', `/nodes/${empty.node.id}`)).toEqual([409, 'node_has_funds'])
    await control(server, empty, 'channels', { others: ['Aborted'] })
    await deletedOnceSeenEmpty(empty.node)
  })

  test('C26: funds from the operator count immediately, even if the peer goes offline', async () => {
    const made = await owner.createReady()
    await fund(server, made, 1)
    await fault(server, made, 'peer_down')
    expect(await owner.refusal('DELETE', `/nodes/${made.node.id}`)).toEqual([409, 'node_has_funds'])
    expect((await owner.delete(made.node.id, '?force=true')).status).toBe(204)
  })

  test('C26: the operator can restore a deleted node within the retention period: the same node, with the same money', async () => {
    const made = await owner.createReady({ name: 'lazarus' })
    const { id } = made.node
    await fund(server, made, 4321)
    const { nodeId } = await infoOf(made)
    const undelete = (): Promise<Answer> => server.operator('POST', `/nodes/${id}/undelete`)
    // A frozen process cannot stop, so the deletion stays in progress until the process is resumed.
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

  test('C26 C2: neither an unknown node nor one that was not deleted can be restored', async () => {
    for (const id of [newId('node'), shared.node.id])
      expect((await server.operator('POST', `/nodes/${id}/undelete`)).status).toBe(404)
  })
})

describe('C27: one operation at a time', () => {
  test('C27: of 20 concurrent operations one wins and the others are 409; reads and renaming neither wait nor fail, and the status stays', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    const pid = runningPidOf(server, made.node)
    // A frozen process can neither stop nor respond, so the winning call cannot end before the others are refused.
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
    const renamed = await owner.want<Node>(200, 'PATCH', `/nodes/${id}`, { json: { name: 'meanwhile' } })
    expect([renamed.name, renamed.status]).toEqual(['meanwhile', 'ready'])
    expect(await owner.get(id)).toEqual(renamed)
    expect(await owner.list()).toContainEqual(renamed)
    await owner.want(200, 'GET', `/nodes/${id}/updates`)
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

  test('C27: a refusal names the operation that is running, and no other if that has just ended', async () => {
    const { id } = shared.node
    const sql = server.sql()
    const messageOf = async (): Promise<string> => {
      const answer = await owner.send('POST', `/nodes/${id}/stop`)
      expect([answer.status, answer.json().error.code]).toEqual([409, 'operation_in_progress'])
      return answer.json().error.message
    }
    // The stop is refused, but whoever looks for the reason finds none.
    await sql.unsafe(`
      CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE TRIGGER refused BEFORE UPDATE ON nodes FOR EACH ROW WHEN (OLD.operation IS NULL AND NEW.operation = 'stop')
        EXECUTE FUNCTION refused()`)
    expect(await messageOf()).toBe('The node has just changed, and nothing was done. Try again.')
    await sql`DROP FUNCTION refused CASCADE`

    const pid = runningPidOf(server, shared.node)
    process.kill(pid, 'SIGSTOP')
    const restart = owner.act(id, 'restart')
    await eventually(
      async () => (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND operation = 'restart'`).length > 0,
      'the restart',
    )
    expect(await messageOf()).toBe('Another operation (restart) is running on this node. Try again when it has finished.')
    process.kill(pid, 'SIGCONT')
    expect((await restart).status).toBe('ready')
  })

  test('C27: under many random operations every response is an allowed one, and the final state is that of the last winner', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    const path = `/nodes/${id}`
    let won = 0
    const worker = async (index: number): Promise<void> => {
      for (let round = 0; round < 4; round++) {
        const action = ['stop', 'start', 'restart'][(index + round) % 3]
        const answer = await owner.send('POST', `${path}/${action}`)
        if (answer.status === 200) won++
        else expect([400, 409]).toContain(answer.status)
        if (answer.status !== 200) expect(['invalid_node_state', 'operation_in_progress']).toContain(answer.json().error.code)
        expect((await owner.want<Node>(200, 'PATCH', path, { json: { name: `n${index}` } })).name).toBe(`n${index}`)
      }
    }
    await Promise.all(times(6, worker))
    // The account's log lists the operations in the order in which they began. Their answers may arrive in a different order.
    const { activity } = (await server.operator('GET', `/accounts/${owner.accountId}/activity`)).json()
    const winners: string[] = activity
      .filter(({ action, target }: Record<string, string>) => target === id && /^node\.(stop|start|restart)$/.test(action ?? ''))
      .map(({ action }: Record<string, string>) => action)
    expect(won).toBeGreaterThan(0)
    expect(winners).toHaveLength(won)
    const { status } = await owner.get(id)
    expect(status).toBe(winners[0] === 'node.stop' ? 'stopped' : 'ready')
    expect(pidOf(server, made.node) !== undefined).toBe(status === 'ready')
    await owner.delete(id)
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

  test('C36: /api-key does not count', async () => {
    const here = { headers: { 'x-forwarded-for': '10.200.0.2' } }
    const answers = await Promise.all(times(200, () => owner.send('GET', '/api-key', here)))
    expect(new Set(statuses(answers))).toEqual(new Set([200]))
    expect((await owner.send('GET', '/nodes', here)).status).toBe(200)
  })

  test('C4: the limit is checked before the key', async () => {
    const here = { headers: { 'x-forwarded-for': '10.200.0.3' } }
    await Promise.all(times(180, () => owner.send('GET', '/nodes', here)))
    expect((await server.send('GET', '/v1/nodes', here)).status).toBe(429)
  })
})
