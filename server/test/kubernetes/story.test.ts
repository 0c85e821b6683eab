import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { eventually } from '../../../testing/eventually.ts'
import type { TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { FaultProxy } from '../../../testing/kubernetes/fault-proxy.ts'
import { hasRedis, TestRedis } from '../../../testing/redis.ts'
import { FENCE, nodeName, PATHS, podName } from '../../src/runtimes/kubernetes/objects.ts'
import type { StatefulSet } from '../../src/runtimes/kubernetes/types.ts'
import type { Database } from '../../src/store/db.ts'
import { Yard } from '../support/crash.ts'
import { credentialOf, invoiceIn, untilKnown } from '../support/gateway.ts'
import { hasNoPlane, imagesOf, kubeconfigFor, openCluster, replicaEnv } from '../support/kubernetes.ts'
import { leasesLost, pauseInStep } from '../support/nodes.ts'
import { type Answer, freePort, type Key, type Request, send } from '../support/server.ts'

const isWanted = !hasNoPlane() && (hasRedis() || process.env.CI === 'true')
if (!isWanted) process.stderr.write('\n### SKIPPED: story.test.ts: it needs a control plane and redis-server on the PATH ###\n\n')

/** Two replicas on one PostgreSQL and one Redis. They reach the API server through a proxy that causes faults. */
describe.skipIf(!isWanted)('the whole story on two replicas', () => {
  const redis = new TestRedis('password-of-redis')
  let cluster: TestCluster
  let proxy: FaultProxy
  let one: Yard
  let two: Yard
  let key: Key
  let sql: Database
  let metricsPort: number

  beforeAll(async () => {
    if (!hasRedis()) throw new Error('CI needs Redis: redis-server is not on the PATH')
    await redis.start()
    cluster = await openCluster()
    proxy = await FaultProxy.start(inject('kubeconfig'))
    const kubeconfig = await kubeconfigFor(cluster, 'boltyard', proxy.access)
    const env = { ...replicaEnv(cluster, kubeconfig), REDIS_URL: redis.url, NODE_VERSIONS: imagesOf('0.8.0') }
    metricsPort = await freePort()
    one = await new Yard({ env: { ...env, METRICS_PORT: String(metricsPort) } }).start()
    two = await new Yard({ env: { ...env, ...one.sharedStoreEnv } }).start()
    key = await one.newKey(['nodes:write', 'gateway:write'])
    sql = one.sql()
  })
  afterAll(async () => {
    await redis.remove()
    await cluster?.close()
    proxy?.close()
  })

  // If a test fails while the API server is down, the next test must find it running again.
  beforeEach(() => {
    proxy.isDown = false
  })

  let turn = 0
  const next = (): Yard => [one, two][turn++ % 2] as Yard
  /** Requests go to the two replicas in turn. */
  const ask = (method: string, path: string, options: Request = {}): Promise<Answer> =>
    next().send(method, `/v1${path}`, { token: key.key, ...options })
  const want = async (status: number, answer: Promise<Answer>): Promise<any> => {
    const { status: got, text } = await answer
    expect([got, text]).toEqual([status, expect.any(String)])
    return text === '' ? undefined : JSON.parse(text)
  }
  const shows = (id: string, field: string, value: string): Promise<true> =>
    eventually(async () => {
      const view = (await ask('GET', `/nodes/${id}`)).json()
      if (view[field] !== value) throw new Error(JSON.stringify(view))
      return true as const
    }, `${id} to show ${field}=${value}`)
  const processes = (id: string): number[] => cluster.kubelet.processes(podName(id))

  const createReady = async (): Promise<{ id: string; password: string }> => {
    const { node, credentials } = await want(202, ask('POST', '/nodes', { json: {} }))
    await shows(node.id, 'status', 'ready')
    expect(processes(node.id)).toHaveLength(1)
    return { id: node.id, password: credentials.password }
  }
  /** A customer buys; of two deliveries that are claimed on two replicas, one is granted. */
  const sell = async (nodeId: string): Promise<void> => {
    const json = { nodeId, amountSat: 10, description: 'A story' }
    const payment = await want(
      201,
      untilKnown(() => ask('POST', '/gateway/payments', { json })),
    )
    const { preimage } = await want(
      200,
      next().operator('POST', '/sandbox/pay', { json: { invoice: invoiceIn(payment.challenge) } }),
    )
    const credential = credentialOf(payment, preimage)
    const redeem = (requestId: string): Promise<Answer> =>
      untilKnown(() => ask('POST', `/gateway/payments/${payment.id}/redeem`, { json: { credential, requestId } }))
    const claims = await Promise.all([redeem('first'), redeem('second')])
    expect(claims.map(({ status }) => status).sort()).toEqual([200, 409])
  }
  const stopAndStart = async (id: string): Promise<void> => {
    await want(200, ask('POST', `/nodes/${id}/stop`))
    expect(processes(id)).toEqual([])
    await want(200, ask('POST', `/nodes/${id}/start`))
    expect(processes(id)).toHaveLength(1)
  }
  const remove = async (id: string): Promise<void> => {
    await want(204, ask('DELETE', `/nodes/${id}?force=true`))
    await eventually(() => processes(id).length === 0, 'the process to be gone')
    for (const replica of [one, two]) expect((await replica.send('GET', `/v1/nodes/${id}`, { token: key.key })).status).toBe(404)
  }
  const offer = async (...names: string[]): Promise<void> => {
    await Promise.all([one, two].map((replica) => replica.restart('SIGTERM', { NODE_VERSIONS: imagesOf(...names) })))
  }

  test('C16, C20, C21, C25, C26, C45: create, sell, update, stop, start, delete, on alternating replicas', async () => {
    const { id, password } = await createReady()
    await sell(id)
    await offer('0.8.0', '0.9.0')
    await want(202, ask('POST', `/nodes/${id}/update`, { json: {} }))
    await shows(id, 'updateStatus', 'updated')
    expect((await eventually(() => next().node(id, password, 'GET', '/getinfo'), 'the node')).version).toMatch(/^0\.9\.0/)
    await sell(id)
    await stopAndStart(id)
    await sell(id)
    await remove(id)
    await offer('0.8.0')
  })

  const faults: [name: string, begin: () => void, end: () => void][] = [
    [
      'events are duplicated',
      () => {
        proxy.events = 'duplicated'
      },
      () => {
        proxy.events = undefined
      },
    ],
    [
      'connections are reset',
      () => {
        proxy.resetWatches()
      },
      () => undefined,
    ],
    [
      'requests are refused with 429',
      () => {
        proxy.refusals = 4
      },
      () => undefined,
    ],
    [
      'writes succeed but are answered with 500',
      () => {
        proxy.lostAnswers = 5
      },
      () => undefined,
    ],
  ]
  test.each(faults)('%s: create, sell, stop, start, delete', async (_, begin, end) => {
    begin()
    const { id } = await createReady()
    await sell(id)
    begin()
    await stopAndStart(id)
    await sell(id)
    await remove(id)
    end()
  })

  test('the API server is down: nodes sell, and operations wait until it is back', async () => {
    const { id } = await createReady()
    // After this sale, both replicas know the address of the node.
    await sell(id)
    proxy.isDown = true
    proxy.resetWatches()
    await sell(id)
    const stopped = ask('POST', `/nodes/${id}/stop`)
    await eventually(async () => (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND operation = 'stop'`)[0], 'the stop to begin')
    expect(processes(id)).toHaveLength(1)
    proxy.isDown = false
    await want(200, stopped)
    await remove(id)
  })

  test('metrics: how long ago each watch received anything', async () => {
    const { text } = await send(metricsPort, 'GET', '/metrics')
    const found = [...text.matchAll(/^boltyard_watch_staleness_seconds\{resource="(\w+)"\} (\S+)$/gm)]
    expect(found.map(([, resource]) => resource).sort()).toEqual(['persistentvolumeclaims', 'pods', 'statefulsets'])
    for (const [, , seconds] of found) expect(Number(seconds)).toBeLessThan(1_000)
  })

  test('a replica that is paused beyond its lease changes nothing when it resumes', async () => {
    const { id } = await createReady()
    const written = async () => {
      const set = await cluster.admin.get<StatefulSet>(`${PATHS.statefulSets(cluster.namespace)}/${nodeName(id)}`)
      const [row] = await sql`SELECT status, desired_state, operation, failure_message FROM nodes WHERE id = ${id}`
      return { row, annotations: set?.metadata.annotations, spec: set?.spec }
    }
    const lostBefore = await leasesLost(metricsPort)
    await two.kill()
    // While the node does not answer, the replica that checks it keeps its lease.
    const [pid = 0] = processes(id)
    process.kill(pid, 'SIGSTOP')
    const { resume } = await pauseInStep(one, sql, id)
    const [leased] = await sql<{ epoch: number }[]>`SELECT lease_epoch AS epoch FROM nodes WHERE id = ${id}`
    process.kill(pid, 'SIGCONT')
    await two.start()
    await sql`UPDATE nodes SET lease_until = now() WHERE id = ${id}`
    await want(200, two.send('POST', `/v1/nodes/${id}/stop`, { token: key.key }))
    const after = await written()
    expect(Number(after.annotations?.[FENCE])).toBeGreaterThan(leased?.epoch ?? Number.NaN)
    resume()
    // The resumed replica tried to record what it saw under its old lease.
    await eventually(async () => (await leasesLost(metricsPort)) > lostBefore, 'the replica to notice')
    expect(await written()).toEqual(after)
    expect(processes(id)).toEqual([])
    await remove(id)
  })
})
