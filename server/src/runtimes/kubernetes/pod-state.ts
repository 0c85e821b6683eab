import { lastWordsIn } from '../last-words.ts'
import { EVIDENCE } from './objects.ts'
import type { ContainerState, Event, Pod, SeenStatefulSet } from './types.ts'

/** What the status of a pod, the status of its StatefulSet and their events say. Pure. */

const containerIn = (pod: Pod) => pod.status?.containerStatuses?.[0]

export const isTerminating = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined
export const isRunning = (pod: Pod): boolean => containerIn(pod)?.state?.running !== undefined

/**
 * The kubelet can connect to the port. The pod's condition Ready cannot be used: once a machine no longer reports, the control
 * plane sets it to false, whatever the pod does.
 */
export const isListening = (pod: Pod): boolean => containerIn(pod)?.ready ?? false

/** The kubelet has confirmed that nothing of the pod runs any more; only our finalizer keeps its object. */
export const isHeld = ({ metadata }: Pod): boolean =>
  metadata.deletionTimestamp !== undefined &&
  metadata.deletionGracePeriodSeconds === 0 &&
  (metadata.finalizers?.includes(EVIDENCE) ?? false)

/** As far as the status shows, no container of the pod was ever created. The kubelet may not have reported one yet. */
export function seemsUnused(pod: Pod): boolean {
  const { restartCount = 0, containerID, state, lastState } = containerIn(pod) ?? {}
  return restartCount === 0 && !containerID && !state?.running && !state?.terminated?.startedAt && !lastState?.terminated
}

/**
 * Proof that the pod never touched the data: it was never assigned to a machine, or the kubelet's final report has no container. Without
 * that report, as after a forced deletion, there is no proof.
 */
export function wasNeverUsed(pod: Pod): boolean {
  if (!isHeld(pod) || !seemsUnused(pod)) return false
  return pod.spec.nodeName === undefined || containerIn(pod)?.state?.terminated !== undefined
}

/** How often its container has exited, including the last time if it has not been restarted yet. */
export function exitsOf(pod: Pod): number {
  const { restartCount = 0, state, lastState } = containerIn(pod) ?? {}
  const isBetween = state?.terminated?.startedAt || (state?.waiting && lastState?.terminated)
  return restartCount + (isBetween ? 1 : 0)
}

/** Why the container last exited; undefined if it never did. */
export function lastExit(pod: Pod): string | undefined {
  const { state, lastState } = containerIn(pod) ?? {}
  const ended = state?.terminated ?? lastState?.terminated
  return ended && exitReason(ended)
}

function exitReason({ exitCode, signal, reason, message }: NonNullable<ContainerState['terminated']>): string {
  if (reason === 'OOMKilled') return 'it ran out of memory (OOMKilled)'
  const how = signal ? `signal ${signal}` : `exit code ${exitCode}`
  return message ? `${lastWordsIn(message)} (${how})` : how
}

/** Reasons that are normal steps of a start. */
const ON_THE_WAY = new Set(['ContainerCreating', 'PodInitializing'])

/**
 * The StatefulSet is at 0 replicas, and its controller knows. Until then, the controller may replace a pod that is gone. A StatefulSet
 * that was created at 0 replicas and is still in generation 1 never had a pod.
 */
export const isScaledDown = ({ metadata, spec, status }: SeenStatefulSet): boolean =>
  spec.replicas === 0 && (status?.observedGeneration ?? 1) >= (metadata.generation ?? 1)

/** Why the pod has not started yet, as far as its own status shows. */
export function whyWaiting(pod: Pod): string | undefined {
  if (isTerminating(pod))
    return `its previous pod is still terminating${pod.spec.nodeName ? ` on ${pod.spec.nodeName}` : ''}, and two must never run at once`
  const unscheduled = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False')
  if (unscheduled) return sentence(unscheduled.reason, unscheduled.message)
  const waiting = containerIn(pod)?.state?.waiting
  if (waiting?.reason && !ON_THE_WAY.has(waiting.reason)) return sentence(waiting.reason, waiting.message)
  return pod.status?.reason && sentence(pod.status.reason, pod.status.message)
}

/** A pod refused by a quota, or a volume that cannot be mounted, is reported only in events. The latest event counts. */
export function whyInEvents(events: Event[]): string | undefined {
  const [latest] = events
    .filter(({ type, reason }) => type === 'Warning' && /^Failed/.test(reason ?? ''))
    .sort((a, b) => (b.lastTimestamp ?? '').localeCompare(a.lastTimestamp ?? ''))
  return latest && sentence(latest.reason, latest.message)
}

/** Shortened and without control characters, like the last words of a process. Without a final period, because more text follows. */
const sentence = (reason = '', message = ''): string => lastWordsIn(message ? `${reason}: ${message}` : reason).replace(/\.$/, '')
