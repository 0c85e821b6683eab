import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { CRASHING_SERVER, SERVER } from '../../../testing/bundles.ts'
import { type Created, type Daemon, daemonsIn, hubsIn, program, sandboxd, versions, Yard } from '../support/crash.ts'
import { eventually, temporaryDirectory } from '../support/server.ts'

// Real services are started and killed over and over.
/** Reliability 1 and 14: the service dies by its own SIGKILL between an effect and its record; the next one finishes what was asked. */

const CONVERGED_MS = 30_000
const FUNDED_SAT = 5_000

let yard: Yard
let bystander: Created
let bystanderDaemon: Daemon | undefined
let catalogue: { old: Record<string, string>; both: Record<string, string>; bad: Record<string, string> }

beforeAll(async () => {
  const directory = temporaryDirectory()
  const [first, second] = [sandboxd(directory, '0.8.0'), sandboxd(directory, '0.9.0')]
  const broken = program(directory, 'broken', 'echo "it does not work"; exit 1')
  catalogue = {
    old: versions({ '0.8.0': first }),
    both: versions({ '0.8.0': first, '0.9.0': second }),
    bad: versions({ '0.8.0': first, '0.9.0': broken }),
  }
  yard = await new Yard({ command: [process.execPath, CRASHING_SERVER], env: { MAX_NODES_PER_ACCOUNT: '200' } }).start(
    catalogue.old,
  )
  bystander = await yard.createReady()
  bystanderDaemon = yard.daemon(bystander.node.id)
})

/** Nothing is due: what comes now is the operation's. Returns how often every node was looked at to get there: once each. */
async function settled(): Promise<number> {
  const sql = yard.sql()
  try {
    return await eventually(async () => {
      const [row] = await sql<{ all: number; due: number }[]>`
        SELECT count(*)::int AS all, (count(*) FILTER (WHERE next_at < now() + interval '10 seconds' OR lease_until IS NOT NULL))::int AS due
        FROM nodes`
      return row?.due === 0 ? row.all : undefined
    }, 'all nodes to be looked at')
  } finally {
    await sql.end()
  }
}

type Work = () => Promise<unknown>

/**
 * Starts the service so that it dies at the nth passing of the point after everything has settled, does the work, waits for the death
 * and starts the next service.
 */
async function dieAt(point: string, nth: number, env: Record<string, string>, work: Work): Promise<unknown> {
  const isOfEveryLook = point.startsWith('reconciler: ')
  const looks = isOfEveryLook ? await settled() : 0
  await yard.restart('SIGKILL', { ...env, CRASH_AT: point, CRASH_AFTER: String(looks + nth) })
  await settled()
  const answer = await work().catch((error: Error) => error)
  const { signal } = await Promise.race([
    yard.exited,
    eventually(() => false, `the service to die at "${point}"`, 20_000) as Promise<never>,
  ])
  expect(signal, `"${point}" was reached`).toBe('SIGKILL')
  await yard.start(env)
  return answer
}

/** What must hold for every node after any crash, however it was treated. */
async function allIsWell(): Promise<void> {
  const nodes = await eventually(
    async () => {
      const list = await yard.list()
      const daemons = daemonsIn(yard.dataDir).map(({ nodeId }) => nodeId)
      const expected = list.filter(({ status }) => status !== 'stopped').map(({ id }) => id)
      const isQuiet = list.every(({ status }) => status === 'ready' || status === 'stopped')
      return isQuiet && daemons.sort().join() === expected.sort().join() ? list : undefined
    },
    'one process for every running node, none for the others',
    CONVERGED_MS,
  ).catch(async (error: Error) => {
    throw new Error(`${error.message} ${JSON.stringify(await yard.list())} ${JSON.stringify(daemonsIn(yard.dataDir))}`)
  })
  expect(new Set(nodes.map(({ name }) => name)).size).toBe(nodes.length)
  expect(yard.daemon(bystander.node.id), 'nobody touches a node that was not asked for').toEqual(bystanderDaemon)
  // A pipe to a service that is gone would end it at its next word.
  expect(readlinkSync(`/proc/${bystanderDaemon?.pid}/fd/1`)).toBe(`${yard.state(bystander.node.id)}/daemon.log`)
}

async function itself({ node, credentials }: Created, version?: string): Promise<any> {
  const info = await yard.node(node.id, credentials.password, 'GET', '/getinfo')
  await yard.node(node.id, credentials.restrictedPassword, 'GET', '/getbalance')
  if (version) expect(info.version).toBe(`${version}-sandbox`)
  return info
}

const balanceOf = async ({ node, credentials }: Created): Promise<number> =>
  (await yard.node(node.id, credentials.password, 'GET', '/getbalance')).balanceSat

const LOOKS: [string, number][] = [
  ['reconciler: decided', 1],
  ['reconciler: acted', 1],
  ['reconciler: recorded', 1],
  ['reconciler: decided', 2],
]
const SPAWN: [string, number][] = [
  ['process: intent is durable', 1],
  ['process: spawned', 1],
]
const STOP: [string, number][] = [['process: asked to stop', 1]]
const BEGUN: [string, number][] = [['operation: begun', 1]]

describe('create', () => {
  test.each([['create: not yet committed', 1], ['create: committed', 1], ...LOOKS, ...SPAWN])(
    'at "%s" (%i)',
    async (point, nth) => {
      const before = (await yard.list()).length
      const headers = { 'idempotency-key': `${point} ${nth}` }
      const answer = await dieAt(point, nth, catalogue.old, () => yard.create(headers))
      await allIsWell()
      if (point === 'create: not yet committed') {
        expect(answer).toBeInstanceOf(Error)
        expect(await yard.list()).toHaveLength(before)
        return
      }
      // Whoever did not get the answer asks again with the same key, and gets it.
      const again = await yard.create(headers)
      if (!(answer instanceof Error)) expect(again).toEqual(answer)
      expect(await yard.list()).toHaveLength(before + 1)
      await itself(again)
      await yard.expectOk(yard.v1('DELETE', `/${again.node.id}`))
      await allIsWell()
    },
  )
})

describe('the operations', () => {
  let node: Created
  beforeAll(async () => {
    node = await yard.createReady()
    await yard.fund(node.node.id, FUNDED_SAT)
  })
  const operate = (name: string) => () => yard.expectOk(yard.v1('POST', `/${node.node.id}/${name}`))

  test.each([...BEGUN, ...LOOKS, ...STOP])('stop, at "%s" (%i)', async (point, nth) => {
    if ((await yard.view(node.node.id)).status === 'stopped') await operate('start')()
    await dieAt(point, nth, catalogue.old, operate('stop'))
    await yard.becomes(node.node.id, 'stopped', CONVERGED_MS)
    await allIsWell()
    expect(yard.daemon(node.node.id)).toBeUndefined()
  })

  test.each([...BEGUN, ...LOOKS, ...SPAWN])('start, at "%s" (%i)', async (point, nth) => {
    if ((await yard.view(node.node.id)).status === 'ready') await operate('stop')()
    await dieAt(point, nth, catalogue.old, operate('start'))
    await yard.becomes(node.node.id, 'ready', CONVERGED_MS)
    await allIsWell()
    await itself(node)
    expect(await balanceOf(node)).toBe(FUNDED_SAT)
  })

  test.each([...BEGUN, ...LOOKS, ...STOP, ...SPAWN])('restart, at "%s" (%i)', async (point, nth) => {
    await yard.becomes(node.node.id, 'ready')
    const before = yard.daemon(node.node.id)
    await dieAt(point, nth, catalogue.old, operate('restart'))
    await eventually(() => yard.daemon(node.node.id)?.startTime !== before?.startTime, 'another process', CONVERGED_MS)
    await operationEnded(node.node)
    await allIsWell()
    await itself(node)
    expect(await balanceOf(node)).toBe(FUNDED_SAT)
  })
})

/** Only the store knows: nobody waits for it any more. */
async function operationEnded({ id }: { id: string }): Promise<void> {
  const sql = yard.sql()
  await eventually(
    async () => (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND operation IS NULL`).length === 1,
    'the operation to end',
    CONVERGED_MS,
  )
  await sql.end()
}

describe('update', () => {
  const COPY: [string, number][] = [
    ['copy: unfinished', 1],
    ['copy: kept', 1],
  ]
  const fresh = async (): Promise<Created> => {
    await yard.restart('SIGKILL', catalogue.old)
    const node = await yard.createReady()
    await yard.fund(node.node.id, FUNDED_SAT)
    return node
  }
  const gone = async ({ node }: Created): Promise<void> => {
    await operationEnded(node)
    await yard.expectOk(yard.v1('DELETE', `/${node.id}?force=true`))
    await allIsWell()
  }

  test.each([...BEGUN, ...LOOKS, ...STOP, ...COPY, ...SPAWN])('at "%s" (%i)', async (point, nth) => {
    const node = await fresh()
    await dieAt(point, nth, catalogue.both, () => yard.expectOk(yard.v1('POST', `/${node.node.id}/update`)))
    await yard.shows(node.node.id, ({ updateStatus }) => updateStatus === 'updated', 'the update', CONVERGED_MS)
    await allIsWell()
    await itself(node, '0.9.0')
    expect(await balanceOf(node)).toBe(FUNDED_SAT)
    expect(readFileSync(`${yard.copyOf(node.node.id, '0.8.0')}/seed.dat`, 'utf8')).toBe(node.credentials.seed)
    await gone(node)
  })

  test.each([
    ['restore: the new data is aside', 1],
    ['restore: the old data is back', 1],
    ['process: spawned', 1],
    ['process: spawned', 3],
    ['process: spawned', 4],
  ])('of a bad version, at "%s" (%i): it is back on the data of before', async (point, nth) => {
    const node = await fresh()
    const work = () => yard.expectOk(yard.v1('POST', `/${node.node.id}/update`))
    await dieAt(point, nth, catalogue.bad, work)
    const view = await yard.shows(node.node.id, ({ updateStatus }) => updateStatus === 'failed', 'the end', CONVERGED_MS)
    expect(view.updateCompletedAt).not.toBeNull()
    await yard.becomes(node.node.id, 'ready', CONVERGED_MS)
    await eventually(() => itself(node, '0.8.0'), 'the old version to answer', CONVERGED_MS)
    await allIsWell()
    expect(await balanceOf(node)).toBe(FUNDED_SAT)
    await gone(node)
  })
})

describe('delete', () => {
  test.each([...BEGUN, ...LOOKS, ...STOP])('at "%s" (%i)', async (point, nth) => {
    await yard.restart('SIGKILL', catalogue.old)
    const node = await yard.createReady()
    await dieAt(point, nth, catalogue.old, () => yard.expectOk(yard.v1('DELETE', `/${node.node.id}`)))
    await allIsWell()
    expect((await yard.v1('GET', `/${node.node.id}`)).status).toBe(404)
    expect(yard.daemon(node.node.id)).toBeUndefined()
    // Its data is kept, and it can come back.
    await operationEnded(node.node)
    await yard.expectOk(yard.operator('POST', `/nodes/${node.node.id}/undelete`))
    await yard.expectOk(yard.v1('POST', `/${node.node.id}/start`))
    await itself(node)
    await yard.expectOk(yard.v1('DELETE', `/${node.node.id}`))
    await allIsWell()
  })
})

test.each(SPAWN)('the sandbox hub, at "%s" (%i): there is one afterwards', async (point) => {
  const other = new Yard({ command: [process.execPath, CRASHING_SERVER] })
  await other.launch({ CRASH_AT: point })
  expect((await other.exited).signal).toBe('SIGKILL')
  await other.start()
  const node = await other.createReady()
  await other.fund(node.node.id, 1_000)
  expect(hubsIn(other.dataDir)).toEqual([other.hubPid])
})

test('the service that people run has no crash points, in none of its parts', () => {
  const withCrashPoints = (main: string): string[] =>
    readdirSync(dirname(main), { withFileTypes: true })
      .filter((entry) => entry.isFile() && readFileSync(join(dirname(main), entry.name), 'utf8').includes('CRASH_AT'))
      .map(({ name }) => name)
  expect([withCrashPoints(CRASHING_SERVER), withCrashPoints(SERVER)]).toEqual([['main.js'], []])
})
