/** A node and its life: what was asked, what is, what happened and the time give the next step. PURE; unknown is a state, never a guess. */

import { sameVersion } from '../platform/versions.ts'
import type { DesiredState, History, OperationKind, Status } from '../store/nodes/node-state.ts'

export type { History, OperationKind, Status } from '../store/nodes/node-state.ts'

export type Desired = {
  state: DesiredState
  version: string
  /** Grows with every restart that was asked for: a process of an older run has to go. */
  run: number
}

export type InitialState = { status: Status; desired: Desired; history: Omit<History, 'wantedSinceMs'> }

/** How a node begins. The database's clock says since when it is wanted. */
export function initialState(version: string): InitialState {
  return {
    status: 'provisioning',
    desired: { state: 'running', version, run: 1 },
    history: { exitsMs: [], startedAtMs: null, run: 0, version: null, reached: false, previousVersion: null },
  }
}

export type Observed =
  | { phase: 'absent' | 'starting' | 'waiting_for_peer' | 'stopping' | 'data_lost' | 'unknown' }
  | { phase: 'running'; nodeId: string; version: string }
  /** Its port takes connections, its API has not answered for long. */
  | { phase: 'hung' }
  /** isUntouched: its data was shown to be exactly what it was before an update. Without that it may have connected to its peer. */
  | { phase: 'exited'; reason: string; isUntouched: boolean }

export type Facts = {
  lightningId: string
  status: Status
  desired: Desired
  operation: { kind: OperationKind; deadlineMs: number } | null
  updating: boolean
}

/** roll_back: to the version from before an update that left the data as it was. */
export type Step = 'none' | 'start' | 'stop' | 'kill' | 'roll_back'

export type Decision = {
  step: Step
  /** Undefined: keeps what it shows. */
  shows?: { status: Status; failureMessage: string | null }
  /** The operation that was asked for has ended. */
  ends?: 'done' | 'failed'
  /** An update has ended. */
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
/** A process that hangs tells nobody. */
const RUNNING_RECHECK_MS = 30_000
const POLL_MS = 50
const SLOW_POLL_MS = 1_000
/** After this the fast polling of a start is over. */
const FAST_POLLING_MS = 10_000

export type Deadlines = { provisionMs: number }

/**
 * What the process itself says of its run and version goes before what we wrote down: we may have died between starting it and
 * writing that. A version that was started so is an update under way, with the one of before to go back to.
 */
export function withProcess(history: History, process: { run: number; version: string } | undefined, nowMs: number): History {
  if (!process) return history
  const isOther = history.version !== null && !sameVersion(history.version, process.version)
  const before = isOther ? { previousVersion: history.version, reached: false } : {}
  return { ...history, ...before, run: process.run, version: process.version, startedAtMs: history.startedAtMs ?? nowMs }
}

export function nextStep(facts: Facts, observed: Observed, history: History, deadlines: Deadlines, nowMs: number): Decision {
  const recent = { ...history, exitsMs: history.exitsMs.filter((atMs) => nowMs - atMs < CRASH_WINDOW_MS) }
  if (observed.phase === 'unknown') return { step: 'none', history: recent, recheckMs: SLOW_POLL_MS }
  return facts.desired.state === 'running'
    ? towardsRunning(facts, observed, recent, deadlines, nowMs)
    : towardsStopped(facts, observed, recent)
}

/** No process of it runs. */
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
      return failed(
        facts,
        history,
        'The node’s data is missing on this machine. Restore it from a backup, or delete the node.',
        STEADY_RECHECK_MS,
      )
    case 'stopping':
      return { step: 'stop', history, recheckMs: POLL_MS }
    case 'hung':
      return { step: 'kill', history, recheckMs: POLL_MS }
    case 'running':
      return whenRunning(facts, observed, history, nowMs)
    case 'starting':
    case 'waiting_for_peer':
      return whenComingUp(facts, observed.phase, history, deadlines, nowMs)
    case 'absent':
    case 'exited':
    case 'unknown':
      return whenGone(facts, observed, history, deadlines, nowMs)
  }
}

function isCurrent(facts: Facts, history: History): boolean {
  return history.run === facts.desired.run && sameVersion(history.version, facts.desired.version)
}

function whenRunning(facts: Facts, observed: { nodeId: string; version: string }, history: History, nowMs: number): Decision {
  if (observed.nodeId !== facts.lightningId) {
    const message = 'The node’s API reports the identity of a different node. Its data directory contains a different seed.'
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
    recheckMs: RUNNING_RECHECK_MS,
  }
}

function whenComingUp(
  facts: Facts,
  phase: 'starting' | 'waiting_for_peer',
  history: History,
  deadlines: Deadlines,
  nowMs: number,
): Decision {
  if (!isCurrent(facts, history)) return { step: 'stop', history, recheckMs: POLL_MS }
  const waitedMs = nowMs - history.wantedSinceMs
  const recheckMs = waitedMs < FAST_POLLING_MS ? POLL_MS : SLOW_POLL_MS
  if (!isOverdue(facts, history, deadlines, nowMs)) return { step: 'none', history, recheckMs }
  // An update that hangs before its peer is one that failed; without a peer nobody can tell, so it is left alone.
  // Nor can anybody of a process that has only just begun.
  const isYoung = nowMs - (history.startedAtMs ?? nowMs) < FAST_POLLING_MS
  if (canRollBack(facts, history)) {
    if (phase === 'starting') return { step: isYoung ? 'none' : 'kill', history, recheckMs: SLOW_POLL_MS }
    // It goes on waiting, but nobody has to wait with it: the node can be stopped and deleted again.
    return { step: 'none', ...(facts.operation ? { ends: 'failed' as const } : {}), history, recheckMs: SLOW_POLL_MS }
  }
  const message =
    phase === 'waiting_for_peer'
      ? 'The node is running but has not reached its Lightning peer yet. It becomes ready automatically when the peer responds.'
      : 'The node’s process is running, but its API did not respond in time. The service keeps waiting; restart the node if this persists.'
  return failed(facts, history, message, SLOW_POLL_MS)
}

function isOverdue(facts: Facts, history: History, deadlines: Deadlines, nowMs: number): boolean {
  if (facts.operation) return nowMs >= facts.operation.deadlineMs
  return facts.status === 'provisioning' && nowMs - history.wantedSinceMs >= deadlines.provisionMs
}

/** Nothing runs. The first time that is no surprise; afterwards it is an exit that nobody asked for. */
function whenGone(facts: Facts, observed: Observed, history: History, deadlines: Deadlines, nowMs: number): Decision {
  const wasOurs = history.startedAtMs !== null && isCurrent(facts, history)
  const exitsMs = wasOurs ? [...history.exitsMs, nowMs] : history.exitsMs
  const isUntouched = observed.phase === 'exited' && observed.isUntouched
  const reached = history.reached || (observed.phase === 'exited' && !isUntouched)
  const after: History = { ...history, exitsMs, reached, startedAtMs: null }
  const overdue = isOverdue(facts, after, deadlines, nowMs)
  if (isUntouched && canRollBack(facts, after) && (overdue || exitsMs.length >= EXITS_TO_ROLL_BACK)) {
    // Past its deadline it ends here: what runs again afterwards would be judged by a time that is over.
    const ends = overdue && facts.operation?.kind === 'update' ? { ends: 'failed' as const } : {}
    return { step: 'roll_back', updateEnds: 'failed', ...ends, history: { ...after, exitsMs: [] }, recheckMs: 0 }
  }
  const reason = observed.phase === 'exited' ? observed.reason : 'its process is gone'
  if (exitsMs.length >= CRASHES_TO_FAIL || (overdue && exitsMs.length > 0)) {
    const times = exitsMs.length === 1 ? 'once' : `${exitsMs.length} times`
    const noWayBack = facts.updating
      ? ` Version ${facts.desired.version} may have changed the channel data, so the node is not rolled back: older channel data can lose funds. Update to a version that works.`
      : ''
    const message = `The node exited unexpectedly (${times} in ten minutes). Last reason: ${reason}. The service keeps restarting it.${noWayBack}`
    const decision = failed(facts, after, message, 0)
    return dueToStart(decision, exitsMs, nowMs)
  }
  return dueToStart({ step: 'none', history: after, recheckMs: 0 }, exitsMs, nowMs)
}

/** Nothing has died, it could not even be tried: that is said at once, and tried again by itself. */
export function couldNotStart(facts: Facts, history: History, reason: string): Decision {
  return failed(facts, history, `The node cannot be started: ${reason}. The service keeps trying.`, RETRY_START_MS)
}

function canRollBack(facts: Facts, history: History): boolean {
  return (
    facts.updating && !history.reached && history.previousVersion !== null && sameVersion(history.version, facts.desired.version)
  )
}

/** 1, 2, 4 … 300 s after the exits of the last ten minutes; at once when there were none. */
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
