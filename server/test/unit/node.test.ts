import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Decision,
  type Facts,
  type History,
  MINUTE_MS,
  nextStep,
  type Observed,
  versionForData,
  withProcess,
  withRestarts,
} from '../../src/nodes/node.ts'
import { sameVersion } from '../../src/platform/versions.ts'

const NOW = 1_800_000_000_000
const OURS = '02'.padEnd(66, 'a')
const THEIRS = '03'.padEnd(66, 'b')
const DEADLINES = { provisionMs: 300_000, recheckMs: 30_000 }

const running: Observed = { phase: 'running', nodeId: OURS, version: '0.8.0-sandbox' }
const stranger: Observed = { phase: 'running', nodeId: THEIRS, version: '0.8.0-sandbox' }
const exited: Observed = { phase: 'exited', reason: 'out of luck', isUntouched: true }
/** There is no proof that the process left the data untouched. */
const exitedUnproved: Observed = { phase: 'exited', reason: 'out of luck', isUntouched: false }

const restarting: Observed = { phase: 'restarting', reason: 'out of luck' }

type Given = {
  state?: Facts['desired']['state']
  version?: string
  run?: number
  status?: Facts['status']
  operation?: Facts['operation']
  updating?: boolean
  history?: Partial<History>
}

/** By default, decides about a ready node of version 0.8.0 whose first run started a second ago. */
function decide(observed: Observed, given: Given = {}): Decision {
  const { state = 'running', version = '0.8.0', run = 1, status = 'ready', operation = null, updating = false } = given
  const facts: Facts = { lightningId: OURS, status, desired: { state, version, run }, operation, updating }
  return nextStep(facts, observed, history(given.history), DEADLINES, NOW)
}

function history(change: Partial<History> = {}): History {
  return {
    wantedSinceMs: NOW - 1_000,
    exitsMs: [],
    startedAtMs: NOW - 1_000,
    run: 1,
    version: '0.8.0',
    reached: true,
    previousVersion: null,
    ...change,
  }
}

const soon = (kind: NonNullable<Facts['operation']>['kind']) => ({ kind, deadlineMs: NOW + 60_000 })
const late = (kind: NonNullable<Facts['operation']>['kind']) => ({ kind, deadlineMs: NOW - 1 })
const never: Partial<History> = { startedAtMs: null, run: 0, version: null, reached: false }
const unreached: Partial<History> = { version: '0.9.0', reached: false, previousVersion: '0.8.0' }
const update: Given = { version: '0.9.0', updating: true, operation: soon('update'), history: unreached }
const overdueUpdate: Given = { ...update, operation: late('update') }
const agesAgo = NOW - 301_000

describe('by table', () => {
  test.each<[string, Observed, Given, Partial<Decision> & { message?: RegExp }]>([
    // A node that was just created
    ['new: start', { phase: 'absent' }, { status: 'provisioning', history: never }, { step: 'start', recheckMs: 50 }],
    ['new, state unknown: not started', { phase: 'unknown' }, { status: 'provisioning', history: never }, { step: 'none' }],
    ['comes up: wait', { phase: 'starting' }, { status: 'provisioning' }, { step: 'none', recheckMs: 50 }],
    [
      'comes up slowly: checked less often',
      { phase: 'starting' },
      { status: 'provisioning', history: { wantedSinceMs: NOW - 11_000 } },
      { step: 'none', recheckMs: 1_000 },
    ],
    ['answers: ready', running, { status: 'provisioning' }, { step: 'none', shows: { status: 'ready', failureMessage: null } }],
    [
      'provisioning deadline, waiting for the peer: failed, left alone',
      { phase: 'waiting_for_peer' },
      { status: 'provisioning', history: { wantedSinceMs: agesAgo } },
      { step: 'none', message: /peer.*automatically/, recheckMs: 1_000 },
    ],
    [
      'provisioning deadline, cannot be reached: failed, left alone',
      { phase: 'unreachable' },
      { status: 'provisioning', history: { wantedSinceMs: agesAgo } },
      { step: 'none', message: /over the network.*automatically/, recheckMs: 10_000 },
    ],
    [
      'ready, cannot be reached: shown as before, left alone',
      { phase: 'unreachable' },
      { history: { wantedSinceMs: agesAgo } },
      { step: 'none', recheckMs: 10_000 },
    ],
    [
      'provisioning deadline, no answer: failed, left alone',
      { phase: 'starting' },
      { status: 'provisioning', history: { wantedSinceMs: agesAgo } },
      { step: 'none', message: /did not respond in time/ },
    ],
    [
      'provisioning deadline, exiting: failed, retried',
      exited,
      { status: 'provisioning', history: { wantedSinceMs: agesAgo } },
      { step: 'none', message: /out of luck/, recheckMs: 1_000 },
    ],
    [
      'provisioning deadline, the platform knows why it does not start: failed with that reason, left alone',
      { phase: 'starting', reason: 'Unschedulable: no machine is large enough' },
      { status: 'provisioning', history: { wantedSinceMs: agesAgo } },
      { step: 'none', message: /has not started yet: Unschedulable: no machine is large enough\./, recheckMs: 1_000 },
    ],
    [
      'C19: the platform restarts it: shown as before',
      restarting,
      { history: { exitsMs: [NOW] } },
      { step: 'none', recheckMs: 1_000 },
    ],
    [
      'C19: the platform restarted it for the fifth time in ten minutes: failed, left to the platform',
      restarting,
      { history: { exitsMs: [4, 3, 2, 1, 0].map((minutes) => NOW - minutes * MINUTE_MS) } },
      { step: 'none', message: /5 times.*out of luck.*keeps restarting/, recheckMs: 1_000 },
    ],
    [
      'start: the platform still restarts it at the deadline: failed',
      restarting,
      { status: 'stopped', operation: late('start'), history: { exitsMs: [NOW] } },
      { step: 'none', ends: 'failed', message: /once.*out of luck/ },
    ],
    [
      'restart: the old run is stopped, even while the platform restarts it',
      restarting,
      { run: 2, operation: soon('restart') },
      { step: 'stop' },
    ],
    ['stop: the platform restarts it', restarting, { state: 'stopped', operation: soon('stop') }, { step: 'stop' }],
    [
      'C25: update: the new version ran and exited: not rolled back',
      restarting,
      { ...overdueUpdate, history: { ...unreached, exitsMs: [NOW, NOW, NOW] } },
      { step: 'none', updateEnds: 'failed', ends: 'failed', message: /not rolled back/ },
    ],
    ['a failed node that responds: ready', running, { status: 'failed' }, { shows: { status: 'ready', failureMessage: null } }],

    // A ready node
    ['runs: nothing to do until its runtime wants it to be asked', running, {}, { step: 'none', recheckMs: DEADLINES.recheckMs }],
    ['hangs: kill', { phase: 'hung' }, {}, { step: 'kill' }],
    ['a ready node has no deadline', { phase: 'starting' }, { history: { wantedSinceMs: agesAgo } }, { step: 'none' }],
    ['died: started again after a second, shown as before', exited, {}, { step: 'none', recheckMs: 1_000 }],
    [
      'died a second ago: start',
      { phase: 'absent' },
      { history: { startedAtMs: null, exitsMs: [NOW - 1_000] } },
      { step: 'start' },
    ],
    [
      'fifth death in ten minutes: failed, retried after 16 s',
      exited,
      { history: { exitsMs: [4, 3, 2, 1].map((minutes) => NOW - minutes * MINUTE_MS) } },
      { step: 'none', message: /5 times.*out of luck.*keeps restarting/, recheckMs: 16_000 },
    ],
    [
      'deaths more than ten minutes ago do not count',
      exited,
      { history: { exitsMs: [14, 13, 12, 11].map((minutes) => NOW - minutes * MINUTE_MS) } },
      { step: 'none', recheckMs: 1_000 },
    ],
    ['its data is gone: failed, never started', { phase: 'data_lost' }, {}, { step: 'none', message: /missing on this machine/ }],
    [
      'its volume is gone: failed, with what is missing',
      { phase: 'data_lost', what: 'The claim n-a is missing' },
      {},
      { step: 'none', message: /^The claim n-a is missing\. Bring back the same data/ },
    ],
    ['another node answers: failed, stopped', stranger, {}, { step: 'stop', message: /identity of a different node/ }],

    // Operations
    ['stop: running', running, { state: 'stopped', operation: soon('stop') }, { step: 'stop' }],
    ['stop: stopping', { phase: 'stopping' }, { state: 'stopped', operation: soon('stop') }, { step: 'stop', recheckMs: 50 }],
    [
      'stop: gone',
      exited,
      { state: 'stopped', operation: soon('stop') },
      { step: 'none', shows: { status: 'stopped', failureMessage: null }, ends: 'done' },
    ],
    [
      'stop: failed, nothing runs',
      { phase: 'absent' },
      { state: 'stopped', status: 'failed', operation: soon('stop') },
      { step: 'none', shows: { status: 'stopped', failureMessage: null }, ends: 'done' },
    ],
    [
      'delete: waiting for the peer',
      { phase: 'waiting_for_peer' },
      { state: 'deleted', operation: soon('delete') },
      { step: 'stop' },
    ],
    ['delete: gone', exited, { state: 'deleted', operation: soon('delete') }, { step: 'none', ends: 'done' }],
    ['restart: the old run is stopped', running, { run: 2, operation: soon('restart') }, { step: 'stop' }],
    [
      'restart: the old run is stopped, even while it comes up',
      { phase: 'starting' },
      { run: 2, operation: soon('restart') },
      { step: 'stop' },
    ],
    ['restart: a requested exit does not count as a death', exited, { run: 2, operation: soon('restart') }, { step: 'start' }],
    ['restart: the new run answers', running, { operation: soon('restart') }, { step: 'none', ends: 'done' }],
    ['start: in time', { phase: 'starting' }, { status: 'stopped', operation: soon('start') }, { step: 'none' }],
    [
      'start: too late for the caller, left alone',
      { phase: 'waiting_for_peer' },
      { status: 'stopped', operation: late('start') },
      { step: 'none', ends: 'failed', message: /peer/ },
    ],

    // Updates
    ['update: the old version is stopped', running, { ...update, history: { version: '0.8.0' } }, { step: 'stop' }],
    ['update: start the new one', { phase: 'absent' }, { ...update, history: { startedAtMs: null } }, { step: 'start' }],
    ['update: comes up', { phase: 'starting' }, update, { step: 'none' }],
    ['update: answers', { ...running, version: '0.9.0-sandbox' }, update, { updateEnds: 'updated', ends: 'done' }],
    ['update: first death', exited, update, { step: 'none', recheckMs: 1_000 }],
    [
      'update: second death',
      exited,
      { ...update, history: { ...unreached, exitsMs: [NOW - 2_000] } },
      { step: 'none', recheckMs: 2_000 },
    ],
    [
      'C25: update: third death, the data is untouched: rolled back',
      exited,
      { ...update, history: { ...unreached, exitsMs: [NOW - 3_000, NOW - 2_000] } },
      { step: 'roll_back', updateEnds: 'failed', recheckMs: 0 },
    ],
    [
      'C25: update: third death, without evidence: tried again',
      exitedUnproved,
      { ...update, history: { ...unreached, exitsMs: [NOW - 3_000, NOW - 2_000] } },
      { step: 'none', recheckMs: 4_000 },
    ],
    [
      'C25: update: third death, an earlier one left no evidence: tried again',
      exited,
      { ...update, history: { ...unreached, reached: true, exitsMs: [NOW - 3_000, NOW - 2_000] } },
      { step: 'none', recheckMs: 4_000 },
    ],
    [
      'update: connected, and keeps dying: failed, with the new version',
      exitedUnproved,
      { ...update, history: { ...unreached, exitsMs: [NOW - 9_000, NOW - 8_000, NOW - 6_000, NOW - 4_000] } },
      { step: 'none', updateEnds: 'failed', ends: 'failed', message: /out of luck.*not rolled back/ },
    ],
    [
      'update: overdue and exited: rolled back',
      exited,
      overdueUpdate,
      { step: 'roll_back', updateEnds: 'failed', ends: 'failed' },
    ],
    [
      'update: overdue, no answer: killed, to be rolled back',
      { phase: 'starting' },
      { ...overdueUpdate, history: { ...unreached, startedAtMs: NOW - 10_000 } },
      { step: 'kill' },
    ],
    ['update: overdue, but only just started: left alone', { phase: 'starting' }, overdueUpdate, { step: 'none' }],
    [
      'update: overdue, no peer: left alone, and other operations are possible again',
      { phase: 'waiting_for_peer' },
      overdueUpdate,
      { step: 'none', ends: 'failed', recheckMs: 1_000 },
    ],
    [
      'update: overdue, cannot be reached: left alone, and other operations are possible again',
      { phase: 'unreachable' },
      overdueUpdate,
      { step: 'none', ends: 'failed' },
    ],
    [
      'update of a stopped node: it stays stopped, and the update is not over',
      { phase: 'absent' },
      { ...update, state: 'stopped', history: { startedAtMs: null } },
      { step: 'none', ends: 'done', shows: { status: 'stopped', failureMessage: null } },
    ],
    [
      'update without data: failed',
      { phase: 'data_lost' },
      { ...update, history: { version: '0.8.0' } },
      { step: 'none', ends: 'failed', updateEnds: 'failed', message: /missing on this machine/ },
    ],
  ])('%s', (_name, observed, given, expected) => {
    const decision = decide(observed, given)
    const { message, ...rest } = expected
    expect(decision).toMatchObject(rest)
    for (const key of ['ends', 'updateEnds'] as const) if (!(key in rest)) expect(decision[key], key).toBeUndefined()
    if (message) expect(decision.shows).toEqual({ status: 'failed', failureMessage: expect.stringMatching(message) })
    else if (!rest.shows && decision.shows) expect(decision.shows).toEqual({ status: 'ready', failureMessage: null })
  })

  test('backoff: 1, 2, 4 … 300 s', () => {
    const waits: number[] = []
    let exits: number[] = []
    for (let death = 1; death <= 12; death++) {
      const decision = decide(exited, { history: { exitsMs: exits } })
      waits.push(decision.recheckMs / 1_000)
      // Keeps all exits within the period for which they count.
      exits = decision.history.exitsMs.map(() => NOW)
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300])
  })

  test('after ten minutes of uptime, exits are forgotten', () => {
    const exitsMs = [NOW - MINUTE_MS]
    expect(decide(running, { history: { exitsMs } }).history.exitsMs).toEqual(exitsMs)
    expect(decide(running, { history: { exitsMs, startedAtMs: NOW - 10 * MINUTE_MS - 1 } }).history.exitsMs).toEqual([])
  })

  test('versions compare up to the first "-"', () => {
    expect(sameVersion('0.8.0-sandbox', '0.8.0')).toBe(true)
    expect(sameVersion('0.8.0-abc', '0.8.0-def')).toBe(true)
    expect(sameVersion('0.8.0', '0.8.01')).toBe(false)
    expect(sameVersion(null, '0.8.0')).toBe(false)
  })
})

describe('a start that was never recorded', () => {
  test('of another version: it has not reached its peer yet, and can be rolled back', () => {
    const caughtUp = { startedAtMs: NOW - 1_000, run: 1, version: '0.9.0', reached: false, previousVersion: '0.8.0' }
    expect(withProcess(history(), { run: 1, version: '0.9.0' }, NOW)).toMatchObject(caughtUp)
  })

  test('of the same version: it is not stopped again', () => {
    const caughtUp = withProcess(history(never), { run: 1, version: '0.8.0' }, NOW)
    expect(caughtUp).toMatchObject({ startedAtMs: NOW, run: 1, version: '0.8.0', reached: false, previousVersion: null })
    expect(decide({ phase: 'starting' }, { history: caughtUp }).step).toBe('none')
  })

  test('what is already recorded does not change', () => {
    expect(withProcess(history(), { run: 1, version: '0.8.0' }, NOW)).toEqual(history())
    expect(withProcess(history(), undefined, NOW)).toEqual(history())
  })
})

describe('C25: an older version never runs on newer data', () => {
  const catalogue = ['0.8.0', '0.9.0', '1.0.0']
  test.each([
    ['nothing ran', '0.8.0', '0.8.0', undefined, '0.8.0'],
    ['the recorded version ran, and an update was requested', '0.9.0', '0.8.0', '0.8.0', '0.9.0'],
    ['the requested version ran, but that was never recorded', '0.9.0', '0.8.0', '0.9.0-build', '0.9.0'],
    ['an older version ran, but that was never recorded', '1.0.0', '0.8.0', '0.9.0', '1.0.0'],
    ['a newer version ran than the database knows', '0.8.0', '0.8.0', '0.9.0', '0.9.0'],
    ['a version ran that neither the database nor the catalog knows', '0.8.0', '0.8.0', '1.1.0', '1.1.0'],
    ['the recorded version ran, but it is no longer in the catalog', '0.8.0', '0.7.0', '0.7.0', '0.8.0'],
    ['what ran has no version', '0.8.0', '0.8.0', '', '0.8.0'],
  ])('%s', (_, desired, recorded, ran, needed) => {
    expect(versionForData(desired, recorded, ran === undefined ? undefined : { version: ran }, catalogue)).toBe(needed)
  })
})

describe('by property', () => {
  const version = fc.constantFrom('0.8.0', '0.9.0')
  const time = fc.integer({ min: NOW - 20 * MINUTE_MS, max: NOW })
  const anyHistory: fc.Arbitrary<History> = fc.record({
    wantedSinceMs: time,
    exitsMs: fc.array(time, { maxLength: 12 }).map((times) => times.sort()),
    startedAtMs: fc.option(time),
    run: fc.integer({ min: 0, max: 2 }),
    version: fc.option(version),
    reached: fc.boolean(),
    previousVersion: fc.option(version),
  })
  const anyFacts: fc.Arbitrary<Facts> = fc.record({
    lightningId: fc.constant(OURS),
    status: fc.constantFrom('provisioning', 'ready', 'stopped', 'failed'),
    desired: fc.record({
      state: fc.constantFrom('running', 'stopped', 'deleted'),
      version,
      run: fc.integer({ min: 1, max: 2 }),
    }),
    operation: fc.option(
      fc.record({
        kind: fc.constantFrom('start', 'stop', 'restart', 'update', 'delete'),
        deadlineMs: fc.integer({ min: NOW - MINUTE_MS, max: NOW + MINUTE_MS }),
      }),
    ),
    updating: fc.boolean(),
  })
  const anyObserved: fc.Arbitrary<Observed> = fc.oneof(
    fc.record({
      phase: fc.constantFrom('absent', 'starting', 'waiting_for_peer', 'unreachable', 'stopping', 'data_lost', 'unknown', 'hung'),
    }),
    fc.record({
      phase: fc.constant('running' as const),
      nodeId: fc.constantFrom(OURS, THEIRS),
      version: fc.constantFrom('0.8.0-sandbox', '0.9.0'),
    }),
    fc.record({ phase: fc.constant('exited' as const), reason: fc.string(), isUntouched: fc.boolean() }),
  )
  const always = (holds: (decision: Decision, facts: Facts, observed: Observed, before: History) => void): void =>
    fc.assert(
      fc.property(anyFacts, anyObserved, anyHistory, (facts, observed, before) =>
        holds(nextStep(facts, observed, before, DEADLINES, NOW), facts, observed, before),
      ),
      { numRuns: 2_000 },
    )
  const isCurrent = ({ desired }: Facts, before: History): boolean =>
    desired.run === before.run && sameVersion(before.version, desired.version)

  test('a start needs proof that nothing runs, and data to run on', () =>
    always(({ step }, _facts, { phase }) => {
      if (step === 'start' || step === 'roll_back') expect(['absent', 'exited']).toContain(phase)
    }))

  test('a node that should be stopped or deleted is never started, and never shown as ready or failed', () =>
    always(({ step, shows }, { desired }) => {
      if (desired.state === 'running') return
      expect(['none', 'stop']).toContain(step)
      expect(['stopped', undefined]).toContain(shows?.status)
    }))

  test('an unknown state changes nothing', () =>
    always((decision, _facts, { phase }, before) => {
      if (phase !== 'unknown') return
      const { step, history: after, recheckMs, ...rest } = decision
      expect({ step, rest }).toEqual({ step: 'none', rest: {} })
      expect({ ...after, exitsMs: [] }).toEqual({ ...before, exitsMs: [] })
      expect(recheckMs).toBeGreaterThan(0)
    }))

  test('a node that waits for its peer, or cannot be reached, is neither stopped nor killed, unless something else was requested', () =>
    always(({ step }, facts, { phase }, before) => {
      if (phase !== 'waiting_for_peer' && phase !== 'unreachable') return
      if (facts.desired.state === 'running' && isCurrent(facts, before)) expect(step).toBe('none')
      else expect(step).toBe('stop')
    }))

  test('a failure has a message, everything else has none', () =>
    always(({ shows }) => {
      if (!shows) return
      if (shows.status === 'failed') expect(shows.failureMessage).toMatch(/^\S.{20,}\.$/s)
      else expect(shows.failureMessage).toBeNull()
    }))

  test('ready means that its API responded with the right identity, run and version', () =>
    always(({ shows, updateEnds }, facts, observed, before) => {
      if (shows?.status !== 'ready' && updateEnds !== 'updated') return
      expect(observed).toMatchObject({ phase: 'running', nodeId: OURS })
      expect(isCurrent(facts, before)).toBe(true)
    }))

  test('C25: only an update is rolled back, only with evidence that it left the data untouched, and only to what was there before', () =>
    always(({ step, updateEnds }, facts, observed, before) => {
      if (step !== 'roll_back') return
      expect(updateEnds).toBe('failed')
      expect(facts.updating).toBe(true)
      expect(before.reached).toBe(false)
      expect(observed).toMatchObject({ phase: 'exited', isUntouched: true })
      expect(before.previousVersion).not.toBeNull()
      expect(sameVersion(before.version, facts.desired.version)).toBe(true)
    }))

  test('once connected, always connected', () =>
    always(({ history: after }, _facts, _observed, { reached }) => {
      if (reached) expect(after.reached).toBe(true)
    }))

  test('only an existing operation ends, and only an update in progress', () =>
    always(({ ends, updateEnds }, { operation, updating }) => {
      if (ends) expect(operation).not.toBeNull()
      if (updateEnds) expect(updating).toBe(true)
    }))

  test('every node is checked again within five minutes', () =>
    always(({ recheckMs }) => {
      expect(recheckMs).toBeGreaterThanOrEqual(0)
      expect(recheckMs).toBeLessThanOrEqual(5 * MINUTE_MS)
    }))

  test('the delay of a start depends on the exits of the last ten minutes', () =>
    always(({ step, history: after }) => {
      const last = after.exitsMs.at(-1)
      if (step !== 'start' || last === undefined) return
      expect(NOW - last).toBeGreaterThanOrEqual(Math.min(1_000 * 2 ** (after.exitsMs.length - 1), 300_000))
    }))
})

describe('restarts by the platform', () => {
  test('C19: each is counted once, and those of another pod from the beginning', () => {
    const first = withRestarts(history(), { of: 'a', count: 2 }, NOW)
    expect(first.exitsMs).toEqual([NOW, NOW])
    expect(withRestarts(first, { of: 'a', count: 2 }, NOW + 1)).toEqual(first)
    expect(withRestarts(first, { of: 'a', count: 3 }, NOW + 1).exitsMs).toEqual([NOW, NOW, NOW + 1])
    expect(withRestarts(first, { of: 'b', count: 1 }, NOW + 1)).toMatchObject({
      exitsMs: [NOW, NOW, NOW + 1],
      restarts: { of: 'b', count: 1 },
    })
    expect(withRestarts(first, undefined, NOW)).toBe(first)
  })
})
