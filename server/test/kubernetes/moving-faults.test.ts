import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../../testing/eventually.ts'
import { imageOf, type TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { silent } from '../../../testing/kubernetes/silent.ts'
import { newMaterial } from '../../src/nodes/material.ts'
import { IdleVolumes } from '../../src/nodes/moving/idle-volumes.ts'
import { openVolumesOf } from '../../src/runtimes/kubernetes/moving/idle-volumes.ts'
import { volumeName } from '../../src/runtimes/kubernetes/moving/volume-objects.ts'
import { NodeObjects } from '../../src/runtimes/kubernetes/node-objects.ts'
import { nodeName, PATHS, type Place, podName } from '../../src/runtimes/kubernetes/objects.ts'
import type { Claim, Pod } from '../../src/runtimes/kubernetes/types.ts'
import type { Database } from '../../src/store/db.ts'
import { withMovesLocked } from '../../src/store/nodes/moving.ts'
import { findSetting } from '../../src/store/settings.ts'
import { adopt, command, idOf, type Launched, launch, type Outcome } from '../nodes/moving/moving.ts'
import { Yard } from '../support/crash.ts'
import { hasNoPlane, imagesOf, openCluster, openRuntime } from '../support/kubernetes.ts'
import type { Key } from '../support/server.ts'
import { Specs, wanting } from '../support/specs.ts'
import { FUNDED_SAT, newPath, openYards, refusal, statefulSetOf, walletOn } from './moving-yards.ts'

/** Higher than every lease epoch that the service reaches in these tests. */
const LATE_EPOCH = 1_000_000

/** C90 and C91: processes that are paused, databases that are restored, objects that are lost. */
describe.skipIf(hasNoPlane())('faults while wallets move on Kubernetes', () => {
  let cluster: TestCluster
  let machine: Yard
  let yard: Yard
  let key: Key
  let sql: Database
  let place: Place

  beforeAll(async () => {
    cluster = await openCluster()
    ;({ machine, yard, key, sql } = await openYards(cluster))
    place = { namespace: cluster.namespace, installation: (await findSetting(sql, 'installation')).toString('utf8') }
  })
  afterAll(async () => {
    await cluster?.close()
  })

  const release = (id: string, directory = newPath()): Promise<Outcome> => command(yard, ['release', id, directory])
  const asOwner = (method: string, path: string) => yard.expectOk(yard.send(method, `/v1/nodes${path}`, { token: key.key }))
  /** A copy of a wallet from before it is moved. */
  const copyOf = (directory: string): string => {
    const copy = newPath()
    cpSync(directory, copy, { recursive: true })
    return copy
  }
  const statefulSets = PATHS.statefulSets
  const setOf = (name: string) => statefulSetOf(cluster, name)
  const podOf = (name: string) =>
    cluster.admin.get<Pod & { spec?: { containers: { image: string }[] } }>(`${PATHS.pods(cluster.namespace)}/${name}`)
  const volumeOf = async (id: string): Promise<string> => {
    const claim = await cluster.admin.get<Claim>(`${PATHS.claims(cluster.namespace)}/${nodeName(id)}`)
    return cluster.volumes.claimDirectory(claim?.metadata.uid ?? '')
  }
  const databasesOf = async (id: string): Promise<string[]> =>
    readdirSync(await volumeOf(id)).filter((name) => name.includes('.db'))
  /** Deletes the StatefulSet by hand, as an operator might do with a node that no database knows. */
  const loseStatefulSet = async (id: string): Promise<void> => {
    const set = await setOf(nodeName(id))
    if (set) await cluster.admin.delete(set, `${statefulSets(cluster.namespace)}/${nodeName(id)}`)
    await eventually(async () => (await podOf(podName(id))) === undefined, 'the pod to be gone')
  }
  /** Another database of the same installation, as if restored from a backup made before the test. */
  const restored = async (): Promise<{ older: Yard; olderKey: Key }> => {
    const older = await new Yard({ env: yard.env }).start()
    onTestFinished(async () => void (await older.stop()))
    await older.sql()`UPDATE settings SET value = ${Buffer.from(place.installation)} WHERE name = 'installation'`
    return { older, olderKey: await older.newKey(['nodes:write']) }
  }

  /** An adoption whose volume cannot be opened, because its image is missing, until `openFor` sets the right image. */
  const waitingAdoption = async (directory: string): Promise<Launched & { id: string }> => {
    const launched = launch(yard, ['adopt', directory, '--account', key.accountId], undefined, {
      WALLET_IMAGE: imageOf('missing'),
    })
    onTestFinished(() => void launched.child.kill('SIGKILL'))
    const id = await eventually(() => /to (node_\w+)\./.exec(readFileSync(join(directory, 'seed.dat'), 'utf8'))?.[1], 'its id')
    await eventually(async () => (await podOf(`${volumeName(id)}-0`))?.status?.podIP, 'its pod')
    return { ...launched, id }
  }
  const openFor = async (id: string): Promise<void> => {
    const image = yard.env.WALLET_IMAGE
    let wasOpen = false
    await eventually(async () => {
      const [set, pod] = [await setOf(volumeName(id)), await podOf(`${volumeName(id)}-0`)]
      if (set?.spec.replicas !== 1) return wasOpen
      wasOpen = true
      const path = `${statefulSets(cluster.namespace)}/${volumeName(id)}`
      if (set.spec.template.spec.containers[0]?.image !== image)
        await cluster.admin.patch(path, set, [{ op: 'replace', path: '/spec/template/spec/containers/0/image', value: image }])
      if (!pod) return false
      // The controller may still have created it with the missing image, and never replaces a pod by itself.
      if (pod.spec?.containers[0]?.image === image) return true
      await cluster.admin.deletePod(pod, `${PATHS.pods(cluster.namespace)}/${volumeName(id)}-0`, 1)
      return false
    }, 'the volume to be opened')
  }
  /** Ends the connection that holds the lock, as a restart of PostgreSQL or a long pause of the process would. */
  const loseLock = async (): Promise<void> => {
    const ended = await sql`
      SELECT pg_terminate_backend(pid) FROM pg_locks, hashtextextended('moving a wallet', 0) AS key
      WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid::bigint = (key >> 32) & 4294967295 AND objid::bigint = key & 4294967295`
    expect(ended).toHaveLength(1)
  }

  test('C90: an adoption that was paused while another one finished never puts older data back', async () => {
    const { created, directory } = await walletOn(machine)
    const paused = await waitingAdoption(directory)
    const { id } = paused
    paused.child.kill('SIGSTOP')
    await loseLock()
    expect(idOf(await adopt(yard, directory, key))).toBe(id)
    await asOwner('POST', `/${id}/start`)
    await yard.fund(id, FUNDED_SAT)
    await asOwner('POST', `/${id}/stop`)
    paused.child.kill('SIGCONT')
    await openFor(id)
    expect(await paused.outcome).toEqual(refusal('has been started since', 1))
    await asOwner('POST', `/${id}/start`)
    expect((await yard.node(id, created.credentials.password, 'GET', '/getbalance')).balanceSat).toBe(2 * FUNDED_SAT)
  })

  test('C90: an adoption that has lost its lock writes nothing, and can be repeated', async () => {
    const { directory } = await walletOn(machine)
    const { id, outcome } = await waitingAdoption(directory)
    await loseLock()
    await openFor(id)
    expect(await outcome).toEqual(refusal('cannot reach the database', 1))
    expect(await databasesOf(id)).toEqual([])
    expect(idOf(await adopt(yard, directory, key))).toBe(id)
    expect(await databasesOf(id)).toHaveLength(1)
  })

  test('C90: older data never replaces that of a node that has run, even if its StatefulSet and its row are lost', async () => {
    const { directory } = await walletOn(machine)
    const copy = copyOf(directory)
    const id = idOf(await adopt(yard, directory, key))
    await asOwner('POST', `/${id}/start`)
    const { older, olderKey } = await restored()
    // The service of the newer database no longer manages the node.
    await sql`UPDATE nodes SET host = 'elsewhere' WHERE id = ${id}`
    await loseStatefulSet(id)
    const [name = ''] = await databasesOf(id)
    const before = readFileSync(join(await volumeOf(id), name))
    for (const more of [[], ['--newest']])
      expect(await adopt(older, copy, olderKey, ...more)).toEqual(refusal('has this wallet, and its data is newer'))
    expect(readFileSync(join(await volumeOf(id), name)).equals(before)).toBe(true)
  })

  test('C90: the wallet of a node that was created in the cluster, and that the database does not know, is refused', async () => {
    const created = await yard.createReady()
    const { id } = created.node
    // As if the operator had rescued the wallet by hand, from a snapshot and the Secret. The test also removes the annotations of
    // the claim, because nodes of earlier versions have none.
    const rescued = newPath()
    mkdirSync(rescued)
    for (const name of await databasesOf(id)) cpSync(join(await volumeOf(id), name), join(rescued, name))
    writeFileSync(join(rescued, 'seed.dat'), created.credentials.seed)
    writeFileSync(join(rescued, 'phoenix.conf'), `http-password=${created.credentials.password}\n`)
    const path = `${PATHS.claims(cluster.namespace)}/${nodeName(id)}`
    const claim = await cluster.admin.get<Claim>(path)
    expect(claim?.metadata.annotations).toMatchObject({ 'boltyard.dev/started': 'true' })
    if (claim) await cluster.admin.patch(path, claim, [{ op: 'add', path: '/metadata/annotations', value: {} }])
    const { older, olderKey } = await restored()
    for (const more of [[], ['--newest']])
      expect(await adopt(older, rescued, olderKey, '--version', '0.8.0', ...more)).toEqual(
        refusal(`${id} in this cluster has this wallet`),
      )
    expect(cluster.kubelet.processes(podName(id))).toHaveLength(1)
  })

  test('C90: an adopted node that was released before it ever ran does not count as a begun adoption', async () => {
    const { directory } = await walletOn(machine)
    const copy = copyOf(directory)
    const id = idOf(await adopt(yard, directory, key))
    const last = newPath()
    expect((await release(id, last)).code).toBe(0)
    const { older, olderKey } = await restored()
    expect(await adopt(older, copy, olderKey)).toEqual(refusal('was released, and'))
    expect(idOf(await adopt(older, last, olderKey))).not.toBe(id)
  })

  test('C91: a node that never ran is not released', async () => {
    const env = { ...yard.env, NODE_VERSIONS: imagesOf('9.9.9') }
    const other = await new Yard({ env }).start()
    onTestFinished(async () => void (await other.stop()))
    const { node } = await other.create()
    await eventually(async () => (await podOf(podName(node.id)))?.status?.podIP, 'its pod')
    expect(await command(other, ['release', node.id, newPath()])).toEqual(refusal('has never run'))
    expect((await other.view(node.id)).status).not.toBe('stopped')
  })

  test('C91: data that belongs to another wallet is not written, and is kept here', async () => {
    const { node } = await yard.createReady()
    await yard.expectOk(yard.v1('POST', `/${node.id}/stop`))
    const volume = await volumeOf(node.id)
    for (const name of await databasesOf(node.id))
      renameSync(join(volume, name), join(volume, name.replace(/\.[0-9a-f]{6}\.db/, '.ffffff.db')))
    const directory = newPath()
    const outcome = await release(node.id, directory)
    expect(outcome).toEqual(refusal(`the data of ${node.id} is not a valid wallet`, 1))
    expect(outcome.stderr).toContain('stays released, and its data here is kept. Repeat this command.')
    expect(readdirSync(join(directory, '..')).includes('released')).toBe(false)
    expect(await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND exported_at IS NULL`).toHaveLength(1)
  })

  test.each(['was never started', 'was started before'])(
    'C91: a start that was paused until its node, which %s, was released starts nothing',
    async (when) => {
      const { created, directory } = await walletOn(machine)
      const id = idOf(await adopt(yard, directory, key))
      if (when === 'was started before') {
        await asOwner('POST', `/${id}/start`)
        await asOwner('POST', `/${id}/stop`)
      }
      const material = { ...newMaterial(), seed: created.credentials.seed }
      const opened = openRuntime({ cluster, place, materialOf: () => material })
      onTestFinished(() => opened.close())
      const spec = { ...wanting(new Specs().add(), { run: 7 }), id, epoch: LATE_EPOCH }
      let resume = (): void => undefined
      const paused = new Promise<boolean>((resolve) => {
        resume = () => resolve(true)
      })
      let asked = 0
      const late = opened.runtime.start(spec, material, () => (asked++ === 0 ? Promise.resolve(true) : paused))
      const refused = expect(late).rejects.toThrow()
      await eventually(() => asked === 2, 'the start to be paused')
      expect((await release(id)).code).toBe(0)
      resume()
      await refused
      expect((await setOf(nodeName(id)))?.spec.replicas).toBe(0)
      expect(cluster.kubelet.processes(podName(id))).toEqual([])
    },
  )

  test('C91: the service closes a volume that an interrupted move has left open, and never one that is in use', async () => {
    const { node } = await yard.createReady()
    const crashed = await command(yard, ['release', node.id, newPath()], 'volume: open')
    expect(crashed).toMatchObject({ signal: 'SIGKILL' })
    const volumes = openVolumesOf(new NodeObjects(cluster.admin, place))
    const idle = new IdleVolumes({ sql, volumes, log: silent })
    onTestFinished(() => idle.close())
    const replicas = async () => (await setOf(volumeName(node.id)))?.spec.replicas
    expect(await withMovesLocked(sql, () => idle.pass())).toEqual({ result: undefined })
    expect(await replicas()).toBe(1)
    expect(await openVolumesOf(new NodeObjects(cluster.admin, { ...place, installation: 'other' })).list()).toEqual([])
    await idle.pass()
    expect(await replicas()).toBe(0)
    expect((await release(node.id)).code).toBe(0)
  })
})
