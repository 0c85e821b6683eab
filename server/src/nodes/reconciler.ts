import { crashpoint } from '../platform/crashpoint.ts'
import type { Logger } from '../platform/log.ts'
import { type StepResult, stepProbe } from '../platform/probes.ts'
import { isStoreDown } from '../platform/store-down.ts'
import { sameVersion } from '../platform/versions.ts'
import type { Sql } from '../store/db.ts'
import type { NodeRow } from '../store/nodes/nodes.ts'
import { finishPurge } from '../store/nodes/purges.ts'
import { type Claimable, claimDueNodes, finishStep, holdsLease, type Outcome, postponeStep } from '../store/nodes/steps.ts'
import {
  couldNotStart,
  type Deadlines,
  type Decision,
  type Facts,
  type History,
  isGone,
  isOverdue,
  nextStep,
  versionForData,
  withProcess,
  withRestarts,
} from './node.ts'
import { specOf } from './node-spec.ts'
import { CannotStart, type NodeMaterial, type Observation, type Runtime, TryAgain } from './runtime.ts'

const AT_ONCE = 16
/** A node that has not answered after this long no longer counts towards AT_ONCE: waiting costs nothing, and must not delay others. */
const PATIENCE_MS = 200
/** Longer pauses are shortened at random by up to a half, so that the checks of many nodes spread out. */
const SPREAD_FROM_MS = 60_000
const SWEEP_MS = 1_000
const KEEP_COPIES_SECONDS = 7 * 86_400

type Acted = { history: History; ends: Outcome['updateEnds'] }

export type ReconcilerDeps = {
  sql: Sql
  runtime: Runtime
  host: string
  claims: Claimable
  deadlines: Omit<Deadlines, 'recheckMs'>
  materialOf: (nodeId: string) => Promise<NodeMaterial>
  /** Called before the node is stopped, which is the last chance to query it. */
  beforeStop: (nodeId: string) => Promise<void>
  log: Logger
}

/**
 * The loop: lease a due node, observe it, take one idempotent step, and record the observation with the lease epoch as a fence. It is
 * level-triggered: after a crash at any point, the next pass starts from the observed state. A lost wake-up only delays a node until the
 * next sweep.
 */
export class Reconciler {
  readonly #deps: ReconcilerDeps
  readonly #owner = crypto.randomUUID()
  readonly #busy = new Map<string, Promise<void>>()
  /** The ids in `#busy` of nodes that have not answered for a while. */
  readonly #waiting = new Set<string>()
  readonly #deadlines: Deadlines
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #looking: Promise<void> | undefined
  #again = false
  /** The last look found as many due nodes as there were free places. */
  #isMoreDue = false
  #stopped = false

  constructor(deps: ReconcilerDeps) {
    this.#deps = deps
    this.#deadlines = { ...deps.deadlines, recheckMs: deps.runtime.recheckMs }
  }

  /** Starts a pass now, because something was requested or has happened. */
  wake(): void {
    if (this.#stopped) return
    if (this.#looking) this.#again = true
    else
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined
        if (this.#again) this.wake()
      })
  }

  #wakeIn(milliseconds: number): void {
    const at = performance.now() + milliseconds
    if (this.#stopped || at >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timer = setTimeout(() => {
      this.#timerAt = Number.POSITIVE_INFINITY
      this.wake()
    }, milliseconds)
  }

  get #freePlaces(): number {
    return AT_ONCE - (this.#busy.size - this.#waiting.size)
  }

  async #look(): Promise<void> {
    this.#again = false
    try {
      const { sql, host, claims } = this.#deps
      const free = this.#freePlaces
      const by = { owner: this.#owner, busyWith: [...this.#busy.keys()], which: claims }
      const nodes = free > 0 ? await claimDueNodes(sql, host, by, free) : []
      for (const node of nodes) {
        const work: Promise<void> = stepProbe
          .run({}, () => this.#measured(node))
          .finally(() => {
            if (this.#busy.get(node.id) === work) this.#busy.delete(node.id)
            // Not for every free place, because each look is a query.
            if (this.#isMoreDue && this.#freePlaces >= AT_ONCE / 2) this.wake()
          })
        this.#busy.set(node.id, work)
      }
      if (free > 0) this.#isMoreDue = nodes.length === free
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'cannot query due nodes')
    }
    this.#wakeIn(SWEEP_MS)
  }

  async #measured(node: NodeRow): Promise<void> {
    const startedAtMs = performance.now()
    let result: StepResult = 'failed'
    try {
      result = await this.#reconcile(node)
    } catch (error) {
      this.#deps.log.warn({ err: error, nodeId: node.id }, 'reconciler step failed; will retry')
      await this.#postpone(node)
    }
    stepProbe.report({ result, seconds: (performance.now() - startedAtMs) / 1000 })
  }

  async #postpone(node: NodeRow): Promise<void> {
    try {
      await postponeStep(this.#deps.sql, node)
    } catch (error) {
      // Our own lease stays, so the node is taken again when the store is back.
      if (!isStoreDown(error)) this.#deps.log.warn({ err: error, nodeId: node.id }, 'cannot postpone a node')
    }
  }

  async #reconcile(claimed: NodeRow): Promise<StepResult> {
    const { sql, runtime, log } = this.#deps
    const { observed, hasFunds, balanceSat, process, restarts } = await this.#observe(claimed)
    if (claimed.purgingAt !== null && isGone(observed)) return this.#purge(claimed)
    const desiredVersion = versionForData(claimed.desiredVersion, claimed.history.version, process, runtime.versions)
    const node = { ...claimed, desiredVersion }
    if (desiredVersion !== claimed.desiredVersion)
      log.warn(
        { nodeId: node.id, version: desiredVersion },
        'the node last ran a version that the database did not record; keeping that version',
      )
    const facts = factsOf(node)
    const history = withRestarts(withProcess(node.history, process, node.nowMs), restarts, node.nowMs)
    let decision = nextStep(facts, observed, history, this.#deadlines, node.nowMs)
    crashpoint('reconciler: decided')
    let update: Acted
    try {
      if (decision.step === 'stop' && observed.phase === 'running') await this.#deps.beforeStop(node.id)
      update = await this.#act(node, decision)
    } catch (error) {
      if (decision.step !== 'start' || isStoreDown(error) || error instanceof TryAgain) throw error
      // Someone may be waiting for this operation. Without a recorded failure they would wait until it times out.
      this.#deps.log.warn({ err: error, nodeId: node.id }, 'cannot start node')
      const reason = error instanceof CannotStart ? error.message : 'the host could not prepare its data'
      decision = couldNotStart(facts, decision.history, reason)
      update = { history: decision.history, ends: updateEnd(decision) }
    }
    crashpoint('reconciler: acted')
    const outcome: Outcome = {
      phase: observed.phase,
      version: observed.phase === 'running' ? observed.version : node.version,
      desiredVersion: update.ends?.version ?? desiredVersion,
      history: update.history,
      recheckMs: spread(decision.recheckMs),
      hasFunds,
      balanceSat,
      shows: decision.shows,
      ends: decision.ends,
      updateEnds: update.ends,
    }
    const finished = await finishStep(sql, node, outcome)
    crashpoint('reconciler: recorded')
    this.#wakeIn(finished === 'recorded' ? Math.min(decision.recheckMs, SWEEP_MS) : 0)
    return finished
  }

  /** An observation takes seconds if the node does not answer. With hundreds of such nodes, the others would wait for minutes. */
  async #observe(node: NodeRow): Promise<Observation> {
    const timer = setTimeout(() => {
      if (this.#waiting.size >= this.#deps.runtime.silentAtOnce) return
      this.#waiting.add(node.id)
      this.wake()
    }, PATIENCE_MS)
    try {
      return await this.#deps.runtime.observe(specOf(node))
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(node.id)
    }
  }

  async #act(node: NodeRow, decision: Decision): Promise<Acted> {
    const { runtime, sql, materialOf } = this.#deps
    const { step, history } = decision
    const ends = updateEnd(decision)
    switch (step) {
      case 'none':
        return { history: await this.#forgetCopies(node, history), ends }
      case 'stop':
        await runtime.stop(specOf(node))
        return { history, ends }
      case 'kill':
        await runtime.kill(specOf(node))
        return { history, ends }
      case 'start': {
        const isOther = history.version !== null && !sameVersion(history.version, node.desiredVersion)
        // A new version may change the data irreversibly, so copy the data of the current version first.
        if (isOther && history.version && !(await runtime.keepCopy(specOf(node), history.version))) {
          if (isOverdue(factsOf(node), history, this.#deadlines, node.nowMs))
            throw new CannotStart('the copy of its data was not finished in time')
          return { history, ends }
        }
        await runtime.start(specOf(node), await materialOf(node.id), () => holdsLease(sql, node.id, node.leaseEpoch))
        const before = isOther ? { previousVersion: history.version, reached: false } : {}
        const started = {
          startedAtMs: node.nowMs,
          lastStartedAtMs: node.nowMs,
          run: node.desiredRun,
          version: node.desiredVersion,
        }
        return { history: { ...history, ...before, ...started }, ends }
      }
      case 'roll_back': {
        const version = history.previousVersion ?? node.desiredVersion
        await runtime.restoreCopy(specOf(node), version)
        const error = `Version ${node.desiredVersion} did not start. The node was rolled back to ${version} with the data from before the update.`
        return {
          history: { ...history, version, previousVersion: null, reached: true },
          ends: { status: 'failed', error, version },
        }
      }
    }
  }

  /** After the retention period. Remove the data first: once the sealed secrets are gone, nothing records that data is left. */
  async #purge(node: NodeRow): Promise<StepResult> {
    await this.#deps.runtime.remove(specOf(node))
    crashpoint('purge: nothing is left here')
    await finishPurge(this.#deps.sql, node)
    this.#deps.log.info({ nodeId: node.id }, 'purged a deleted node')
    return 'recorded'
  }

  /** After a week without problems, an update no longer needs a copy to roll back to. */
  async #forgetCopies(node: NodeRow, history: History): Promise<History> {
    if (history.previousVersion === null || node.updateStatus !== 'updated' || node.updateCompletedAt === null) return history
    if (node.nowMs / 1000 - node.updateCompletedAt < KEEP_COPIES_SECONDS) return history
    await this.#deps.runtime.removeCopies(specOf(node))
    return { ...history, previousVersion: null }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#looking
    await Promise.allSettled(this.#busy.values())
  }
}

const spread = (milliseconds: number): number =>
  milliseconds < SPREAD_FROM_MS ? milliseconds : milliseconds * (0.5 + Math.random() / 2)

function updateEnd({ updateEnds, shows }: Decision): Outcome['updateEnds'] {
  return updateEnds && { status: updateEnds, error: updateEnds === 'failed' ? (shows?.failureMessage ?? null) : null }
}

function factsOf(node: NodeRow): Facts {
  const { operation, operationDeadlineMs } = node
  return {
    lightningId: node.lightningId,
    status: node.status,
    desired: specOf(node).desired,
    operation: operation && operationDeadlineMs !== null ? { kind: operation, deadlineMs: operationDeadlineMs } : null,
    updating: node.updateStatus === 'updating',
  }
}
