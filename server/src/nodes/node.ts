/**
 * The node's state machine: desired state, observed state, history and time determine the next step. Pure. If the observed state is not
 * known, it is `unknown`, never a guess.
 */

import { sameVersion } from '../platform/versions.ts'
import type { DesiredState, History, OperationKind, Restarts, Status } from '../store/nodes/node-state.ts'

export type { History, OperationKind, Restarts, Status } from '../store/nodes/node-state.ts'

export type Desired = {
  state: DesiredState
  version: string
  /** Incremented by every requested restart. A process with an older run must be stopped. */
  run: number
}

export type InitialState = { status: Status; desired: Desired; history: Omit<History, 'wantedSinceMs'> }

/** The state of a new node. The database's clock sets `wantedSinceMs`. */
export function initialState(version: string): InitialState {
  return {
    status: 'provisioning',
    desired: { state: 'running', version, run: 1 },
    history: { exitsMs: [], startedAtMs: null, run: 0, version: null, reached: false, previousVersion: null },
  }
}

export type Observed =
  | { phase: 'absent' | 'stopping' | 'unknown' }
  | { phase: 'waiting_for_peer' }
  /** The process runs, but no connection from here reaches it. */
  | { phase: 'unreachable' }
  /** what: describes what is missing, if it is not the node's data directory. */
  | { phase: 'data_lost'; what?: string }
  /** reason: why it has not started yet, if the platform knows. */
  | { phase: 'starting'; reason?: string }
  /** The process exited, and the platform restarts it by itself. */
  | { phase: 'restarting'; reason: string }
  | { phase: 'running'; nodeId: string; version: string }
  /** The process has not responded for a while, and not because of the network. */
  | { phase: 'hung' }
  /** isUntouched: the data is proven to be exactly what it was before an update. Otherwise the node may have connected to its peer. */
  | { phase: 'exited'; reason: string; isUntouched: boolean }

export type Facts = {
  lightningId: string
  status: Status
  desired: Desired
  operation: { kind: OperationKind; deadlineMs: number } | null
  updating: boolean
}

/** roll_back: return to the version from before an update. Only possible if the update has not changed the data. */
export type Step = 'none' | 'start' | 'stop' | 'kill' | 'roll_back'

export type Decision = {
  step: Step
  /** Undefined: the displayed status does not change. */
  shows?: { status: Status; failureMessage: string | null }
  /** Set when the requested operation has ended. */
  ends?: 'done' | 'failed'
  /** Set when an update has ended. */
  updateEnds?: 'updated' | 'failed'
  history: History
  recheckMs: number
}

export const MINUTE_MS = 60_000
const CRASH_WINDOW_MS = 10 * MINUTE_MS
const CRASHES_TO_FAIL = 5
const EXITS_TO_ROLL_BACK = 3
const LONGEST_BACKOFF_MS = 300_000
const RETRY_START_MS = 10_000
const STEADY_RECHECK_MS = 5 * MINUTE_MS
/** Each attempt to connect takes seconds, and nodes that can be reached must not wait for it. */
const UNREACHABLE_RECHECK_MS = 10_000
const POLL_MS = 50
const SLOW_POLL_MS = 1_000
/** A starting process is polled fast for this long. */
const FAST_POLLING_MS = 10_000

export type Deadlines = {
  provisionMs: number
  /** After how long a healthy node is observed again. A hung process sends no notification. */
  recheckMs: number
}

/**
 * The run and version reported by the process take precedence over our records: the service may have died between starting the process and
 * recording that. If such a process has a new version, an update is in progress, and the recorded version is the one to roll back to.
 */
export function withProcess(history: History, process: { run: number; version: string } | undefined, nowMs: number): History {
  if (!process) return history
  const isOther = history.version !== null && !sameVersion(history.version, process.version)
  const before = isOther ? { previousVersion: history.version, reached: false } : {}
  const started = history.startedAtMs === null ? { startedAtMs: nowMs, lastStartedAtMs: nowMs } : {}
  return { ...history, ...before, ...started, run: process.run, version: process.version }
}

/**
 * The version that the node's data needs: usually the desired one. After an older database was restored, a process may report a
 * version that we neither recorded nor asked for. If that version is newer, or no longer in the catalog, no older one may run on
 * the data.
 */
export function versionForData(
  desired: string,
  recorded: string | null,
  process: { version: string } | undefined,
  catalogue: string[],
): string {
  if (!process?.version || [recorded, desired].some((version) => sameVersion(version, process.version))) return desired
  const place = (version: string): number => catalogue.findIndex((one) => sameVersion(one, version))
  const isOlder = place(process.version) !== -1 && place(process.version) < place(desired)
  return isOlder ? desired : process.version
}

/** Counts the exits after which the platform itself restarted the process since the last observation. */
export function withRestarts(history: History, restarts: Restarts | undefined, nowMs: number): History {
  if (!restarts) return history
  const counted = history.restarts?.of === restarts.of ? history.restarts.count : 0
  // More exits would not change the decision.
  const more = Math.min(Math.max(restarts.count - counted, 0), CRASHES_TO_FAIL)
  return { ...history, restarts, exitsMs: [...history.exitsMs, ...new Array<number>(more).fill(nowMs)] }
}

export function nextStep(facts: Facts, observed: Observed, history: History, deadlines: Deadlines, nowMs: number): Decision {
  const recent = { ...history, exitsMs: history.exitsMs.filter((atMs) => nowMs - atMs < CRASH_WINDOW_MS) }
  if (observed.phase === 'unknown') return { step: 'none', history: recent, recheckMs: SLOW_POLL_MS }
  return facts.desired.state === 'running'
    ? towardsRunning(facts, observed, recent, deadlines, nowMs)
    : towardsStopped(facts, observed, recent)
}

export function isGone({ phase }: Observed): boolean {
  return phase === 'absent' || phase === 'exited' || phase === 'data_lost'
}

function towardsStopped(facts: Facts, observed: Observed, history: History): Decision {
  if (!isGone(observed)) return { step: 'stop', history, recheckMs: POLL_MS }
  const shows = facts.desired.state === 'stopped' ? { status: 'stopped' as const, failureMessage: null } : undefined
  return {
    step: 'none',
    ...(shows ? { shows } : {}),
    ...(facts.operation ? { ends: 'done' as const } : {}),
    history: { ...history, startedAtMs: null },
    recheckMs: STEADY_RECHECK_MS,
  }
}

function towardsRunning(facts: Facts, observed: Observed, history: History, deadlines: Deadlines, nowMs: number): Decision {
  switch (observed.phase) {
    case 'data_lost':
      return failed(facts, history, whatIsLost(observed.what), STEADY_RECHECK_MS)
    case 'stopping':
      return { step: 'stop', history, recheckMs: POLL_MS }
    case 'hung':
      return { step: 'kill', history, recheckMs: POLL_MS }
    case 'running':
      return whenRunning(facts, observed, history, deadlines, nowMs)
    case 'starting':
    case 'waiting_for_peer':
    case 'unreachable':
      return whenComingUp(facts, observed, history, deadlines, nowMs)
    case 'restarting':
      return whenRestarting(facts, observed.reason, history, deadlines, nowMs)
    case 'absent':
    case 'exited':
    case 'unknown':
      return whenGone(facts, observed, history, deadlines, nowMs)
  }
}

const whatIsLost = (what = 'The node’s data is missing on this machine'): string =>
  `${what}. Bring back the same data: an older copy can lose the money in its channels. Otherwise, recover the funds with the recovery words.`

function isCurrent(facts: Facts, history: History): boolean {
  return history.run === facts.desired.run && sameVersion(history.version, facts.desired.version)
}

type Running = { nodeId: string; version: string }

function whenRunning(facts: Facts, observed: Running, history: History, deadlines: Deadlines, nowMs: number): Decision {
  if (observed.nodeId !== facts.lightningId) {
    const message =
      'The node’s API reports the identity of a different node, so the service does not use it. ' +
      'Its data may be that of another node, or another program may have taken its port.'
    return { ...failed(facts, history, message, STEADY_RECHECK_MS), step: 'stop' }
  }
  if (!isCurrent(facts, history)) return { step: 'stop', history, recheckMs: POLL_MS }
  const long = history.startedAtMs !== null && nowMs - history.startedAtMs > CRASH_WINDOW_MS
  return {
    step: 'none',
    shows: { status: 'ready', failureMessage: null },
    ...(facts.operation ? { ends: 'done' as const } : {}),
    ...(facts.updating ? { updateEnds: 'updated' as const } : {}),
    history: { ...history, reached: true, exitsMs: long ? [] : history.exitsMs },
    recheckMs: deadlines.recheckMs,
  }
}

type ComingUp = { phase: 'starting' | 'waiting_for_peer' | 'unreachable'; reason?: string }

function whenComingUp(facts: Facts, observed: ComingUp, history: History, deadlines: Deadlines, nowMs: number): Decision {
  if (!isCurrent(facts, history)) return { step: 'stop', history, recheckMs: POLL_MS }
  const waitedMs = nowMs - history.wantedSinceMs
  const slowMs = observed.phase === 'unreachable' ? UNREACHABLE_RECHECK_MS : SLOW_POLL_MS
  const recheckMs = waitedMs < FAST_POLLING_MS ? POLL_MS : slowMs
  if (!isOverdue(facts, history, deadlines, nowMs)) return { step: 'none', history, recheckMs }
  // If the new version hangs before it waits for its peer, the update has failed. While it waits for its peer, is unreachable or has just
  // started, that is not certain, so it is left alone.
  const isYoung = nowMs - (history.startedAtMs ?? nowMs) < FAST_POLLING_MS
  if (canRollBack(facts, history)) {
    if (observed.phase === 'starting') return { step: isYoung ? 'none' : 'kill', history, recheckMs: SLOW_POLL_MS }
    // The process keeps waiting, but the operation ends, so that the node can be stopped or deleted again.
    return { step: 'none', ...(facts.operation ? { ends: 'failed' as const } : {}), history, recheckMs: slowMs }
  }
  return failed(facts, history, whyNotUp(observed), slowMs)
}

function whyNotUp({ phase, reason }: ComingUp): string {
  if (phase === 'waiting_for_peer')
    return 'The node is running but has not reached its Lightning peer yet. It becomes ready automatically when the peer responds.'
  if (phase === 'unreachable')
    return 'The node is running, but the service cannot reach it over the network. It becomes ready automatically when it can be reached.'
  return reason === undefined
    ? 'The node’s API did not respond in time. The service keeps waiting; if this persists, stop the node and start it again.'
    : `The node has not started yet: ${reason}. The service keeps trying.`
}

/** The platform decides when the process starts again. The process has run, so it may have connected to its peer. */
function whenRestarting(facts: Facts, reason: string, before: History, deadlines: Deadlines, nowMs: number): Decision {
  const history = { ...before, reached: true }
  if (!isCurrent(facts, history)) return { step: 'stop', history, recheckMs: POLL_MS }
  const isFailure = hasFailed(facts, history, deadlines, nowMs)
  if (isFailure) return failed(facts, history, exitedMessage(facts, history, reason), SLOW_POLL_MS)
  return { step: 'none', history, recheckMs: SLOW_POLL_MS }
}

function hasFailed(facts: Facts, history: History, deadlines: Deadlines, nowMs: number): boolean {
  const exits = history.exitsMs.length
  return exits >= CRASHES_TO_FAIL || (exits > 0 && isOverdue(facts, history, deadlines, nowMs))
}

function exitedMessage(facts: Facts, { exitsMs }: History, reason: string): string {
  const times = exitsMs.length === 1 ? 'once' : `${exitsMs.length} times`
  const noWayBack = facts.updating
    ? ` Version ${facts.desired.version} may have changed the channel data, so the node is not rolled back: older channel data can lose funds. Update to a version that works.`
    : ''
  return `The node exited unexpectedly (${times} in ten minutes). Last reason: ${reason}. The service keeps restarting it.${noWayBack}`
}

export function isOverdue(facts: Facts, history: History, deadlines: Deadlines, nowMs: number): boolean {
  if (facts.operation) return nowMs >= facts.operation.deadlineMs
  return facts.status === 'provisioning' && nowMs - history.wantedSinceMs >= deadlines.provisionMs
}

/** Nothing runs. Before the first start that is expected; later it is an unexpected exit. */
function whenGone(facts: Facts, observed: Observed, history: History, deadlines: Deadlines, nowMs: number): Decision {
  const wasOurs = history.startedAtMs !== null && isCurrent(facts, history)
  const exitsMs = wasOurs ? [...history.exitsMs, nowMs] : history.exitsMs
  const isUntouched = observed.phase === 'exited' && observed.isUntouched
  const reached = history.reached || (observed.phase === 'exited' && !isUntouched)
  const after: History = { ...history, exitsMs, reached, startedAtMs: null }
  const overdue = isOverdue(facts, after, deadlines, nowMs)
  if (isUntouched && canRollBack(facts, after) && (overdue || exitsMs.length >= EXITS_TO_ROLL_BACK)) {
    // End an overdue update here. Otherwise the restarted process would be judged by a deadline that has already passed.
    const ends = overdue && facts.operation?.kind === 'update' ? { ends: 'failed' as const } : {}
    return { step: 'roll_back', updateEnds: 'failed', ...ends, history: { ...after, exitsMs: [] }, recheckMs: 0 }
  }
  const reason = observed.phase === 'exited' ? observed.reason : 'its process is gone'
  if (hasFailed(facts, after, deadlines, nowMs))
    return dueToStart(failed(facts, after, exitedMessage(facts, after, reason), 0), exitsMs, nowMs)
  return dueToStart({ step: 'none', history: after, recheckMs: 0 }, exitsMs, nowMs)
}

/** Nothing exited; the start itself failed. Report that immediately and retry automatically. */
export function couldNotStart(facts: Facts, history: History, reason: string): Decision {
  return failed(facts, history, `The node cannot be started: ${reason}. The service keeps trying.`, RETRY_START_MS)
}

function canRollBack(facts: Facts, history: History): boolean {
  return (
    facts.updating && !history.reached && history.previousVersion !== null && sameVersion(history.version, facts.desired.version)
  )
}

/** Waits 1, 2, 4 … 300 s, depending on the number of exits in the last ten minutes. Starts immediately if there were none. */
function dueToStart(decision: Decision, exitsMs: number[], nowMs: number): Decision {
  const last = exitsMs.at(-1)
  const dueMs = last === undefined ? nowMs : last + Math.min(1_000 * 2 ** (exitsMs.length - 1), LONGEST_BACKOFF_MS)
  return dueMs <= nowMs ? { ...decision, step: 'start', recheckMs: POLL_MS } : { ...decision, recheckMs: dueMs - nowMs }
}

function failed(facts: Facts, history: History, failureMessage: string, recheckMs: number): Decision {
  return {
    step: 'none',
    shows: { status: 'failed', failureMessage },
    ...(facts.operation ? { ends: 'failed' as const } : {}),
    ...(facts.updating ? { updateEnds: 'failed' as const } : {}),
    history,
    recheckMs,
  }
}
