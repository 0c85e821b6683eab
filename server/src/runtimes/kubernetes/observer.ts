import { type NodeSpec, type Observation, TryAgain } from '../../nodes/runtime.ts'
import { sameVersion } from '../../platform/versions.ts'
import { HealthCheck } from '../health-check.ts'
import type { NodeObjects } from './node-objects.ts'
import { nodeName, PATHS, PORT, podName, RESTORED, RUN, VERSION } from './objects.ts'
import {
  exitsOf,
  isHeld,
  isListening,
  isRunning,
  isScaledDown,
  isTerminating,
  lastExit,
  wasNeverUsed,
  whyInEvents,
  whyWaiting,
} from './pod-state.ts'
import type { Event, Pod, Resource, SeenNode, SeenStatefulSet, Stored } from './types.ts'

/** If a pod has not started after this long and its status gives no reason, its events are requested. */
const EVENTS_AFTER_MS = 5_000
/** While nothing changes, a node whose pod has not started is read again after this long. */
const PENDING_MS = 5_000

type Observed = Observation['observed']
/** What a live read showed of a node whose pod had not started, and the versions of the objects that were read. */
type Pending = { versions: string; readAtMs: number; observed: Observed }

export type ObserverOptions = {
  objects: NodeObjects
  view: (nodeId: string) => SeenNode | undefined
  passwordOf: (nodeId: string) => Promise<string>
}

/**
 * Observes nodes. The cache is enough to see that a node is as it should be, which costs the API server nothing. Anything that the service
 * may have to act on is read again from the API server, because a cache may be out of date.
 */
export class Observer {
  readonly #options: ObserverOptions
  readonly #health: HealthCheck
  readonly #pending = new Map<string, Pending>()

  constructor(options: ObserverOptions) {
    this.#options = options
    this.#health = new HealthCheck(options.passwordOf)
  }

  async observe(node: NodeSpec): Promise<Observation> {
    const { objects, view } = this.#options
    try {
      const cached = view(node.id)
      if (cached) {
        const observation = await this.#look(node, cached, async () => this.#rememberedPending(node, cached))
        if (isCalm(node, observation)) return observation
      }
      const live = await objects.read(node.id)
      return await this.#look(node, live, () => this.#readPending(node, live))
    } catch (error) {
      // The watch logs that the API server does not answer; once for all nodes is enough.
      if (error instanceof TryAgain) return { observed: { phase: 'unknown' } }
      throw error
    }
  }

  async #look(node: NodeSpec, seen: SeenNode, pending: () => Promise<Observed>): Promise<Observation> {
    const { statefulSet, pod, claim, claimName } = seen
    const wasStarted = statefulSet !== undefined || node.history.version !== null
    if (wasStarted && (!claim || claim.status?.phase === 'Lost'))
      return { observed: { phase: 'data_lost', what: `The node’s volume claim ${claimName} or its volume is missing` } }
    if (!pod || !isRunning(pod)) this.#health.forget(node.id)
    if (!statefulSet) {
      if (!wasStarted) return { observed: { phase: 'absent' } }
      return { observed: { phase: 'exited', reason: 'its StatefulSet was deleted', isUntouched: false } }
    }
    if (statefulSet.spec.replicas === 0) {
      this.#pending.delete(node.id)
      return whenStopped(node, statefulSet, pod)
    }
    const process = processOf(statefulSet)
    const isOurs = pod?.metadata.ownerReferences?.[0]?.uid === statefulSet.metadata.uid
    if (!pod || !isOurs) return { observed: await pending(), process }
    const restarts = { of: pod.metadata.uid, count: exitsOf(pod) }
    const host = pod.status?.podIP
    if (isTerminating(pod) || host === undefined || (!isRunning(pod) && restarts.count === 0))
      return { observed: await pending(), process, restarts }
    this.#pending.delete(node.id)
    if (!isRunning(pod)) return { observed: { phase: 'restarting', reason: lastExit(pod) ?? 'unknown' }, process, restarts }
    return { ...(await this.#health.ask(node, { host, port: PORT }, isListening(pod))), process, restarts }
  }

  /** Unknown if the cache differs from what was last read live, in either direction, or if that was too long ago. */
  #rememberedPending(node: NodeSpec, cached: SeenNode): Observed {
    const last = this.#pending.get(node.id)
    const isValid = last?.versions === versionsOf(cached) && performance.now() - last.readAtMs < PENDING_MS
    return isValid ? last.observed : { phase: 'unknown' }
  }

  async #readPending(node: NodeSpec, live: SeenNode): Promise<Observed> {
    const reason = await this.#whyPending(node, live.pod)
    const observed: Observed = reason === undefined ? { phase: 'starting' } : { phase: 'starting', reason }
    this.#pending.set(node.id, { versions: versionsOf(live), readAtMs: performance.now(), observed })
    return observed
  }

  async #whyPending(node: NodeSpec, pod: Stored<Pod> | undefined): Promise<string | undefined> {
    const reason = pod && whyWaiting(pod)
    if (reason !== undefined || node.nowMs - (node.history.startedAtMs ?? node.nowMs) < EVENTS_AFTER_MS) return reason
    const { client, place } = this.#options.objects
    const about = pod ? podName(node.id) : nodeName(node.id)
    const { items } = await client.list<Event>(PATHS.events(place.namespace), { fieldSelector: `involvedObject.name=${about}` })
    return whyInEvents(items)
  }
}

/**
 * Whether the service will do nothing but look again later, whatever else it knows about the node. While an update can still be
 * rolled back, even a node that is only starting may have to be killed. An older count of exits must not be recorded: some exits
 * would then count twice.
 */
function isCalm({ desired, history, hasOperation }: NodeSpec, { observed, process, restarts }: Observation): boolean {
  if (desired.state !== 'running') return observed.phase === 'absent' && !hasOperation
  const isCurrent = process?.run === desired.run && sameVersion(process.version, desired.version)
  const canRollBack = history.previousVersion !== null && !history.reached
  const counted = history.restarts
  const isOlder = counted && restarts && (restarts.of !== counted.of || restarts.count < counted.count)
  if (!isCurrent || canRollBack || isOlder) return false
  return ['running', 'starting', 'waiting_for_peer', 'unreachable', 'restarting'].includes(observed.phase)
}

/** For a StatefulSet with 0 replicas: nothing should be running. */
function whenStopped(node: NodeSpec, statefulSet: Stored<SeenStatefulSet>, pod: Stored<Pod> | undefined): Observation {
  const { startedAtMs, exitsMs, run, version, previousVersion } = node.history
  const process = processOf(statefulSet)
  const restored = statefulSet.metadata.annotations?.[RESTORED]
  const wasRolledBack = restored !== undefined && sameVersion(version, restored)
  // The object of a pod that never ran is kept for as long as it may be needed to roll back.
  if (pod ? !(isHeld(pod) && node.desired.state === 'running') : !isScaledDown(statefulSet))
    return { observed: { phase: 'stopping' }, ...(wasRolledBack ? {} : { process }) }
  const isNew = !wasRolledBack && !(process.run === run && sameVersion(version, process.version))
  // Keep reporting an exit until the next start, so that its reason stays visible.
  if (startedAtMs === null && exitsMs.length === 0 && !isNew && !pod) return { observed: { phase: 'absent' } }
  const before = isNew && !sameVersion(version, process.version) ? version : previousVersion
  const isUntouched = before !== null && (restored === before || (pod !== undefined && wasNeverUsed(pod)))
  const reason = (pod && (lastExit(pod) ?? whyWaiting(pod))) ?? 'it was stopped'
  return { observed: { phase: 'exited', reason, isUntouched }, ...(isNew ? { process } : {}) }
}

function processOf({ metadata }: Stored<Resource>): { run: number; version: string } {
  return { run: Number(metadata.annotations?.[RUN] ?? 0), version: metadata.annotations?.[VERSION] ?? '' }
}

const versionsOf = ({ statefulSet, pod }: SeenNode): string =>
  `${statefulSet?.metadata.resourceVersion} ${pod?.metadata.resourceVersion}`
