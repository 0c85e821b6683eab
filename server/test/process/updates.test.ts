import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Created, daemonsIn, program, sandboxd, versions, Yard } from '../support/crash.ts'
import { eventually, temporaryDirectory } from '../support/server.ts'

/** C24 and C25, with versions that are real daemons and versions that fail in different ways. */

const FUNDED_SAT = 10_000
/** The versions that the service offers, oldest first. */
const OLD = '0.8.0'
const EXITS = '0.8.1'
/** Exits like EXITS, but no test fixes it. */
const ALSO_EXITS = '0.8.2'
const SPOILS = '0.8.3'
const CONNECTS = '0.8.4'
const DIES_LATER = '0.8.5'
const LATEST = '0.9.0'

type Funded = Created & { paymentHash: string }

let yard: Yard
let old: string
/** Nodes of the old version, created while no other was offered, because new nodes get the latest version. */
const funded: Funded[] = []
let failed: Created
let provisioning: Created

const directory = temporaryDirectory()
const flag = (name: string): string => join(directory, name)
const raise = (name: string): void => writeFileSync(flag(name), '')
const unless = (name: string, script: string): string => `test -e ${flag(name)} || { ${script}; }`

/** A version that runs this script until a test marks it as fixed. */
const faulty = (version: string, script: string): string =>
  program(directory, `faulty-${version}`, `${unless(`fixed-${version}`, script)}\nexec '${sandboxd(directory, version)}' "$@"`)

beforeAll(async () => {
  const works = sandboxd(directory, OLD)
  const fails = `for name in broken "broken-$(basename "$PHOENIX_DATADIR")"; do test -e '${directory}'/"$name" && exit 1; done`
  const hangs = `for name in slow "slow-$(basename "$PHOENIX_DATADIR")"; do test -e '${directory}'/"$name" && exec sleep 1000; done`
  old = program(directory, 'old', `${fails}\n${hangs}\nexec '${works}' "$@"`)
  yard = await new Yard().start(versions({ [OLD]: old }))
  funded.push(...(await Promise.all(Array.from({ length: 10 }, newFunded))))

  raise('broken')
  failed = await yard.create()
  raise(`broken-${failed.node.id}`)
  await skipPauses(failed, () => yard.becomes(failed.node.id, 'failed'))
  rmSync(flag('broken'))
  raise('slow')
  provisioning = await yard.create()
  // Keeps the node from becoming ready before its test, even if its process is killed because it hangs.
  raise(`slow-${provisioning.node.id}`)
  await eventually(() => yard.daemon(provisioning.node.id), 'its process')
  rmSync(flag('slow'))

  const spoils = 'echo spoilt >> "$(ls "$PHOENIX_DATADIR"/phoenix.regtest.*.db)"; echo "the migration failed"; exit 1'
  const connects = 'echo "2026-01-01 00:00:00 connected to lightning peer"; echo "then it broke"; exit 1'
  const diesLater = sandboxd(directory, DIES_LATER)
  await yard.restart(
    'SIGTERM',
    versions({
      [OLD]: old,
      [EXITS]: faulty(EXITS, 'echo "this machine is too old"; exit 1'),
      [ALSO_EXITS]: faulty(ALSO_EXITS, 'exit 1'),
      [SPOILS]: faulty(SPOILS, spoils),
      [CONNECTS]: faulty(CONNECTS, connects),
      [DIES_LATER]: program(directory, 'dies-later', `test -e ${flag('dead')} && exit 1; exec '${diesLater}' "$@"`),
      [LATEST]: sandboxd(directory, LATEST),
    }),
  )
})

async function newFunded(): Promise<Funded> {
  const created = await yard.createReady()
  await yard.fund(created.node.id, FUNDED_SAT)
  const form = { description: 'before', amountSat: '1000' }
  const invoice = await yard.node(created.node.id, created.credentials.password, 'POST', '/createinvoice', form)
  await yard.expectOk(yard.operator('POST', '/sandbox/pay', { json: { invoice: invoice.serialized } }))
  return { ...created, paymentHash: invoice.paymentHash }
}

function nextFunded(): Funded {
  const created = funded.pop()
  if (!created) throw new Error('more tests than nodes')
  return created
}

/** During the work, a node that exits is restarted at once instead of after 1, 2, 4 … s. */
async function skipPauses<T>({ node }: Created, work: () => Promise<T>): Promise<T> {
  const sql = yard.sql()
  let isOver = false
  const working = work().finally(() => {
    isOver = true
  })
  await eventually(async () => {
    // Moves all exits into the past.
    await sql`
      UPDATE nodes SET next_at = now(), history = jsonb_set(history, '{exitsMs}',
        (SELECT jsonb_agg(exit::bigint - 20000) FROM jsonb_array_elements(history->'exitsMs') exit))
      WHERE id = ${node.id} AND lease_until IS NULL AND next_at > now() AND history->>'startedAtMs' IS NULL
        AND jsonb_array_length(history->'exitsMs') > 0`
    return isOver
  }, 'the node to be restarted often enough')
  await sql.end()
  return working
}

const update = (id: string, version?: string) =>
  yard.v1('POST', `/${id}/update`, version === undefined ? {} : { json: { version } })
async function ended(id: string, how: 'updated' | 'failed') {
  const view = await yard.shows(id, ({ updateStatus }) => updateStatus !== 'updating', 'the update to end')
  // If the test fails, the message then shows why the update failed.
  const { lastUpdateError } = await updatesOf(id)
  expect([view.updateStatus, lastUpdateError]).toEqual([how, how === 'updated' ? null : expect.any(String)])
  return view
}
const pidOf = async ({ node }: Created): Promise<number> => (await eventually(() => yard.daemon(node.id), 'its process')).pid
const updatesOf = async (id: string) => (await yard.v1('GET', `/${id}/updates`)).json()

/** What the activity log says about updates of the node, in this order. */
async function logOf(id: string): Promise<string[]> {
  const sql = yard.sql()
  const rows = await sql<{ action: string }[]>`
    SELECT action FROM activity WHERE target = ${id} AND action LIKE 'node.update%' ORDER BY id`
  await sql.end()
  return rows.map(({ action }) => action)
}

async function versionOf({ node, credentials }: Created): Promise<string> {
  return (await yard.node(node.id, credentials.password, 'GET', '/getinfo')).version
}

async function expectMoney({ node, credentials, paymentHash }: Funded): Promise<void> {
  const ask = (path: string) => yard.node(node.id, credentials.password, 'GET', path)
  expect((await ask('/getbalance')).balanceSat).toBe(FUNDED_SAT + 1000)
  expect(await ask(`/payments/incoming/${paymentHash}`)).toMatchObject({ isPaid: true, receivedSat: 1000 })
}

test('while provisioning: 400', async () => {
  const answer = await update(provisioning.node.id)
  expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_node_state'])
  await yard.expectOk(yard.v1('DELETE', `/${provisioning.node.id}`))
})

describe.concurrent('a good update', () => {
  test('from ready: copied first, then the new version with the same money', async () => {
    const created = nextFunded()
    const { id } = created.node
    const before = { currentVersion: `${OLD}-sandbox`, latestVersion: LATEST, updateAvailable: true, lastUpdateError: null }
    expect(await updatesOf(id)).toEqual(before)
    expect(await yard.view(id)).toMatchObject({ updateStatus: null, updateCompletedAt: null })

    // A frozen process cannot stop, so the update stays in progress until the process is resumed.
    const pid = await pidOf(created)
    process.kill(pid, 'SIGSTOP')
    const beforeSeconds = Math.floor(Date.now() / 1000)
    const answer = await update(id)
    expect(answer.status).toBe(202)
    expect(answer.json()).toMatchObject({ id, status: 'ready', updateStatus: 'updating', updateCompletedAt: null })
    const meanwhile = await yard.v1('POST', `/${id}/restart`)
    expect([meanwhile.status, meanwhile.json().error.code]).toEqual([409, 'operation_in_progress'])
    expect((await update(id)).json().error.code).toBe('operation_in_progress')
    process.kill(pid, 'SIGCONT')

    const view = await ended(id, 'updated')
    expect(view).toMatchObject({ status: 'ready', failureMessage: null })
    expect(view.updateCompletedAt).toBeGreaterThanOrEqual(beforeSeconds)
    expect(view.updateCompletedAt).toBeLessThanOrEqual(Date.now() / 1000)
    expect(await versionOf(created)).toBe(`${LATEST}-sandbox`)
    await expectMoney(created)
    expect(await updatesOf(id)).toEqual({ ...before, currentVersion: `${LATEST}-sandbox`, updateAvailable: false })
    expect(readFileSync(`${yard.copyOf(id, OLD)}/seed.dat`, 'utf8')).toBe(created.credentials.seed)
    expect(yard.daemon(id)).toBeDefined()

    for (const json of [undefined, {}, { version: LATEST }, { version: OLD }, { version: '7.7.7' }]) {
      const again = await yard.v1('POST', `/${id}/update`, json === undefined ? {} : { json })
      expect([again.status, again.json().error.code], JSON.stringify(json)).toEqual([400, 'no_update_available'])
    }
    const { message } = (await yard.v1('POST', `/${id}/update`, { json: { version: OLD } })).json().error
    expect(message).toMatch(/^The requested version is older than \S+, which has already used the node’s data\. /)
  })

  test('the copy is kept for seven days, and then it is gone', async () => {
    const { node } = nextFunded()
    expect((await update(node.id, LATEST)).status).toBe(202)
    await ended(node.id, 'updated')
    const sql = yard.sql()
    const age = async (days: number): Promise<void> => {
      // The new epoch keeps a running check from recording a result for the earlier time.
      await sql`
        UPDATE nodes SET update_completed_at = now() - ${days} * interval '1 day' + interval '1 hour', next_at = now(),
          lease_epoch = lease_epoch + 1
        WHERE id = ${node.id}`
      await eventually(
        async () => (await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND next_at > now()`).length === 1,
        'a look',
      )
    }
    await age(7)
    expect(existsSync(yard.copyOf(node.id, OLD))).toBe(true)
    await age(8)
    expect(existsSync(yard.copyOf(node.id, OLD))).toBe(false)
    expect(existsSync(yard.directory(node.id))).toBe(true)
    expect((await yard.view(node.id)).status).toBe('ready')
    await sql.end()
  })

  test('from stopped: it stays stopped, and the next start runs the new version', async () => {
    const created = nextFunded()
    const { id } = created.node
    await yard.expectOk(yard.v1('POST', `/${id}/stop`))
    expect((await update(id)).json()).toMatchObject({ status: 'stopped', updateStatus: 'updating' })
    await eventually(async () => (await yard.v1('POST', `/${id}/start`)).status === 200, 'the start')
    expect(await yard.view(id)).toMatchObject({ status: 'ready', updateStatus: 'updated' })
    expect(await versionOf(created)).toBe(`${LATEST}-sandbox`)
    await expectMoney(created)
  })

  test('from failed: it is started, and ready', async () => {
    const { id } = failed.node
    expect((await update(id)).json()).toMatchObject({ status: 'failed', updateStatus: 'updating' })
    await ended(id, 'updated')
    expect(await yard.view(id)).toMatchObject({ status: 'ready', failureMessage: null })
    expect(await versionOf(failed)).toBe(`${LATEST}-sandbox`)
  })
})

describe.concurrent('a bad update', () => {
  test('C25: to a version that exits immediately and leaves the data untouched is rolled back', async () => {
    const created = nextFunded()
    const { id } = created.node
    expect((await update(id, EXITS)).status).toBe(202)
    const view = await skipPauses(created, () => ended(id, 'failed'))
    expect(view.updateCompletedAt).not.toBeNull()
    await eventually(() => versionOf(created), 'the old version')
    expect(await versionOf(created)).toBe(`${OLD}-sandbox`)
    await yard.becomes(id, 'ready')
    await expectMoney(created)
    expect(await updatesOf(id)).toEqual({
      currentVersion: `${OLD}-sandbox`,
      latestVersion: LATEST,
      updateAvailable: true,
      lastUpdateError: expect.stringMatching(/0\.8\.1 did not start.*rolled back to 0\.8\.0/),
    })
    expect(await logOf(id)).toEqual(['node.update', 'node.update_failed'])
    // The same version, with the bug fixed, works.
    raise(`fixed-${EXITS}`)
    // The failed update ends only when the service has seen the old version run. Until then, another update is 409.
    await eventually(async () => (await update(id, EXITS)).status === 202, 'the failed update to be over')
    await ended(id, 'updated')
    expect(await versionOf(created)).toBe(`${EXITS}-sandbox`)
    expect((await updatesOf(id)).lastUpdateError).toBeNull()
    expect((await logOf(id)).slice(2)).toEqual(['node.update', 'node.updated'])
    await expectMoney(created)
  })

  test('of a stopped node is rolled back at its start', async () => {
    const created = nextFunded()
    const { id } = created.node
    await yard.expectOk(yard.v1('POST', `/${id}/stop`))
    await yard.expectOk(update(id, ALSO_EXITS))
    await skipPauses(created, () => eventually(async () => (await yard.v1('POST', `/${id}/start`)).status === 200, 'the start'))
    expect(await yard.view(id)).toMatchObject({ status: 'ready', updateStatus: 'failed' })
    expect(await versionOf(created)).toBe(`${OLD}-sandbox`)
    await expectMoney(created)
  })

  test('C25: to a version that changes the data before it dies is not rolled back: the version may have connected', async () => {
    const created = nextFunded()
    const { id } = created.node
    await yard.expectOk(update(id, SPOILS))
    const view = await skipPauses(created, () => ended(id, 'failed'))
    expect(view).toMatchObject({ status: 'failed', failureMessage: expect.stringContaining('the migration failed') })
    // Unlike the failure message, this error stays when the node exits once more.
    expect((await updatesOf(id)).lastUpdateError).toMatch(
      /the migration failed.*not rolled back: older channel data can lose funds/,
    )
    expect(existsSync(yard.copyOf(id, OLD))).toBe(true)
    expect(existsSync(`${yard.directory(id)}.failed-update`)).toBe(false)
    await yard.expectOk(yard.v1('DELETE', `/${id}?force=true`))
  })

  test('C25: to a version that reports a connection is never rolled back, however quickly it dies', async () => {
    const created = nextFunded()
    const { id } = created.node
    await yard.expectOk(update(id, CONNECTS))
    const view = await skipPauses(created, () => ended(id, 'failed'))
    expect(view).toMatchObject({ status: 'failed', failureMessage: expect.stringContaining('then it broke') })
    expect((await updatesOf(id)).lastUpdateError).toContain('then it broke')
    expect(existsSync(yard.copyOf(id, OLD))).toBe(true)
    // The node cannot go back, so it recovers only when this version is fixed.
    raise(`fixed-${CONNECTS}`)
    await skipPauses(created, () => yard.becomes(id, 'ready'))
    expect(await versionOf(created)).toBe(`${CONNECTS}-sandbox`)
    await expectMoney(created)
  })

  test('to a version that was seen running and then dies is never rolled back', async () => {
    const created = nextFunded()
    const { id } = created.node
    await yard.expectOk(update(id, DIES_LATER))
    await ended(id, 'updated')
    raise('dead')
    process.kill(await pidOf(created), 'SIGKILL')
    await skipPauses(created, () => yard.becomes(id, 'failed'))
    expect(await yard.view(id)).toMatchObject({ updateStatus: 'updated' })
    expect(existsSync(yard.copyOf(id, OLD))).toBe(true)
    expect(existsSync(`${yard.directory(id)}.failed-update`)).toBe(false)
  })
})

test('without a peer the outcome is unknown: the new version is neither killed nor rolled back, and counts as updated once the peer is back', async () => {
  const created = nextFunded()
  const { id } = created.node
  const hub = yard.hubPid
  process.kill(hub, 'SIGSTOP')
  try {
    const before = yard.daemon(id)
    await yard.expectOk(update(id))
    const waiting = await eventually(() => {
      const daemon = yard.daemon(id)
      return daemon && daemon.startTime !== before?.startTime && daemon
    }, 'the new version')
    const sql = yard.sql()
    const looks = async (): Promise<number> => {
      const [row] = await sql`SELECT lease_epoch AS looks FROM nodes WHERE id = ${id} AND phase = 'waiting_for_peer'`
      return row?.looks
    }
    await eventually(looks, 'the new version to wait for its peer')
    await sql`UPDATE nodes SET operation_deadline = now() - interval '3 seconds' WHERE id = ${id}`
    const overdueAt = await looks()
    // The epoch rises when a check begins, so three begun checks mean that two complete ones ran after the deadline.
    await eventually(async () => (await looks()) >= overdueAt + 3, 'looks after the deadline')
    await sql.end()
    expect(yard.daemon(id)).toEqual(waiting)
    expect(await yard.view(id)).toMatchObject({ status: 'ready', updateStatus: 'updating' })
    process.kill(hub, 'SIGCONT')
    await ended(id, 'updated')
    expect(yard.daemon(id)).toEqual(waiting)
    expect(await versionOf(created)).toBe(`${LATEST}-sandbox`)
    await expectMoney(created)
  } finally {
    process.kill(hub, 'SIGCONT')
  }
})

test('a version that is no longer offered: a node that exits reports it, and recovers when the version is offered again', async () => {
  const created = nextFunded()
  await yard.restart('SIGTERM', versions({ '0.7.0': old }))
  process.kill(await pidOf(created), 'SIGKILL')
  const view = await yard.becomes(created.node.id, 'failed')
  expect(view.failureMessage).toMatch(/0\.8\.0 is not in the catalog/)
  expect(daemonsIn(yard.dataDir).some(({ nodeId }) => nodeId === created.node.id)).toBe(false)
  await yard.restart('SIGTERM', versions({ [OLD]: old }))
  await yard.becomes(created.node.id, 'ready')
  await expectMoney(created)
})
