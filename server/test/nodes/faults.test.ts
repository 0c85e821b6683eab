import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/db.ts'
import { lockingTransaction } from '../support/database.ts'
import { endOperation, looks, wantedFor } from '../support/deadlines.ts'
import {
  balanceOf,
  type Created,
  callNode,
  catalogue,
  directoryOf,
  fault,
  freezeHub,
  fund,
  infoOf,
  isRunning,
  type Node,
  newOwner,
  type Owner,
  pidOf,
  runningPidOf,
} from '../support/nodes.ts'
import { type Answer, eventually, PROCESS, processesIn, type Server, startServer } from '../support/server.ts'

/** So long that it passes only when a test moves the times in the database. */
const DEADLINE_SECONDS = 3_600
const WAITING = /has not reached its Lightning peer/

const env = {
  TRUST_PROXY: '1',
  NODE_PRICE_SAT_PER_DAY: '0',
  PROVISION_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
  OPERATION_TIMEOUT_SECONDS: String(DEADLINE_SECONDS),
}

let server: Server
let owner: Owner
let sql: Database

beforeAll(async () => {
  server = await startServer({ command: PROCESS, store: 'embedded', env })
  owner = await newOwner(server)
  sql = server.sql()
})

const getInfo = ({ node, credentials }: Created): Promise<Answer> => callNode(node, credentials.password, 'GET', '/getinfo')
const isUp = async (made: Created): Promise<boolean> => (await getInfo(made)).status === 200

const phaseOf = async (node: Node): Promise<string> =>
  (await server.operator('GET', '/nodes')).json().nodes.find(({ id }: Node) => id === node.id).phase

/** Waits for a new process that responds and that the service has recorded, because exits of unrecorded processes are not counted. */
const successor = (made: Created, pid: number): Promise<number> =>
  eventually(async () => {
    const next = pidOf(server, made.node)
    const isSeen = next !== undefined && next !== pid && (await isUp(made)) && (await phaseOf(made.node)) === 'running'
    return isSeen ? next : undefined
  }, 'another process')

/** Waits until the operation is recorded. */
const operationOf = (node: Node, kind: string): Promise<unknown> =>
  eventually(async () => (await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND operation = ${kind}`).length === 1, kind)

const waitsForPeer = () => sql`phase = 'waiting_for_peer'`
/** Makes the deadline for becoming ready pass while the node still waits for its peer. */
const overdue = ({ id }: Node): Promise<void> => wantedFor(sql, id, DEADLINE_SECONDS, waitsForPeer())

/** Locks the node's row during the work, because the reconciler skips locked rows. */
const unattended = (node: Node, work: () => Promise<void>): Promise<void> =>
  lockingTransaction(sql, async (transaction) => {
    await transaction`SELECT 1 FROM nodes WHERE id = ${node.id} FOR UPDATE`
    await work()
  })

/** All running daemons of the node, including those that the service does not know. */
const daemonsOf = (node: Node): number[] => processesIn(server.dataDir).filter((pid) => environmentOf(pid).includes(node.id))
function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    // the process has exited
    return ''
  }
}

describe('C18: an unreachable Lightning peer', () => {
  let hub: { thaw: () => void } | undefined
  afterEach(() => {
    hub?.thaw()
    hub = undefined
  })

  test('C18: provisioning, failed with the reason at the deadline, and ready automatically when the peer responds; always one process', async () => {
    hub = freezeHub(server)
    const made = await owner.create()
    const pid = await eventually(() => pidOf(server, made.node), 'its process')
    await wantedFor(sql, made.node.id, DEADLINE_SECONDS / 2, waitsForPeer())
    await looks(sql, made.node.id, 2)
    expect((await owner.get(made.node.id)).status).toBe('provisioning')
    await overdue(made.node)
    const failed = await owner.until(made.node.id, 'failed')
    expect(failed.failureMessage).toMatch(WAITING)
    expect(runningPidOf(server, made.node)).toBe(pid)
    const away = await getInfo(made)
    expect([away.status, away.json().error.code]).toEqual([502, 'payment_service_unavailable'])

    hub.thaw()
    const ready = await owner.until(made.node.id, 'ready')
    expect([ready.failureMessage, runningPidOf(server, made.node), await isUp(made)]).toEqual([null, pid, true])
    await owner.delete(made.node.id)
  })

  test('C20: start waits for a failed node that waits for its peer, and does not restart it', async () => {
    hub = freezeHub(server)
    const made = await owner.create()
    await overdue(made.node)
    await owner.until(made.node.id, 'failed')
    const pid = runningPidOf(server, made.node)
    expect(await owner.refusal('POST', `/nodes/${made.node.id}/restart`)).toEqual([400, 'invalid_node_state'])

    const waiting = owner.send('POST', `/nodes/${made.node.id}/start`)
    await operationOf(made.node, 'start')
    const [row] = await sql<{ secondsLeft: number }[]>`
      SELECT extract(epoch FROM operation_deadline - now())::float AS "secondsLeft" FROM nodes WHERE id = ${made.node.id}`
    expect(row?.secondsLeft).toBeGreaterThan(DEADLINE_SECONDS / 2)
    expect(row?.secondsLeft).toBeLessThanOrEqual(DEADLINE_SECONDS)
    await endOperation(sql, made.node.id, waitsForPeer())
    const vain = await waiting
    expect([vain.status, vain.json().error]).toEqual([
      502,
      { code: 'payment_service_unavailable', message: expect.stringMatching(WAITING) },
    ])
    expect([(await owner.get(made.node.id)).status, runningPidOf(server, made.node)]).toEqual(['failed', pid])

    const start = owner.send('POST', `/nodes/${made.node.id}/start`)
    await operationOf(made.node, 'start')
    hub.thaw()
    const { status, json } = await start
    expect([status, json().status, json().failureMessage]).toEqual([200, 'ready', null])
    expect(runningPidOf(server, made.node)).toBe(pid)
    await owner.delete(made.node.id)
  })

  test('C20 C21: if a node does not come back in time, the call is 502 and the node failed; later it becomes ready automatically', async () => {
    const made = await owner.createReady()
    hub = freezeHub(server)
    const restart = owner.send('POST', `/nodes/${made.node.id}/restart`)
    await endOperation(sql, made.node.id, waitsForPeer())
    const answer = await restart
    expect([answer.status, answer.json().error.code]).toEqual([502, 'payment_service_unavailable'])
    expect((await owner.get(made.node.id)).status).toBe('failed')
    hub.thaw()
    expect((await owner.until(made.node.id, 'ready')).failureMessage).toBeNull()
    await owner.delete(made.node.id)
  })

  test('C22 C26: a failed node can be stopped, and deleted', async () => {
    hub = freezeHub(server)
    const [first, second] = [await owner.create(), await owner.create()]
    for (const { node } of [first, second]) {
      await overdue(node)
      await owner.until(node.id, 'failed')
    }
    const pids = [first, second].map(({ node }) => runningPidOf(server, node))
    expect(await owner.act(first.node.id, 'stop')).toMatchObject({ status: 'stopped', failureMessage: null })
    expect((await owner.delete(second.node.id)).status).toBe(204)
    await eventually(() => pids.every((pid) => !isRunning(pid)), 'both processes to be gone')
    hub.thaw()
    expect((await owner.act(first.node.id, 'start')).status).toBe('ready')
    await owner.delete(first.node.id)
  })

  test('a ready node that loses its peer loses nothing else', async () => {
    const made = await owner.createReady()
    const pid = runningPidOf(server, made.node)
    hub = freezeHub(server)
    expect([await isUp(made), (await owner.get(made.node.id)).status]).toEqual([true, 'ready'])
    hub.thaw()
    expect(runningPidOf(server, made.node)).toBe(pid)
    await owner.delete(made.node.id)
  })

  test('a killed hub is restarted automatically, with everyone’s money', async () => {
    const made = await owner.createReady()
    await fund(server, made, 777)
    const { hubPid } = server
    process.kill(hubPid, 'SIGKILL')
    // Polls with a command that can be repeated: repeating `fund` after a lost answer would send the money twice.
    await eventually(async () => {
      await fault(server, made, 'none')
      return server.hubPid !== hubPid
    }, 'the hub')
    await fund(server, made, 1)
    expect(await balanceOf(made)).toBe(778)
    await owner.delete(made.node.id, '?force=true')
  })
})

describe.concurrent('C19: processes that die or hang', () => {
  test('C19: a crash is repaired automatically; meanwhile the node is ready and its endpoint 502', async () => {
    const made = await owner.createReady()
    await fund(server, made, 99)
    const pid = runningPidOf(server, made.node)
    const before = await owner.get(made.node.id)
    await unattended(made.node, async () => {
      await fault(server, made, 'crash')
      await eventually(() => !isRunning(pid), 'the crash')
      const down = await getInfo(made)
      expect([down.status, down.json().error.code]).toEqual([502, 'payment_service_unavailable'])
      expect(await owner.get(made.node.id)).toEqual(before)
    })
    await successor(made, pid)
    expect([await owner.get(made.node.id), await balanceOf(made)]).toEqual([before, 99])
    expect(daemonsOf(made.node)).toHaveLength(1)
    await owner.delete(made.node.id, '?force=true')
  })

  test('C19: after five crashes it is failed with the reason; it is still retried, and becomes ready automatically', async () => {
    const made = await owner.createReady()
    let pid = runningPidOf(server, made.node)
    const waits: number[] = []
    for (let death = 1; death <= 5; death++) {
      expect(await owner.get(made.node.id)).toMatchObject({ status: 'ready', failureMessage: null })
      const diedAt = performance.now()
      process.kill(pid, 'SIGKILL')
      if (death === 5) {
        const failed = await owner.until(made.node.id, 'failed')
        expect(failed.failureMessage).toMatch(/5 times in ten minutes.*keeps restarting it/)
      }
      pid = await successor(made, pid)
      waits.push(performance.now() - diedAt)
    }
    // The minimum wait doubles each time.
    for (const [index, waitedMs] of waits.entries()) expect(waitedMs).toBeGreaterThanOrEqual(1_000 * 2 ** index)
    const ready = await owner.until(made.node.id, 'ready')
    expect([ready.failureMessage, await isUp(made)]).toEqual([null, true])
    await owner.delete(made.node.id)
  })

  test('C20: start does not wait for the next retry', async () => {
    const made = await owner.createReady()
    // Simulates nine exits, after which the next attempt is minutes away. The new epoch keeps a running step from overwriting this.
    await sql`
      UPDATE nodes SET lease_epoch = lease_epoch + 1, history = history || jsonb_build_object('exitsMs',
        (SELECT jsonb_agg(floor(extract(epoch FROM clock_timestamp()) * 1000) - n) FROM generate_series(1, 9) n))
      WHERE id = ${made.node.id}`
    process.kill(runningPidOf(server, made.node), 'SIGKILL')
    await owner.until(made.node.id, 'failed')
    expect((await owner.act(made.node.id, 'start')).status).toBe('ready')
    expect(await isUp(made)).toBe(true)
    await owner.delete(made.node.id)
  })

  test('a hung process is killed after five unanswered queries, and replaced', async () => {
    const made = await owner.createReady()
    const pid = runningPidOf(server, made.node)
    const began = performance.now()
    await fault(server, made, 'hang')
    // Makes the service check the node now instead of at the next scheduled time.
    await sql`UPDATE nodes SET next_at = now() WHERE id = ${made.node.id}`
    await eventually(() => !isRunning(pid), 'the end of the process that hangs')
    expect(performance.now() - began).toBeGreaterThan(20_000)
    await successor(made, pid)
    expect(await owner.get(made.node.id)).toMatchObject({ status: 'ready', failureMessage: null })
    await owner.delete(made.node.id)
  })
})

describe('wrong or missing data', () => {
  const OTHER_SEED = 'legal winner thank year wave sausage worth useful legal winner thank yellow'

  test('a node whose data has a foreign seed is never started: 502 and failed with that reason, and nothing is overwritten', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    const seedFile = join(directoryOf(server, made.node), 'seed.dat')
    await owner.act(id, 'stop')
    writeFileSync(seedFile, OTHER_SEED)
    const answer = await owner.send('POST', `/nodes/${id}/start`)
    expect([answer.status, answer.json().error]).toEqual([
      502,
      { code: 'payment_service_unavailable', message: expect.stringContaining('different seed') },
    ])
    expect(await owner.get(id)).toMatchObject({ status: 'failed', failureMessage: answer.json().error.message })
    expect([readFileSync(seedFile, 'utf8'), daemonsOf(made.node)]).toEqual([OTHER_SEED, []])

    // Stopped first, because the service might start a failed node automatically, and the start below would then be refused.
    await owner.act(id, 'stop')
    writeFileSync(seedFile, made.credentials.seed)
    expect(await owner.act(id, 'start')).toMatchObject({ status: 'ready', failureMessage: null })
    await owner.delete(id)
  })

  test('a node with a foreign seed can be stopped and deleted; once the seed is corrected, it starts automatically', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    const seedFile = join(directoryOf(server, made.node), 'seed.dat')
    await owner.act(id, 'stop')
    writeFileSync(seedFile, OTHER_SEED)
    expect(await owner.refusal('POST', `/nodes/${id}/start`)).toEqual([502, 'payment_service_unavailable'])
    expect((await owner.act(id, 'stop')).status).toBe('stopped')
    expect(await owner.refusal('POST', `/nodes/${id}/start`)).toEqual([502, 'payment_service_unavailable'])
    writeFileSync(seedFile, made.credentials.seed)
    await owner.until(id, 'ready')
    await owner.act(id, 'stop')
    writeFileSync(seedFile, OTHER_SEED)
    expect(await owner.refusal('POST', `/nodes/${id}/start`)).toEqual([502, 'payment_service_unavailable'])
    expect((await owner.delete(id)).status).toBe(204)
  })

  test('C18: a process that answers as another node is failed and stopped, not ready', async () => {
    const impostor = { version: '1.0.0', command: `PHOENIX_SEED='${OTHER_SEED}' exec "$NODE" "$DAEMON" "$@"` }
    const other = await startServer({ env: { ...env, NODE_VERSIONS: catalogue([impostor]) } })
    const stranger = await newOwner(other)
    const { node } = await stranger.create()
    const failed = await stranger.until(node.id, 'failed')
    expect(failed.failureMessage).toContain('identity of a different node')
    await eventually(() => pidOf(other, node) === undefined, 'the impostor to be stopped')
    expect((await stranger.get(node.id)).status).toBe('failed')
  })

  test('a missing directory is failed with the reason, never a new start; once restored, the node recovers', async () => {
    const made = await owner.createReady()
    const { id } = made.node
    await fund(server, made, 555)
    const { nodeId } = await infoOf(made)
    await owner.act(id, 'stop')
    const directory = directoryOf(server, made.node)
    renameSync(directory, `${directory}.elsewhere`)
    const answer = await owner.send('POST', `/nodes/${id}/start`)
    expect([answer.status, answer.json().error.message]).toEqual([502, expect.stringContaining('missing on this machine')])
    expect(await owner.get(id)).toMatchObject({
      status: 'failed',
      failureMessage: expect.stringContaining('missing on this machine'),
    })
    await server.kill('SIGKILL')
    const looked = looks(sql, id, 1)
    await server.start()
    // The next check is minutes away, so the service does not start the node during the following steps.
    await looked
    expect(await phaseOf(made.node)).toBe('data_lost')
    expect([existsSync(directory), daemonsOf(made.node)]).toEqual([false, []])

    renameSync(`${directory}.elsewhere`, directory)
    expect((await owner.act(id, 'start')).status).toBe('ready')
    expect([(await infoOf(made)).nodeId, await balanceOf(made)]).toEqual([nodeId, 555])
    await owner.delete(id, '?force=true')
  })

  test('a directory that disappears under a ready node: its exit is failed, not a new start', async () => {
    const made = await owner.createReady()
    const directory = directoryOf(server, made.node)
    const pid = runningPidOf(server, made.node)
    renameSync(directory, `${directory}.elsewhere`)
    process.kill(pid, 'SIGKILL')
    expect((await owner.until(made.node.id, 'failed')).failureMessage).toContain('missing on this machine')
    expect([existsSync(directory), daemonsOf(made.node)]).toEqual([false, []])
    expect((await owner.delete(made.node.id)).status).toBe(204)
  })

  test('unexpected files do no harm', async () => {
    const nodes = join(server.dataDir, 'nodes')
    writeFileSync(join(nodes, 'a file'), 'x')
    const made = await owner.createReady()
    await owner.act(made.node.id, 'stop')
    writeFileSync(join(directoryOf(server, made.node), 'phoenix.conf'), 'http-password=foreign\n')
    chmodSync(join(directoryOf(server, made.node), 'phoenix.conf'), 0o644)
    await server.restart()
    expect((await owner.act(made.node.id, 'start')).status).toBe('ready')
    expect(await isUp(made)).toBe(true)
    await owner.delete(made.node.id)
  })
})

describe('when PostgreSQL is gone', () => {
  test('nodes keep running, the API is 503 with Retry-After, and everything recovers automatically', async () => {
    const made = await owner.createReady()
    const doomed = await owner.createReady()
    const [pid, doomedPid] = [runningPidOf(server, made.node), runningPidOf(server, doomed.node)]
    const store = await server.takeStoreAway()
    try {
      for (const [method, path] of [
        ['GET', '/nodes'],
        ['GET', `/nodes/${made.node.id}`],
        ['POST', '/nodes'],
        ['POST', `/nodes/${made.node.id}/stop`],
        ['DELETE', `/nodes/${made.node.id}`],
      ] as const) {
        const answer = await owner.send(method, path)
        expect([method, path, answer.status, answer.json().error.code]).toEqual([method, path, 503, 'service_unavailable'])
        expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      }
      // One of the nodes dies while its exit cannot be recorded.
      process.kill(doomedPid, 'SIGKILL')
      await eventually(() => !isRunning(doomedPid), 'the death')
      await eventually(() => server.stderr.includes('a node has changed'), 'the service to notice')
      expect(runningPidOf(server, made.node)).toBe(pid)
    } finally {
      store.giveBack()
    }
    expect((await owner.until(made.node.id, 'ready')).status).toBe('ready')
    expect([runningPidOf(server, made.node), await isUp(made)]).toEqual([pid, true])
    await successor(doomed, doomedPid)
    expect((await owner.act(made.node.id, 'restart')).status).toBe('ready')
    for (const { node } of [made, doomed]) await owner.delete(node.id)
  })

  test('an operation in progress is finished when the store is back', async () => {
    const made = await owner.createReady()
    const pid = runningPidOf(server, made.node)
    process.kill(pid, 'SIGSTOP')
    const stop = owner.send('POST', `/nodes/${made.node.id}/stop`)
    await operationOf(made.node, 'stop')
    process.kill(server.postmasterPid, 'SIGKILL')
    process.kill(pid, 'SIGCONT')
    expect([200, 503]).toContain((await stop).status)
    await owner.until(made.node.id, 'stopped')
    expect(isRunning(pid)).toBe(false)
    await owner.delete(made.node.id)
  })
})

describe('when the service is gone', () => {
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    test(`after ${signal} nodes and hub run on, are adopted by the next start, and can be operated`, async () => {
      const made = await owner.createReady()
      const stopped = await owner.createReady()
      await owner.act(stopped.node.id, 'stop')
      const before = await owner.list()
      const pid = runningPidOf(server, made.node)
      const { hubPid } = server
      expect((await server.kill(signal)).code).toBe(signal === 'SIGTERM' ? 0 : null)
      expect([isRunning(pid), isRunning(hubPid)]).toEqual([true, true])
      await server.start()
      expect(await owner.list()).toEqual(before)
      expect([await isUp(made), runningPidOf(server, made.node), isRunning(hubPid)]).toEqual([true, pid, true])

      expect((await owner.act(made.node.id, 'restart')).status).toBe('ready')
      expect([isRunning(pid), daemonsOf(made.node).length]).toEqual([false, 1])
      const next = runningPidOf(server, made.node)
      process.kill(next, 'SIGKILL')
      await successor(made, next)
      expect((await owner.act(made.node.id, 'stop')).status).toBe('stopped')
      expect((await owner.act(stopped.node.id, 'start')).status).toBe('ready')
      for (const { node } of [made, stopped]) expect((await owner.delete(node.id)).status).toBe(204)
    })
  }

  test('C16: a node whose creation was answered with 202 is provisioned by the next process', async () => {
    const made = await owner.create({ name: 'durable' }, { 'idempotency-key': 'durable' })
    await server.kill('SIGKILL')
    await server.start()
    await owner.until(made.node.id, 'ready')
    expect(await isUp(made)).toBe(true)
    expect(daemonsOf(made.node)).toHaveLength(1)
    expect(await owner.create({ name: 'durable' }, { 'idempotency-key': 'durable' })).toEqual(made)
    await owner.delete(made.node.id)
  })

  test('C27: an operation whose caller disconnected is finished, even by the next process', async () => {
    const made = await owner.createReady()
    const pid = runningPidOf(server, made.node)
    process.kill(pid, 'SIGSTOP')
    const stop = owner.send('POST', `/nodes/${made.node.id}/stop`).catch((error: Error) => error)
    await operationOf(made.node, 'stop')
    await server.kill('SIGKILL')
    expect(await stop).toBeInstanceOf(Error)
    process.kill(pid, 'SIGCONT')
    await server.start()
    await owner.until(made.node.id, 'stopped')
    expect(isRunning(pid)).toBe(false)
    await owner.delete(made.node.id)
  })

  test('C27: a stopping service answers waiting callers with 503, and the next one finishes the operation', async () => {
    const made = await owner.createReady()
    const pid = runningPidOf(server, made.node)
    process.kill(pid, 'SIGSTOP')
    const stop = owner.send('POST', `/nodes/${made.node.id}/stop`)
    await operationOf(made.node, 'stop')
    const ended = server.stop()
    const { status, headers, json } = await stop
    expect([status, json().error.code, Number(headers['retry-after']) >= 1]).toEqual([503, 'service_unavailable', true])
    expect((await ended).code).toBe(0)
    process.kill(pid, 'SIGCONT')
    await server.start()
    await owner.until(made.node.id, 'stopped')
    expect(isRunning(pid)).toBe(false)
    await owner.delete(made.node.id)
  })
})
