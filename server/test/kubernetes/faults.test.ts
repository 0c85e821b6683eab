import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { eventually, Hopeless } from '../../../testing/eventually.ts'
import type { TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { FaultProxy } from '../../../testing/kubernetes/fault-proxy.ts'
import { type NodeSpec, type Observation, TryAgain } from '../../src/nodes/runtime.ts'
import { nodeName, PATHS, type Place, podName } from '../../src/runtimes/kubernetes/objects.ts'
import type { StatefulSet } from '../../src/runtimes/kubernetes/types.ts'
import { hasNoPlane, newPlace, openCluster, openRuntime, type TestRuntime } from '../support/kubernetes.ts'
import { Specs, started, wanting } from '../support/specs.ts'

const SILENCE_MS = 1_000
/** One each for pods, StatefulSets and claims. */
const WATCHES = 3
/** The sandbox daemon has a backlog of 511. */
const MORE_THAN_THE_BACKLOG = 600

describe.skipIf(hasNoPlane())('faults between the runtime and the API server', () => {
  const specs = new Specs()
  let cluster: TestCluster
  let place: Place
  let proxy: FaultProxy
  let opened: TestRuntime

  beforeAll(async () => {
    cluster = await openCluster()
    place = newPlace(cluster)
  })
  afterAll(() => cluster?.close())
  beforeEach(async () => {
    proxy = await FaultProxy.start(inject('kubeconfig'))
    opened = openRuntime({ cluster, place, materialOf: specs.materialOf, access: proxy.access, silenceMs: SILENCE_MS })
    await eventually(() => opened.pods.isComplete && proxy.openWatches === WATCHES, 'the watches')
    return async () => {
      await opened.close()
      proxy.close()
    }
  })

  /** Repeats the reset until all watches were open at once: a reset misses a watch that is just being opened. */
  const resetAllWatches = async (through: FaultProxy): Promise<void> => {
    await eventually(() => through.openWatches === WATCHES && through.resetWatches() === WATCHES, 'the watches to reset')
  }
  const mine = async (): Promise<boolean> => true
  /** Retries as the reconciler does, for as long as the outcome is unknown. */
  const insist = async (call: () => Promise<unknown>): Promise<void> => {
    await eventually(async () => {
      try {
        await call()
        return true
      } catch (error) {
        if (error instanceof TryAgain) return false
        throw new Hopeless(String(error))
      }
    }, 'a call to succeed')
  }
  const start = (node: NodeSpec): Promise<void> => insist(() => opened.runtime.start(node, specs.materialOf(node.id), mine))
  const becomes = (node: NodeSpec, phase: string): Promise<Observation> =>
    eventually(async () => {
      const seen = await opened.runtime.observe(node)
      return seen.observed.phase === phase ? seen : undefined
    }, `${node.id} to be ${phase}`)
  const running = async (): Promise<NodeSpec> => {
    const node = specs.add()
    await start(node)
    await becomes(started(node), 'running')
    expect(cluster.kubelet.processes(podName(node.id))).toHaveLength(1)
    return started(node)
  }
  const stop = async (node: NodeSpec): Promise<void> => {
    await insist(() => opened.runtime.stop(node))
    await becomes(node, 'exited')
    expect(cluster.kubelet.processes(podName(node.id))).toEqual([])
  }
  /** Expects the node's address to become known, then crashes the node and expects the watch to report its exit. */
  const expectSeen = async (node: NodeSpec): Promise<void> => {
    const reports: string[] = []
    const end = opened.runtime.watch(async (nodeId) => void reports.push(nodeId))
    await eventually(() => opened.pods.address(node.id), `the address of ${node.id}`)
    await cluster.kubelet.crash(podName(node.id))
    await eventually(() => reports.includes(node.id), `the exit of ${node.id}`)
    end()
  }

  test.each(['duplicated', 'reordered'] as const)(
    'events are %s: nodes start, are found, are reported and stop',
    async (fault) => {
      proxy.events = fault
      const node = await running()
      // The proxy holds an event back until the next one, so there must be a next one.
      if (fault === 'reordered') await running()
      await expectSeen(node)
      await stop(node)
    },
  )

  test('events are dropped, so that the connection seems silent: the runtime lists again', async () => {
    proxy.events = 'dropped'
    const node = await running()
    await expectSeen(node)
    expect(proxy.seen.lists).toBeGreaterThan(WATCHES)
    await stop(node)
  })

  test('the connection is reset: the runtime lists again, and misses nothing that happened meanwhile', async () => {
    const node = await running()
    await eventually(() => opened.pods.address(node.id), 'its address')
    const reports: string[] = []
    const end = opened.runtime.watch(async (nodeId) => void reports.push(nodeId))
    await resetAllWatches(proxy)
    await cluster.kubelet.crash(podName(node.id))
    await eventually(() => reports.includes(node.id), 'the report')
    end()
    expect(proxy.seen.watches).toBeGreaterThan(WATCHES)
  })

  test('the list after a reset is stale: what was seen before is found again', async () => {
    const node = await running()
    await eventually(() => opened.pods.address(node.id), 'its address')
    proxy.staleLists = true
    // Without this, the events that follow the list would repair the cache before the test can look at it.
    proxy.events = 'dropped'
    proxy.resetWatches()
    await eventually(() => opened.pods.address(node.id) === undefined, 'the stale list')
    expect((await opened.runtime.observe(node)).observed.phase).toBe('running')
    proxy.events = undefined
    proxy.resetWatches()
    // The watch continues from the version of the stale list, and so repeats all events since then.
    await eventually(() => opened.pods.address(node.id), 'its address again')
    expect((await opened.runtime.observe(node)).observed.phase).toBe('running')
  })

  test('429: the runtime waits and tries again', async () => {
    proxy.refusals = 2
    const node = await running()
    expect(proxy.seen.refused).toBe(2)
    proxy.refusals = 2
    await stop(node)
  })

  test('500 although the write succeeded, for every write of a start and a stop: there is one process, and then none', async () => {
    const node = specs.add()
    // One for each write: the Secret, the claim and the StatefulSet.
    proxy.lostAnswers = 3
    await start(node)
    expect(proxy.seen.lost).toBe(3)
    await becomes(started(node), 'running')
    expect(cluster.kubelet.processes(podName(node.id))).toHaveLength(1)
    proxy.lostAnswers = 1
    await stop(started(node))
    proxy.lostAnswers = 1
    await start(wanting(started(node), { run: 2 }))
    expect(proxy.seen.lost).toBe(5)
    const { process } = await becomes(started(wanting(node, { run: 2 })), 'running')
    expect(process).toEqual({ run: 2, version: '0.8.0' })
  })

  test('the API server is down: the state is unknown, and the node stays reachable at its address', async () => {
    const node = await running()
    const before = await eventually(() => opened.pods.address(node.id), 'its address')
    proxy.isDown = true
    proxy.resetWatches()
    await becomes(node, 'unknown')
    expect((await opened.runtime.address(node.id))?.host).toBe(before.host)
    expect(before.isGenuine?.()).toBe(true)
    proxy.isDown = false
    await becomes(node, 'running')
  })

  test('a node that only the service cannot reach is never hung, however often it is asked', async () => {
    const node = await running()
    const { host, port } = await eventually(() => opened.pods.address(node.id), 'its address')
    const [pid = 0] = cluster.kubelet.processes(podName(node.id))
    // No further connection succeeds, as in a network split, but the kubelet reports the container as ready.
    process.kill(pid, 'SIGSTOP')
    const crowd = Array.from({ length: MORE_THAN_THE_BACKLOG }, () => connect(port, host).on('error', () => undefined))
    try {
      const six = await Promise.all(Array.from({ length: 6 }, () => opened.runtime.observe(node)))
      expect(six.map(({ observed }) => observed.phase)).toEqual(six.map(() => 'unreachable'))
    } finally {
      for (const socket of crowd) socket.destroy()
      process.kill(pid, 'SIGCONT')
    }
    await becomes(node, 'running')
    expect(cluster.kubelet.processes(podName(node.id))).toEqual([pid])
  })

  test('a node that is as it should be costs the API server no request', async () => {
    const node = await running()
    const reads = async (looked: NodeSpec, phase: string): Promise<number> => {
      const before = proxy.seen.reads
      for (let look = 0; look < 10; look++) expect((await opened.runtime.observe(looked)).observed.phase).toBe(phase)
      return proxy.seen.reads - before
    }
    await eventually(async () => (await reads(node, 'running')) === 0, 'the cache to know the node')
    await eventually(() => opened.cache.nodesSeen(0)?.includes(node.id), 'the cache to list the node')
    expect(await eventually(() => opened.cache.nodesSeen(3_600_000), 'the watches to follow')).not.toContain(node.id)
    await stop(node)
    const stopped = { ...wanting(node, { state: 'stopped' }), history: { ...node.history, startedAtMs: null, exitsMs: [] } }
    await eventually(async () => (await reads(stopped, 'absent')) === 0, 'the cache to know that it has stopped')
    expect(await reads({ ...stopped, hasOperation: true }, 'absent'), 'the end of an operation is read live').toBeGreaterThan(0)
  })

  test('what the cluster shows about a node is reported, so that it need not be asked often', async () => {
    const node = await running()
    await eventually(() => opened.cache.view(node.id)?.pod?.status?.podIP, 'the cache to know the node')
    const reports = new Set<string>()
    const end = opened.runtime.watch(async (nodeId) => void reports.add(nodeId))
    const change = async (path: string, at: string, value: unknown): Promise<void> => {
      reports.clear()
      // The change is repeated until it is reported: the controllers undo it at once, and a watch that is being reopened at that
      // moment does not see it.
      await eventually(async () => {
        const found = await cluster.admin.get(path.replace(/\/status$/, ''))
        if (found) await cluster.admin.patch(path, found, [{ op: 'replace', path: at, value }])
        return reports.has(node.id)
      }, `the report of ${path}`)
    }
    await change(`${PATHS.pods(place.namespace)}/${podName(node.id)}/status`, '/status/containerStatuses/0/ready', false)
    await change(`${PATHS.claims(place.namespace)}/${nodeName(node.id)}/status`, '/status/phase', 'Lost')
    await change(`${PATHS.statefulSets(place.namespace)}/${nodeName(node.id)}`, '/spec/replicas', 0)
    end()
  })

  test('the cache is out of date: what the service would act on is read again', async () => {
    const node = await running()
    // Another runtime lists the running node once; after that, its proxy passes on nothing newer.
    const frozen = await FaultProxy.start(inject('kubeconfig'))
    const late = openRuntime({ cluster, place, materialOf: specs.materialOf, access: frozen.access, silenceMs: SILENCE_MS })
    await eventually(async () => {
      await late.runtime.observe(node)
      return late.cache.view(node.id)?.pod?.status?.podIP
    }, 'the other cache')
    frozen.events = 'dropped'
    frozen.staleLists = true
    await resetAllWatches(frozen)
    await eventually(() => late.cache.view(node.id)?.pod, 'the stale list')

    await stop(node)
    const next = wanting(node, { run: 2 })
    expect((await late.runtime.observe(wanting(node, { state: 'stopped' }))).observed.phase).toBe('exited')
    expect((await late.runtime.observe(next)).observed.phase).toBe('exited')
    await start(next)
    await becomes(started(next), 'running')
    expect((await late.runtime.observe(started(next))).process).toEqual({ run: 2, version: '0.8.0' })
    // A watch that receives nothing is reopened every second, and meanwhile the cache has no view of the node.
    const cached = await eventually(() => late.cache.view(node.id)?.statefulSet, 'the watches to follow again')
    expect(cached.metadata.annotations?.['boltyard.dev/run'], 'the cache is still old').toBe('1')
    await late.close()
    frozen.close()
  })

  const setOf = async (node: NodeSpec) => {
    const found = await cluster.admin.get<StatefulSet>(`${PATHS.statefulSets(place.namespace)}/${nodeName(node.id)}`)
    if (!found) throw new Error('no StatefulSet')
    return found
  }

  test('fence: a lease that is older than the last writer’s changes nothing', async () => {
    const node = await running()
    await insist(() => opened.runtime.stop({ ...node, epoch: 7 }))
    await becomes(node, 'exited')
    const written = async () => {
      const { metadata, spec } = await setOf(node)
      return [metadata.annotations, spec]
    }
    const before = await written()
    const old = wanting({ ...node, epoch: 6 }, { run: 2 })
    await expect(opened.runtime.start(old, specs.materialOf(node.id), mine)).rejects.toThrow(TryAgain)
    await expect(opened.runtime.kill(old)).rejects.toThrow(TryAgain)
    expect(await written()).toEqual(before)
    await start({ ...old, epoch: 8 })
    await becomes(started(old), 'running')
    await expect(opened.runtime.stop(old)).rejects.toThrow(TryAgain)
    expect((await setOf(node)).spec.replicas).toBe(1)
  })

  test('fence: a replica that was paused between its read and its write changes nothing', async () => {
    const node = await running()
    await stop(node)
    let resume = (): void => undefined
    const paused = new Promise<boolean>((resolve) => {
      resume = () => resolve(true)
    })
    const late = opened.runtime.start(wanting({ ...node, epoch: 2 }, { run: 2 }), specs.materialOf(node.id), () => paused)
    const refused = expect(late).rejects.toThrow(TryAgain)
    await start(wanting({ ...node, epoch: 3 }, { run: 3 }))
    resume()
    await refused
    expect((await setOf(node)).metadata.annotations).toMatchObject({ 'boltyard.dev/run': '3', 'boltyard.dev/fence': '3' })
  })

  test('fence: a paused replica does not bring back what was removed meanwhile', async () => {
    const node = await running()
    await stop(node)
    let resume = (): void => undefined
    const paused = new Promise<boolean>((resolve) => {
      resume = () => resolve(true)
    })
    const late = opened.runtime.start(wanting({ ...node, epoch: 2 }, { run: 2 }), specs.materialOf(node.id), () => paused)
    const refused = expect(late).rejects.toThrow()
    await insist(() => opened.runtime.remove(node))
    resume()
    await refused
    expect((await opened.runtime.observe(node)).observed.phase).toBe('data_lost')
    expect(cluster.kubelet.processes(podName(node.id))).toEqual([])
  })
})
