import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../../testing/eventually.ts'
import type { TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { accessOfFile } from '../../src/runtimes/kubernetes/access.ts'
import { KubernetesClient } from '../../src/runtimes/kubernetes/client.ts'
import { volumeName } from '../../src/runtimes/kubernetes/moving/volume-objects.ts'
import { NodeObjects } from '../../src/runtimes/kubernetes/node-objects.ts'
import { nodeName, PATHS, podName } from '../../src/runtimes/kubernetes/objects.ts'
import { removeNode } from '../../src/runtimes/kubernetes/removal.ts'
import type { Claim } from '../../src/runtimes/kubernetes/types.ts'
import type { Database } from '../../src/store/db.ts'
import { findSetting } from '../../src/store/settings.ts'
import { adopt, command, idOf, type Outcome } from '../nodes/moving/moving.ts'
import { type Created, Yard } from '../support/crash.ts'
import { hasNoPlane, kubeconfigFor, openCluster } from '../support/kubernetes.ts'
import type { Key } from '../support/server.ts'
import { Specs } from '../support/specs.ts'
import { FUNDED_SAT, funded, newPath, openYards, refusal, statefulSetOf, walletOn } from './moving-yards.ts'

/** C90 and C91: wallets move between a machine and a cluster. The commands have the rights of the service in docs/kubernetes.md. */
describe.skipIf(hasNoPlane())('wallets on Kubernetes', () => {
  let cluster: TestCluster
  let machine: Yard
  let yard: Yard
  let onMachine: Key
  let key: Key
  let sql: Database

  beforeAll(async () => {
    cluster = await openCluster()
    ;({ machine, yard, key, sql } = await openYards(cluster))
    onMachine = await machine.newKey(['nodes:write'])
  })
  afterAll(async () => {
    await cluster?.close()
  })

  const release = (from: Yard, id: string, directory: string, crashAt?: string): Promise<Outcome> =>
    command(from, ['release', id, directory], crashAt)
  const killed = { code: null, signal: 'SIGKILL', stderr: '' }
  const startedBalance = async (at: Yard, { key: token }: Key, id: string, { credentials }: Created): Promise<number> => {
    await at.expectOk(at.send('POST', `/v1/nodes/${id}/start`, { token }))
    return (await at.node(id, credentials.password, 'GET', '/getbalance')).balanceSat
  }
  const claimOf = (id: string) => cluster.admin.get<Claim>(`${PATHS.claims(cluster.namespace)}/${nodeName(id)}`)
  const filesOf = async (id: string): Promise<string[]> =>
    readdirSync(cluster.volumes.claimDirectory((await claimOf(id))?.metadata.uid ?? '')).sort()
  const setOf = (name: string) => statefulSetOf(cluster, name)
  const volumePods = (id: string): number[] => cluster.kubelet.processes(`${volumeName(id)}-0`)
  const nodesWith = async (lightningId: string): Promise<string[]> =>
    (await sql<{ id: string }[]>`SELECT id FROM nodes WHERE lightning_id = ${lightningId} AND deleted_at IS NULL`).map(
      ({ id }) => id,
    )
  const lightningIdOf = async (at: Yard, id: string): Promise<string> =>
    (await at.sql()<{ id: string }[]>`SELECT lightning_id AS id FROM nodes WHERE id = ${id}`)[0]?.id ?? ''

  test('C90: a node moves from a machine to the cluster with its name, passwords and money, and back', async () => {
    const created = await funded(machine)
    await machine.expectOk(machine.v1('PATCH', `/${created.node.id}`, { json: { name: 'Kiosk' } }))
    const directory = newPath()
    expect((await release(machine, created.node.id, directory)).code).toBe(0)

    const there = idOf(await adopt(yard, directory, key))
    const view = (await yard.send('GET', `/v1/nodes/${there}`, { token: key.key })).json()
    expect(view).toMatchObject({ name: 'Kiosk', status: 'stopped' })
    expect(volumePods(there)).toEqual([])
    expect((await setOf(volumeName(there)))?.spec.replicas).toBe(0)
    expect((await filesOf(there)).filter((name) => name !== 'phoenix.conf')).toEqual([
      expect.stringMatching(/^phoenix\.regtest\.[0-9a-f]{6}\.db$/),
    ])
    expect(await startedBalance(yard, key, there, created)).toBe(FUNDED_SAT)
    expect(idOf(await adopt(yard, directory, key))).toBe(there)

    const back = newPath()
    expect(await release(yard, there, back)).toEqual({ code: 0, signal: null, stderr: expect.stringMatching(/^Released /) })
    expect((await yard.send('GET', `/v1/nodes/${there}`, { token: key.key })).status).toBe(404)
    expect(cluster.kubelet.processes(podName(there))).toEqual([])
    expect(volumePods(there)).toEqual([])
    const home = idOf(await adopt(machine, back, onMachine))
    expect(await startedBalance(machine, onMachine, home, created)).toBe(FUNDED_SAT)
    // The wallet was in this cluster before, so only what its last release here wrote, or a later release elsewhere, is accepted.
    expect(await adopt(yard, directory, key)).toEqual(refusal('is older than the release'))
  })

  test.each([
    'adopt: the id is chosen',
    'move: no daemon can start',
    'volume: open',
    'volume: a file is there',
    'adopt: in place',
    'adopt: not yet committed',
    'adopt: committed',
  ])('C90: an adoption that is killed (%s) and repeated makes one node, with its money', async (crashAt) => {
    const { created, directory } = await walletOn(machine)
    const args = ['adopt', directory, '--account', key.accountId]
    expect(await command(yard, args, crashAt)).toMatchObject(crashAt === 'adopt: committed' ? { signal: 'SIGKILL' } : killed)
    const id = idOf(await command(yard, args))
    expect(await nodesWith(await lightningIdOf(machine, created.node.id))).toEqual([id])
    expect(volumePods(id)).toEqual([])
    expect(await startedBalance(yard, key, id, created)).toBe(FUNDED_SAT)
  })

  test('C90: an interrupted adoption continues only with the same data, unless the operator says that another is newer', async () => {
    const { created, directory } = await walletOn(machine)
    const [other, args] = [newPath(), (path: string) => ['adopt', path, '--account', key.accountId]]
    cpSync(directory, other, { recursive: true })
    const database = readdirSync(other).find((name) => name.endsWith('.db')) ?? ''
    writeFileSync(join(other, `${database}-wal`), 'what a daemon has written since')
    expect(await command(yard, args(directory), 'adopt: the id is chosen')).toEqual(killed)
    expect(await command(yard, args(other))).toEqual(refusal('was already begun with other data'))
    const id = idOf(await command(yard, [...args(other), '--newest']))
    expect(await filesOf(id)).toContain(`${database}-wal`)
    expect(await nodesWith(await lightningIdOf(machine, created.node.id))).toEqual([id])
  })

  test('C90: a node that a restored database does not know keeps its wallet', async () => {
    const { created, directory } = await walletOn(machine)
    const id = idOf(await adopt(yard, directory, key, '--start'))
    await eventually(() => cluster.kubelet.processes(podName(id)).length === 1, 'the node to start')
    // A database of the same installation, as if restored from a backup made before the adoption.
    const older = await new Yard({ env: yard.env }).start()
    const olderKey = await older.newKey(['nodes:write'])
    await older.sql()`UPDATE settings SET value = ${await findSetting(sql, 'installation')} WHERE name = 'installation'`
    expect(await adopt(older, directory, olderKey)).toEqual(refusal(`was moved to ${id} already`))
    const copy = newPath()
    cpSync(directory, copy, { recursive: true })
    cpSync(join(copy, 'seed.dat.moved'), join(copy, 'seed.dat'))
    expect(await adopt(older, copy, olderKey)).toEqual(refusal('has this wallet, and its data is newer'))
    expect(await nodesWith(await lightningIdOf(machine, created.node.id))).toEqual([id])
    await older.stop()
  })

  test.each([
    'release: recorded',
    'release: stopped',
    'move: no daemon can start',
    'volume: open',
    'release: copied',
    'release: exported',
  ])('C91: a release that is killed (%s) and repeated writes the wallet, and the node never runs here again', async (crashAt) => {
    const created = await funded(yard)
    const { id } = created.node
    const directory = newPath()
    expect(await release(yard, id, directory, crashAt)).toEqual(killed)
    expect((await release(yard, id, directory)).code).toBe(0)
    expect(readFileSync(join(directory, 'seed.dat'), 'utf8')).toBe(created.credentials.seed)
    expect(cluster.kubelet.processes(podName(id))).toEqual([])
    expect(volumePods(id)).toEqual([])
    const home = idOf(await adopt(machine, directory, onMachine))
    expect(await startedBalance(machine, onMachine, home, created)).toBe(FUNDED_SAT)
  })

  test('C91: with an older database, a released node does not start', async () => {
    const { node } = await funded(yard)
    expect((await release(yard, node.id, newPath())).code).toBe(0)
    // The row as in a backup from before the release, when the node was stopped.
    await sql`
      UPDATE nodes SET released_at = NULL, exported_at = NULL, releases = '{}', deleted_at = NULL, desired_state = 'stopped', status = 'stopped'
      WHERE id = ${node.id}`
    const started = yard.v1('POST', `/${node.id}/start`)
    const view = await yard.shows(node.id, ({ failureMessage }) => failureMessage !== null, 'a reason')
    expect(view.failureMessage).toContain('its wallet was released to another installation')
    expect(cluster.kubelet.processes(podName(node.id))).toEqual([])
    await started
    expect(await release(yard, node.id, newPath())).toEqual(refusal('already, so its data here may be old'))
  })

  test('C91: what a release leaves in the cluster is removed with the node, with the rights of the reaper', async () => {
    const { node } = await funded(yard)
    expect((await release(yard, node.id, newPath())).code).toBe(0)
    expect(await setOf(volumeName(node.id))).toBeDefined()
    const client = new KubernetesClient(accessOfFile(await kubeconfigFor(cluster, 'boltyard-reaper')))
    const installation = (await findSetting(sql, 'installation')).toString('utf8')
    await removeNode(new NodeObjects(client, { namespace: cluster.namespace, installation }), {
      ...new Specs().add(),
      id: node.id,
    })
    client.close()
    expect(await setOf(volumeName(node.id))).toBeUndefined()
    expect(await claimOf(node.id)).toBeUndefined()
  })

  test('C90: two moves at once, and a service that does not know its image, are refused before anything is changed', async () => {
    const { directory } = await walletOn(machine)
    const before = readFileSync(join(directory, 'seed.dat'), 'utf8')
    await sql.begin(async (transaction) => {
      await transaction`SELECT pg_advisory_xact_lock(hashtextextended('moving a wallet', 0))`
      expect(await adopt(yard, directory, key)).toEqual(refusal('another process is moving a wallet', 75))
    })
    const args = ['adopt', directory, '--account', key.accountId]
    expect(await command(yard, args, undefined, { WALLET_IMAGE: '' })).toEqual(refusal('WALLET_IMAGE'))
    expect(readFileSync(join(directory, 'seed.dat'), 'utf8')).toBe(before)
  })
})
