import { describe, expect, test } from 'vitest'
import { pickStatefulSet } from '../../../src/runtimes/kubernetes/picks.ts'
import {
  exitsOf,
  isListening,
  isScaledDown,
  lastExit,
  seemsUnused,
  wasNeverUsed,
  whyInEvents,
  whyWaiting,
} from '../../../src/runtimes/kubernetes/pod-state.ts'
import type { Event, Metadata, Pod } from '../../../src/runtimes/kubernetes/types.ts'

type Container = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number]

const pod = (
  container: Partial<Container> | undefined,
  metadata: Partial<Metadata> = {},
  spec: Pod['spec'] = { nodeName: 'm' },
): Pod => ({
  metadata: { name: 'n-a-0', ...metadata },
  spec,
  status: container ? { containerStatuses: [{ restartCount: 0, ...container }] } : {},
})
const held = { deletionTimestamp: 'now', deletionGracePeriodSeconds: 0, finalizers: ['boltyard.dev/evidence'] }
const crashed = { exitCode: 1, startedAt: 'then', message: 'starting\nno luck today' }

describe('why a pod does not run', () => {
  test('its container cannot be started', () => {
    const waiting = { reason: 'ErrImagePull', message: 'not found' }
    expect(whyWaiting(pod({ state: { waiting } }))).toBe('ErrImagePull: not found')
    expect(whyWaiting(pod({ state: { waiting: { reason: 'ContainerCreating' } } }))).toBeUndefined()
  })

  test('no machine can run it', () => {
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available.' }
    expect(whyWaiting({ ...pod(undefined), status: { conditions: [condition] } })).toBe('Unschedulable: 0/3 nodes are available')
  })

  test('its machine is lost, so it stays', () => {
    expect(whyWaiting(pod({ state: { running: {} } }, { deletionTimestamp: 'now' }))).toMatch(/still terminating on m/)
  })

  test('the latest failure among its events, and no other event', () => {
    const event = (reason: string, lastTimestamp: string, type = 'Warning'): Event => ({
      metadata: { name: reason },
      reason,
      message: 'because',
      type,
      lastTimestamp,
    })
    expect(whyInEvents([event('Failed1', '2026-01-01'), event('Failed2', '2026-01-02'), event('Unhealthy', '2026-01-03')])).toBe(
      'Failed2: because',
    )
    expect(whyInEvents([event('FailedMount', '2026-01-01', 'Normal')])).toBeUndefined()
  })

  test('its last exit: the code and the last words, or that it ran out of memory', () => {
    expect(lastExit(pod({ state: { terminated: crashed } }))).toBe('no luck today (exit code 1)')
    expect(lastExit(pod({ state: { running: {} }, lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }))).toMatch(
      /memory/,
    )
    expect(lastExit(pod({ state: { running: {} } }))).toBeUndefined()
  })
})

test('C19: every exit of a container is counted once, whatever the kubelet shows in between', () => {
  const lastState = { terminated: crashed }
  expect(exitsOf(pod(undefined))).toBe(0)
  expect(exitsOf(pod({ state: { running: {} } }))).toBe(0)
  expect(exitsOf(pod({ state: { terminated: crashed } }))).toBe(1)
  expect(exitsOf(pod({ state: { running: {} }, restartCount: 1, lastState }))).toBe(1)
  expect(exitsOf(pod({ state: { waiting: { reason: 'CrashLoopBackOff' } }, restartCount: 1, lastState }))).toBe(2)
})

describe('C25: evidence that a pod never touched the data', () => {
  const unknown = { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } }

  test('the final report of the kubelet, without a container', () => {
    expect(wasNeverUsed(pod({ state: unknown }, held))).toBe(true)
  })

  test('it was never assigned to a machine', () => {
    expect(wasNeverUsed(pod(undefined, held, {}))).toBe(true)
  })

  test.each<[string, Pod]>([
    ['it is still there', pod({ state: { waiting: { reason: 'ErrImagePull' } } })],
    ['it is terminating', pod({ state: unknown }, { ...held, deletionGracePeriodSeconds: 45 })],
    ['it was deleted by force, without a final report', pod({ state: { waiting: { reason: 'ErrImagePull' } } }, held)],
    ['it was assigned to a machine that reported nothing', pod(undefined, held)],
    ['it had a container', pod({ state: unknown, containerID: 'containerd://1' }, held)],
    ['it was restarted', pod({ state: unknown, restartCount: 1 }, held)],
    ['it ran before', pod({ state: unknown, lastState: { terminated: crashed } }, held)],
  ])('none: %s', (_, one) => {
    expect(wasNeverUsed(one)).toBe(false)
  })

  test('a pod that runs does not count as unused', () => {
    expect(seemsUnused(pod({ state: { running: {} } }))).toBe(false)
  })
})

test('its port is open if the kubelet says so, even after its machine no longer reports', () => {
  const lost = { type: 'Ready', status: 'False' }
  const { status, ...rest } = pod({ ready: true, state: { running: {} } })
  expect(isListening({ ...rest, status: { ...status, conditions: [lost] } })).toBe(true)
  expect(isListening(pod({ ready: false, state: { running: {} } }))).toBe(false)
  expect(isListening(pod(undefined))).toBe(false)
})

describe('whether a StatefulSet can still create a pod', () => {
  const set = (replicas: number, generation: number, observedGeneration?: number) => ({
    metadata: { name: 'n-a', generation },
    spec: { replicas },
    status: observedGeneration === undefined ? {} : { observedGeneration },
  })

  test('it can until its controller has seen that it was scaled to 0', () => {
    expect(isScaledDown(set(1, 1, 1))).toBe(false)
    expect(isScaledDown(set(0, 2))).toBe(false)
    expect(isScaledDown(set(0, 2, 1))).toBe(false)
    expect(isScaledDown(set(0, 2, 2))).toBe(true)
  })

  test('it cannot if it was created at 0 replicas', () => {
    expect(isScaledDown(set(0, 1))).toBe(true)
  })

  test('a cached StatefulSet says the same', () => {
    const stored = (observed: number) => {
      const { metadata, ...rest } = set(0, 2, observed)
      return { ...rest, metadata: { ...metadata, uid: 'u', resourceVersion: '1' } }
    }
    expect(isScaledDown(pickStatefulSet(stored(1)))).toBe(false)
    expect(isScaledDown(pickStatefulSet(stored(2)))).toBe(true)
  })
})
