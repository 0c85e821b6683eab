import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../../testing/eventually.ts'
import type { TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { nodeName, PATHS, podName } from '../../src/runtimes/kubernetes/objects.ts'
import type { Claim, Secret, StatefulSet } from '../../src/runtimes/kubernetes/types.ts'
import { takeOverDeletedNodes } from '../../src/store/nodes/nodes.ts'
import { installationOf } from '../../src/store/settings.ts'
import { Yard } from '../support/crash.ts'
import { hasNoPlane, imagesOf, kubeconfigFor, openCluster, replicaEnv } from '../support/kubernetes.ts'
import { Server } from '../support/server.ts'

/** Two replicas with exactly the permissions in docs/kubernetes.md, one PostgreSQL and real daemons. */
describe.skipIf(hasNoPlane())('replicas on Kubernetes', () => {
  let cluster: TestCluster
  let one: Yard
  let two: Yard
  let env: Record<string, string>
  let reaper: Record<string, string>

  beforeAll(async () => {
    cluster = await openCluster()
    env = replicaEnv(cluster, await kubeconfigFor(cluster, 'boltyard'))
    reaper = {
      NODE_RUNTIME: 'kubernetes',
      NODE_NAMESPACE: cluster.namespace,
      KUBECONFIG: await kubeconfigFor(cluster, 'boltyard-reaper'),
      ROLE: 'reaper',
    }
    one = await new Yard({ env }).start()
    env = { ...env, ...one.sharedStoreEnv }
    two = await new Yard({ env }).start()
  })
  afterAll(() => cluster?.close())

  const statefulSet = (id: string) => cluster.admin.get<StatefulSet>(`${PATHS.statefulSets(cluster.namespace)}/${nodeName(id)}`)
  const claim = (name: string) => cluster.admin.get<Claim>(`${PATHS.claims(cluster.namespace)}/${name}`)
  const secret = (id: string) => cluster.admin.get<Secret>(`${PATHS.secrets(cluster.namespace)}/${nodeName(id)}`)
  const processes = (id: string): number => cluster.kubelet.processes(podName(id)).length

  test('C16: a node created on one replica is ready on both, runs once, and is reached through both', async () => {
    const { node, credentials } = await one.createReady()
    expect(processes(node.id)).toBe(1)
    for (const replica of [one, two]) {
      const info = await eventually(() => replica.node(node.id, credentials.password, 'GET', '/getinfo'), 'the node')
      expect(info.version).toMatch(/^0\.8\.0/)
    }
    await one.fund(node.id, 5_000)
    expect((await two.node(node.id, credentials.restrictedPassword, 'GET', '/getbalance')).balanceSat).toBe(5_000)
  })

  test('C20, C21, C22: stop, start and restart; never two processes', async () => {
    const { node } = await one.createReady()
    expect((await one.v1('POST', `/${node.id}/stop`)).json().status).toBe('stopped')
    expect(processes(node.id)).toBe(0)
    expect((await statefulSet(node.id))?.spec.replicas).toBe(0)
    expect((await one.v1('POST', `/${node.id}/start`)).json().status).toBe('ready')
    expect((await one.v1('POST', `/${node.id}/restart`)).json().status).toBe('ready')
    expect(processes(node.id)).toBe(1)
  })

  test('C19: a process that dies is restarted automatically, and the node stays ready', async () => {
    const { node, credentials } = await one.createReady()
    await cluster.kubelet.crash(podName(node.id))
    await eventually(() => one.node(node.id, credentials.password, 'GET', '/getinfo'), 'the node')
    expect((await one.view(node.id)).status).toBe('ready')
    const sql = one.sql()
    await eventually(async () => {
      const [row] = await sql<{ exits: number }[]>`
        SELECT jsonb_array_length(history -> 'exitsMs')::int AS exits FROM nodes WHERE id = ${node.id}`
      return row?.exits === 1
    }, 'the exit to be counted')
  })

  test('if one replica is killed, the other takes over its nodes', async () => {
    const { node } = await one.createReady()
    const sql = one.sql()
    await one.kill()
    await sql`UPDATE nodes SET next_at = now() WHERE id = ${node.id}`
    await eventually(async () => {
      const [row] = await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND next_at > now() AND lease_owner IS NULL`
      return row
    }, 'the other replica to look at it')
    expect(processes(node.id)).toBe(1)
    await one.start()
    expect((await one.view(node.id)).status).toBe('ready')
  })

  test('after the start of a replica, every node is checked, although its next check was not due', async () => {
    const { node } = await one.createReady()
    const sql = one.sql()
    await Promise.all([one.stop(), two.stop()])
    await sql`UPDATE nodes SET phase = 'unknown', next_at = now() + interval '1 hour' WHERE id = ${node.id}`
    await Promise.all([one.start(), two.start()])
    await eventually(
      async () => (await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND phase = 'running'`).length === 1,
      'the check',
    )
  })

  describe('with other settings', () => {
    // Both replicas, because either may take the next step of a node.
    const restartWith = (env: Record<string, string>) => Promise.all([one, two].map((replica) => replica.restart('SIGTERM', env)))
    const offer = (...names: string[]) => restartWith({ NODE_VERSIONS: imagesOf(...names) })
    afterEach(() => restartWith({}))

    test('C18: a node whose pod cannot start is failed at the deadline, with the reason', async () => {
      await restartWith({ NODE_VERSIONS: imagesOf('1.0.0'), PROVISION_DEADLINE_SECONDS: '3' })
      const { node } = await one.create()
      const { failureMessage } = await one.becomes(node.id, 'failed')
      expect(failureMessage).toMatch(/ErrImagePull: .*not found/)
    })

    test('C25: without volume snapshots, an update is refused with the reason', async () => {
      const { node } = await one.createReady()
      await restartWith({ NODE_VERSIONS: imagesOf('0.8.0', '0.9.0'), NODE_SNAPSHOT_CLASS: '' })
      const answer = await one.v1('POST', `/${node.id}/update`, { json: {} })
      expect([answer.status, answer.json().error.code]).toEqual([400, 'no_update_available'])
      expect(answer.json().error.message).toMatch(/no volume snapshots/)
      expect((await one.v1('GET', `/${node.id}/updates`)).json().updateAvailable).toBe(false)
    })

    test('C25: the data is copied, then the new version runs on it', async () => {
      const { node, credentials } = await one.createReady()
      await one.fund(node.id, 5_000)
      await offer('0.8.0', '0.9.0')
      expect((await one.v1('POST', `/${node.id}/update`, { json: {} })).status).toBe(202)
      await one.shows(node.id, ({ updateStatus }) => updateStatus === 'updated', 'the update', 120_000)
      expect((await one.node(node.id, credentials.password, 'GET', '/getinfo')).version).toMatch(/^0\.9\.0/)
      expect((await one.node(node.id, credentials.password, 'GET', '/getbalance')).balanceSat).toBe(5_000)
      const snapshot = await cluster.admin.get(`${PATHS.snapshots(cluster.namespace)}/${nodeName(node.id)}-0.8.0`)
      expect(snapshot?.metadata.ownerReferences).toBeUndefined()
    })

    test('C25: a version whose pod never runs is rolled back at the deadline, onto a claim made from the copy', async () => {
      await offer('0.8.0')
      const { node, credentials } = await one.createReady()
      await one.fund(node.id, 5_000)
      await offer('0.8.0', '1.0.0')
      expect((await one.v1('POST', `/${node.id}/update`, { json: {} })).status).toBe(202)
      const after = await one.shows(node.id, ({ updateStatus }) => updateStatus === 'failed', 'the roll-back', 120_000)
      expect(after.status).toBe('ready')
      await eventually(() => one.node(node.id, credentials.password, 'GET', '/getinfo'), 'the node')
      expect((await one.node(node.id, credentials.password, 'GET', '/getinfo')).version).toMatch(/^0\.8\.0/)
      expect((await one.node(node.id, credentials.password, 'GET', '/getbalance')).balanceSat).toBe(5_000)
      const [first, restored] = [await claim(nodeName(node.id)), await claim(`${nodeName(node.id)}-r1`)]
      expect(first?.metadata.annotations?.['boltyard.dev/replaced-by']).toBe(restored?.metadata.name)
      expect(processes(node.id)).toBe(1)
    })
  })

  test('a node whose claim is lost is failed, and never replaced by an empty wallet', async () => {
    const { node } = await one.createReady()
    await one.v1('POST', `/${node.id}/stop`)
    const { admin, namespace } = cluster
    const path = `${PATHS.claims(namespace)}/${nodeName(node.id)}`
    await eventually(async () => {
      const lost = await claim(nodeName(node.id))
      if (!lost) return true
      await admin.delete(await admin.patch(path, lost, [{ op: 'replace', path: '/metadata/finalizers', value: [] }]), path)
      return false
    }, 'the claim to be gone')
    expect((await one.v1('POST', `/${node.id}/start`)).status).toBe(502)
    expect((await one.view(node.id)).failureMessage).toMatch(/volume claim n-\w+ or its volume is missing/)
    expect(await claim(nodeName(node.id))).toBeUndefined()
    expect(processes(node.id)).toBe(0)
  })

  test('a Secret that was deleted by hand is written again at the next start', async () => {
    const { node } = await one.createReady()
    const before = await secret(node.id)
    if (!before) throw new Error('no Secret')
    await cluster.admin.delete(before, `${PATHS.secrets(cluster.namespace)}/${nodeName(node.id)}`)
    expect((await one.v1('POST', `/${node.id}/restart`)).status).toBe(200)
    expect((await secret(node.id))?.data).toEqual(before.data)
  })

  test('C26: a deleted node stops and keeps its claim and Secret; after the retention period, only the reaper removes them', async () => {
    const { node } = await one.createReady()
    expect((await one.v1('DELETE', `/${node.id}`)).status).toBe(204)
    await eventually(() => processes(node.id) === 0, 'the process to be gone')
    const sql = one.sql()
    await eventually(async () => {
      const [row] = await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND operation IS NULL`
      return row
    }, 'the deletion to end')
    await sql`UPDATE nodes SET deleted_at = now() - interval '31 days', next_at = now() WHERE id = ${node.id}`
    expect(await claim(nodeName(node.id))).toBeDefined()
    expect(await secret(node.id)).toBeDefined()
    const { MASTER_KEY, ...store } = one.sharedStoreEnv
    const process = await new Server({ env: { ...store, ...reaper, LOG_LEVEL: 'warn' } }).launch()
    const gone = async (): Promise<boolean> => {
      const left = await Promise.all([statefulSet(node.id), claim(nodeName(node.id)), secret(node.id)])
      return left.every((object) => object === undefined)
    }
    await eventually(gone, 'everything to be gone').catch((error: Error) => {
      throw new Error(`${error.message}; the reaper says: ${process.stderr}`)
    })
    await eventually(async () => {
      const [row] = await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND purged_at IS NOT NULL`
      return row
    }, 'the record of the purge')
    expect(await process.stop()).toMatchObject({ code: 0 })
    expect(process.stderr).toBe('')
  })

  test('C50: a node that was deleted on a machine, before the installation moved to the cluster, is purged too', async () => {
    const { node } = await one.createReady()
    expect((await one.v1('DELETE', `/${node.id}`)).status).toBe(204)
    const sql = one.sql()
    const moved = node.id.replace(/.{4}$/, '0000')
    const ended = async (id: string): Promise<boolean> =>
      (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND operation IS NULL AND next_at > now()`).length > 0
    await eventually(() => ended(node.id), 'the deletion to end')
    const changes = { id: moved, host: 'a machine', port: 1234, deleted_at: '2020-01-01', next_at: '2020-01-01' }
    await sql`INSERT INTO nodes SELECT (jsonb_populate_record(n, ${sql.json(changes)})).* FROM nodes n WHERE id = ${node.id}`
    await takeOverDeletedNodes(sql, await installationOf(sql))
    // A replica looks at the node and sets its next check, but does not start it.
    await eventually(() => ended(moved), 'a replica to look at the node')
    const { MASTER_KEY, ...store } = one.sharedStoreEnv
    const process = await new Server({ env: { ...store, ...reaper, LOG_LEVEL: 'warn' } }).launch()
    await eventually(
      async () => (await sql`SELECT 1 FROM nodes WHERE id = ${moved} AND purged_at IS NOT NULL`).length > 0,
      'the record of the purge',
    )
    expect(await process.stop()).toMatchObject({ code: 0 })
    expect(process.stderr).toBe('')
  })
})
