import { existsSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Created, daemonsIn, program, sandboxd, versions, Yard } from '../support/crash.ts'
import { eventually, temporaryDirectory } from '../support/server.ts'

// Real services are started and killed over and over.
/** C24 and C25, with versions that are real daemons and versions that do not work. */

const FUNDED_SAT = 10_000
let old: string
let next: string
let bad: string
let yard: Yard

beforeAll(async () => {
  const directory = temporaryDirectory()
  old = sandboxd(directory, '0.8.0')
  next = sandboxd(directory, '0.9.0')
  bad = program(directory, 'bad', 'echo "this machine is too old"; exit 1')
  yard = await new Yard({ env: { PROVISION_DEADLINE_SECONDS: '30' } }).start(versions({ '0.8.0': old }))
})

const only = (): Promise<Yard> => yard.restart('SIGTERM', versions({ '0.8.0': old }))
const offering = (path: string, env: Record<string, string> = {}): Promise<Yard> =>
  yard.restart('SIGTERM', { ...versions({ '0.8.0': old, '0.9.0': path }), ...env })

/** A node of the old version with money and a payment to remember; then the service learns of the new version too. */
async function nodeBefore(path: string, env: Record<string, string> = {}): Promise<Created & { paymentHash: string }> {
  await only()
  const created = await yard.createReady()
  await yard.fund(created.node.id, FUNDED_SAT)
  const { password } = created.credentials
  const form = { description: 'before', amountSat: '1000' }
  const invoice = await yard.node(created.node.id, password, 'POST', '/createinvoice', form)
  await yard.expectOk(yard.operator('POST', '/sandbox/pay', { json: { invoice: invoice.serialized } }))
  await offering(path, env)
  await eventually(() => versionOf(created), 'the node to answer')
  return { ...created, paymentHash: invoice.paymentHash }
}

const update = (id: string, json?: unknown) => yard.v1('POST', `/${id}/update`, json === undefined ? {} : { json })
const ended = (id: string, how: 'updated' | 'failed') =>
  yard.shows(id, ({ updateStatus }) => updateStatus === how, `the update to be ${how}`, 60_000)
const updatesOf = async (id: string) => (await yard.v1('GET', `/${id}/updates`)).json()

async function versionOf({ node, credentials }: Created): Promise<string> {
  return (await yard.node(node.id, credentials.password, 'GET', '/getinfo')).version
}

async function expectMoney({ node, credentials, paymentHash }: Created & { paymentHash: string }): Promise<void> {
  const ask = (path: string) => yard.node(node.id, credentials.password, 'GET', path)
  expect((await ask('/getbalance')).balanceSat).toBe(FUNDED_SAT + 1000)
  expect(await ask(`/payments/incoming/${paymentHash}`)).toMatchObject({ isPaid: true, receivedSat: 1000 })
}

describe('a good update', () => {
  test('from ready: copied first, then the new version with the same money', async () => {
    const created = await nodeBefore(next)
    const { id } = created.node
    const before = { currentVersion: '0.8.0-sandbox', latestVersion: '0.9.0', updateAvailable: true, lastUpdateError: null }
    expect(await updatesOf(id)).toEqual(before)
    expect(await yard.view(id)).toMatchObject({ updateStatus: null, updateCompletedAt: null })

    const answer = await update(id)
    expect(answer.status).toBe(202)
    expect(answer.json()).toMatchObject({ id, status: 'ready', updateStatus: 'updating', updateCompletedAt: null })
    const meanwhile = await yard.v1('POST', `/${id}/restart`)
    expect([meanwhile.status, meanwhile.json().error.code]).toEqual([409, 'operation_in_progress'])
    expect((await update(id)).json().error.code).toBe('operation_in_progress')

    const view = await ended(id, 'updated')
    expect(view).toMatchObject({ status: 'ready', failureMessage: null })
    expect(Math.abs((view.updateCompletedAt ?? 0) - Date.now() / 1000)).toBeLessThan(30)
    expect(await versionOf(created)).toBe('0.9.0-sandbox')
    await expectMoney(created)
    expect(await updatesOf(id)).toEqual({ ...before, currentVersion: '0.9.0-sandbox', updateAvailable: false })
    expect(readFileSync(`${yard.copyOf(id, '0.8.0')}/seed.dat`, 'utf8')).toBe(created.credentials.seed)
    expect(yard.daemon(id)).toBeDefined()

    for (const body of [undefined, {}, { version: '0.9.0' }, { version: '0.8.0' }, { version: '7.7.7' }]) {
      const again = await update(id, body)
      expect([again.status, again.json().error.code], JSON.stringify(body)).toEqual([400, 'no_update_available'])
    }
  })

  test('the copy is kept for seven days, and then it is gone', async () => {
    const { node } = await nodeBefore(next)
    expect((await update(node.id, { version: '0.9.0' })).status).toBe(202)
    await ended(node.id, 'updated')
    const sql = yard.sql()
    const age = async (days: number): Promise<void> => {
      await sql`UPDATE nodes SET update_completed_at = now() - ${days} * interval '1 day' + interval '1 minute', next_at = now() WHERE id = ${node.id}`
      await eventually(
        async () => (await sql`SELECT 1 FROM nodes WHERE id = ${node.id} AND next_at > now()`).length === 1,
        'a look',
      )
    }
    await age(7)
    expect(existsSync(yard.copyOf(node.id, '0.8.0'))).toBe(true)
    await age(8)
    expect(existsSync(yard.copyOf(node.id, '0.8.0'))).toBe(false)
    expect(existsSync(yard.directory(node.id))).toBe(true)
    expect((await yard.view(node.id)).status).toBe('ready')
    await sql.end()
  })

  test('from stopped: it stays stopped, and the next start is the new version', async () => {
    const created = await nodeBefore(next)
    const { id } = created.node
    await yard.expectOk(yard.v1('POST', `/${id}/stop`))
    expect((await update(id)).json()).toMatchObject({ status: 'stopped', updateStatus: 'updating' })
    await eventually(async () => (await yard.v1('POST', `/${id}/start`)).status === 200, 'the start')
    expect(await yard.view(id)).toMatchObject({ status: 'ready', updateStatus: 'updated' })
    expect(await versionOf(created)).toBe('0.9.0-sandbox')
    await expectMoney(created)
  })

  test('from failed: it is started, and ready', async () => {
    await offering(next)
    const directory = temporaryDirectory()
    const broken = program(directory, 'broken', 'exit 1')
    await yard.restart('SIGTERM', { ...versions({ '0.8.0': broken }), PROVISION_DEADLINE_SECONDS: '1' })
    const created = await yard.create()
    await yard.becomes(created.node.id, 'failed')
    await yard.restart('SIGTERM', versions({ '0.8.0': broken, '0.9.0': next }))
    expect((await update(created.node.id)).json()).toMatchObject({ status: 'failed', updateStatus: 'updating' })
    await ended(created.node.id, 'updated')
    expect(await yard.view(created.node.id)).toMatchObject({ status: 'ready', failureMessage: null })
    expect(await versionOf(created)).toBe('0.9.0-sandbox')
  })
})

test('while provisioning: 400', async () => {
  const directory = temporaryDirectory()
  const forever = program(directory, 'forever', 'exec sleep 1000')
  await yard.restart('SIGTERM', versions({ '0.8.0': forever }))
  const { node } = await yard.create()
  await yard.restart('SIGTERM', versions({ '0.8.0': forever, '0.9.0': next }))
  const answer = await update(node.id)
  expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_node_state'])
  await yard.expectOk(yard.v1('DELETE', `/${node.id}`))
})

describe('a bad update', () => {
  test('C25: that exits immediately and left the data untouched is rolled back', async () => {
    const created = await nodeBefore(bad)
    const { id } = created.node
    expect((await update(id)).status).toBe(202)
    const view = await ended(id, 'failed')
    expect(view.updateCompletedAt).not.toBeNull()
    await eventually(() => versionOf(created), 'the old version')
    expect(await versionOf(created)).toBe('0.8.0-sandbox')
    await yard.becomes(id, 'ready')
    await expectMoney(created)
    expect(await updatesOf(id)).toEqual({
      currentVersion: '0.8.0-sandbox',
      latestVersion: '0.9.0',
      updateAvailable: true,
      lastUpdateError: expect.stringMatching(/0\.9\.0 did not start.*rolled back to 0\.8\.0/),
    })
    // The next version, with the bug fixed, works.
    await offering(next)
    // The failed update ends only when the service has seen the old version run: until then, 409.
    await eventually(async () => (await update(id)).status === 202, 'the failed update to be over')
    await ended(id, 'updated')
    expect(await versionOf(created)).toBe('0.9.0-sandbox')
    expect((await updatesOf(id)).lastUpdateError).toBeNull()
    await expectMoney(created)
  })

  test('of a stopped node is rolled back at its start', async () => {
    const created = await nodeBefore(bad)
    const { id } = created.node
    await yard.expectOk(yard.v1('POST', `/${id}/stop`))
    await yard.expectOk(update(id))
    await eventually(async () => (await yard.v1('POST', `/${id}/start`)).status === 200, 'the start')
    expect(await yard.view(id)).toMatchObject({ status: 'ready', updateStatus: 'failed' })
    expect(await versionOf(created)).toBe('0.8.0-sandbox')
    await expectMoney(created)
  })

  test('C25: that changes the data before it dies is not rolled back: it may have connected', async () => {
    const script = 'echo spoilt >> "$(ls "$PHOENIX_DATADIR"/phoenix.regtest.*.db)"; echo "the migration failed"; exit 1'
    const created = await nodeBefore(program(temporaryDirectory(), 'spoils', script))
    const { id } = created.node
    await yard.expectOk(update(id))
    const view = await ended(id, 'failed')
    expect(view).toMatchObject({
      status: 'failed',
      failureMessage: expect.stringMatching(/the migration failed.*not rolled back/),
    })
    expect((await updatesOf(id)).lastUpdateError).toMatch(/older channel data can lose funds/)
    expect(existsSync(yard.copyOf(id, '0.8.0'))).toBe(true)
    expect(existsSync(`${yard.directory(id)}.failed-update`)).toBe(false)
    await yard.expectOk(yard.v1('DELETE', `/${id}?force=true`))
  })

  test('C25: that says it connected is never rolled back, however quickly it died', async () => {
    const directory = temporaryDirectory()
    const line = 'echo "2026-01-01 00:00:00 connected to lightning peer"; echo "then it broke"; exit 1'
    const connects = program(directory, 'connects', line)
    const created = await nodeBefore(connects)
    const { id } = created.node
    await yard.expectOk(update(id))
    const view = await ended(id, 'failed')
    expect(view).toMatchObject({ status: 'failed', failureMessage: expect.stringContaining('then it broke') })
    expect((await updatesOf(id)).lastUpdateError).toContain('then it broke')
    expect(existsSync(yard.copyOf(id, '0.8.0'))).toBe(true)
    // Forward is the only way: the same version, fixed.
    await offering(next)
    await yard.becomes(id, 'ready', 60_000)
    expect(await versionOf(created)).toBe('0.9.0-sandbox')
    await expectMoney(created)
  })

  test('that was seen running and then dies is never rolled back', async () => {
    const directory = temporaryDirectory()
    const flaky = program(directory, 'flaky', `test -e '${directory}/broken' && exit 1; exec '${next}' "$@"`)
    const created = await nodeBefore(flaky)
    const { id } = created.node
    await yard.expectOk(update(id))
    await ended(id, 'updated')
    program(directory, 'broken', '')
    process.kill(yard.daemon(id)?.pid ?? 0, 'SIGKILL')
    await yard.becomes(id, 'failed', 60_000)
    expect(await yard.view(id)).toMatchObject({ updateStatus: 'updated' })
    expect(existsSync(yard.copyOf(id, '0.8.0'))).toBe(true)
    expect(existsSync(`${yard.directory(id)}.failed-update`)).toBe(false)
  })
})

test('without a peer the outcome is unknown: the new version is neither killed nor rolled back, and counts as updated once the peer is back', async () => {
  const created = await nodeBefore(next, { PROVISION_DEADLINE_SECONDS: '2' })
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
    // Past the deadline, and checked since.
    await eventually(
      async () =>
        (
          await sql`SELECT 1 FROM nodes WHERE id = ${id} AND phase = 'waiting_for_peer' AND operation_deadline < now() - interval '3 seconds'`
        ).length === 1,
      'the deadline to pass',
      30_000,
    )
    await sql.end()
    expect(yard.daemon(id)).toEqual(waiting)
    expect(await yard.view(id)).toMatchObject({ status: 'ready', updateStatus: 'updating' })
    process.kill(hub, 'SIGCONT')
    await ended(id, 'updated')
    expect(yard.daemon(id)).toEqual(waiting)
    expect(await versionOf(created)).toBe('0.9.0-sandbox')
    await expectMoney(created)
  } finally {
    process.kill(hub, 'SIGCONT')
  }
})

test('a version that is no longer offered: a node that exits reports it, and recovers when the version is offered again', async () => {
  const created = await nodeBefore(next)
  await yard.restart('SIGTERM', versions({ '0.7.0': old }))
  process.kill(yard.daemon(created.node.id)?.pid ?? 0, 'SIGKILL')
  const view = await yard.becomes(created.node.id, 'failed', 60_000)
  expect(view.failureMessage).toMatch(/0\.8\.0 is not in the catalog/)
  expect(daemonsIn(yard.dataDir).some(({ nodeId }) => nodeId === created.node.id)).toBe(false)
  await only()
  await yard.becomes(created.node.id, 'ready', 60_000)
  await expectMoney(created)
})
