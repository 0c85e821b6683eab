import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { hostIdOf } from '../../../src/platform/data-dir.ts'
import { beginPurges } from '../../../src/store/nodes/purges.ts'
import { type Created, sandboxd, versions, Yard } from '../../support/crash.ts'
import { charge, credentialOf, newMerchant, pay, redeem } from '../../support/gateway.ts'
import { eventually, type Key, temporaryDirectory } from '../../support/server.ts'
import { adopt, command, idOf, type Outcome, phoenixdOf } from './moving.ts'

/** C71 and C72: a node leaves an installation for good, and another one adopts it. */

const FUNDED_SAT = 5_000

let home: Yard
let away: Yard
let atHome: Key
let abroad: Key

beforeAll(async () => {
  ;[home, away] = await Promise.all([new Yard().start(), new Yard().start()])
  ;[atHome, abroad] = await Promise.all([home.newKey(['nodes:write']), away.newKey(['nodes:write'])])
})

const newPath = (): string => join(temporaryDirectory(), 'released')
const release = (yard: Yard, id: string, directory: string): Promise<Outcome> => command(yard, ['release', id, directory])
const refusal = (says: string) => ({ code: 78, signal: null, stderr: expect.stringContaining(says) })

async function released(yard: Yard, id: string): Promise<string> {
  const directory = newPath()
  expect(await release(yard, id, directory)).toEqual({ code: 0, signal: null, stderr: expect.stringMatching(/^Released /) })
  return directory
}

async function funded(): Promise<Created> {
  const created = await home.createReady()
  await home.fund(created.node.id, FUNDED_SAT)
  return created
}

async function balanceAfterStart(yard: Yard, key: Key, id: string, { credentials }: Created): Promise<number> {
  await yard.expectOk(yard.send('POST', `/v1/nodes/${id}/start`, { token: key.key }))
  return (await yard.node(id, credentials.password, 'GET', '/getbalance')).balanceSat
}

test('C71: a released node is gone here, and another installation adopts it with its name, passwords and money', async () => {
  const created = await funded()
  const { id } = created.node
  await home.expectOk(home.v1('PATCH', `/${id}`, { json: { name: 'Kiosk' } }))
  const directory = await released(home, id)
  expect(home.daemon(id)).toBeUndefined()
  expect((await home.v1('GET', `/${id}`)).status).toBe(404)
  expect(statSync(directory).mode & 0o777).toBe(0o700)
  expect(statSync(directory).uid).toBe(process.getuid?.())
  const names = readdirSync(directory)
  expect(names.sort()).toEqual(['boltyard.json', 'phoenix.conf', expect.stringMatching(/^phoenix\.regtest\..+\.db$/), 'seed.dat'])
  for (const name of names) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600)
  const manifest = readFileSync(join(directory, 'boltyard.json'), 'utf8')
  for (const secret of Object.values(created.credentials)) expect(manifest).not.toContain(secret)

  const there = idOf(await adopt(away, directory, abroad))
  const view = (await away.send('GET', `/v1/nodes/${there}`, { token: abroad.key })).json()
  expect(view).toMatchObject({ name: 'Kiosk', status: 'stopped' })
  expect(await balanceAfterStart(away, abroad, there, created)).toBe(FUNDED_SAT)
})

test('C71: a repeated release says the same, and writes a lost directory again', async () => {
  const { node } = await funded()
  const first = await released(home, node.id)
  expect((await release(home, node.id, first)).code).toBe(0)
  const second = await released(home, node.id)
  for (const name of readdirSync(first)) expect(readFileSync(join(second, name))).toEqual(readFileSync(join(first, name)))
})

test('C71: what the daemon writes until it has stopped is released too', async () => {
  const { node } = await funded()
  const { pid } = home.daemon(node.id) ?? { pid: 0 }
  process.kill(pid, 'SIGSTOP')
  const [from, to] = [home.directory(node.id), newPath()]
  const outcome = release(home, node.id, to)
  await eventually(async () => (await home.v1('GET', `/${node.id}`)).status === 404, 'the release to begin')
  const journal = `${readdirSync(from).find((name) => name.endsWith('.db'))}-journal`
  writeFileSync(join(from, journal), 'written late')
  const { uid, gid } = statSync(from)
  chownSync(join(from, journal), uid, gid)
  process.kill(pid, 'SIGCONT')
  expect((await outcome).code).toBe(0)
  expect(readFileSync(join(to, journal), 'utf8')).toBe('written late')
})

test('C71: of two releases to one directory, one is written, and the other node keeps running', async () => {
  const created = [await funded(), await funded()]
  const directory = newPath()
  // Someone else's directory, with a name that the command might choose for its unfinished copy.
  mkdirSync(`${directory}.new`)
  const outcomes = await Promise.all(created.map(({ node }) => release(home, node.id, directory)))
  expect(outcomes.map(({ code }) => code === 0).sort()).toEqual([false, true])
  for (const [at, { code, stderr }] of outcomes.entries()) {
    const { node, credentials } = created[at] as Created
    if (code === 0) expect(readFileSync(join(directory, 'seed.dat'), 'utf8')).toBe(credentials.seed)
    else {
      expect(stderr).toMatch(/another process is moving a wallet|already exists/)
      expect((await home.view(node.id)).status).toBe('ready')
    }
  }
  expect(readdirSync(dirname(directory)).sort()).toEqual(['released', 'released.new'])
})

test('C71: without a running service, the node is released too, and its data is written once it has stopped', async () => {
  const yard = await new Yard({ env: { OPERATION_TIMEOUT_SECONDS: '1' } }).start()
  const { node } = await yard.createReady()
  const daemon = yard.daemon(node.id)
  await yard.stop()
  const directory = newPath()
  const outcome = await release(yard, node.id, directory)
  expect(outcome).toEqual({ code: 1, signal: null, stderr: expect.stringContaining('has not stopped yet: start the service') })
  expect(outcome.stderr).toContain(`${node.id} stays released, and its data here is kept. Repeat this command.`)
  expect(existsSync(directory)).toBe(false)
  expect(yard.daemon(node.id)).toEqual(daemon)
  const sql = yard.sql()
  const purges = async (): Promise<string[]> => {
    const [row] = await sql`
      UPDATE nodes SET deleted_at = deleted_at - interval '40 days', exported_at = exported_at - interval '40 days' WHERE id = ${node.id}
      RETURNING host`
    return beginPurges(sql, row?.host, 30)
  }
  // Its data has not been exported yet, so the only copy is here.
  await sql`UPDATE nodes SET operation = NULL WHERE id = ${node.id}`
  expect(await purges()).toEqual([])
  await yard.start()
  expect((await release(yard, node.id, directory)).code).toBe(0)
  expect(yard.daemon(node.id)).toBeUndefined()
  expect(existsSync(join(directory, 'boltyard.json'))).toBe(true)
  await yard.stop()
  expect(await beginPurges(sql, hostIdOf(yard.dataDir), 30)).toEqual([])
  expect(await purges()).toEqual([node.id])
})

test('C71: nothing here starts a released node again: not the operator, not a hand-written row, not an older database', async () => {
  const { node } = await funded()
  await released(home, node.id)
  const { nodes } = (await home.operator('GET', '/nodes')).json()
  expect(nodes.find(({ id }: { id: string }) => id === node.id).releasedAt).toEqual(expect.any(Number))
  const undelete = await home.operator('POST', `/nodes/${node.id}/undelete`)
  expect(undelete.status).toBe(404)
  expect(undelete.json().error.message).toContain('released to another installation')
  const sql = home.sql()
  const revive = (releasedAt: unknown) =>
    sql`UPDATE nodes SET deleted_at = NULL, desired_state = 'running', status = 'provisioning', next_at = now(),
        released_at = ${releasedAt === null ? null : sql`released_at`}, releases = ${releasedAt === null ? [] : sql`releases`}
        WHERE id = ${node.id}`
  await expect(revive('as it is')).rejects.toThrow('nodes_released_for_good')
  // Simulates the restore of a backup from before the release.
  await revive(null)
  const row = await eventually(async () => {
    const [found] = await sql`SELECT status, failure_message FROM nodes WHERE id = ${node.id}`
    return found?.status === 'failed' ? found : undefined
  }, 'the node to fail')
  expect(row.failure_message).toContain('different seed')
  expect(home.daemon(node.id)).toBeUndefined()
  // Its data here may be older than what the other installation has.
  const second = newPath()
  expect(await release(home, node.id, second)).toEqual(refusal('was moved to release_'))
  expect(existsSync(second)).toBe(false)
})

test('C71: a version that is given must not be older than the one that was released', async () => {
  const { node } = await home.createReady()
  const directory = await released(home, node.id)
  const programs = temporaryDirectory()
  const catalogue = Object.fromEntries(['0.7.0', '0.8.0', '0.9.0'].map((version) => [version, sandboxd(programs, version)]))
  const yard = await new Yard({ env: versions(catalogue) }).start()
  const key = await yard.newKey(['nodes:write'])
  expect(await adopt(yard, directory, key, '--version', '0.7.0')).toEqual(refusal('was released with "0.8.0"'))
  // As if phoenixd 0.9.0 had run on the directory since.
  const id = idOf(await adopt(yard, directory, key, '--version', '0.9.0'))
  expect(await yard.sql()`SELECT desired_version AS version FROM nodes WHERE id = ${id}`).toEqual([{ version: '0.9.0' }])
})

test('C71: a node that never started is released like any other, and its directory can be adopted, with its passwords and its history', async () => {
  const created = await funded()
  const first = await released(home, created.node.id)
  writeFileSync(join(first, 'phoenix.conf'), `http-password=${created.credentials.password}\n`)
  const there = idOf(await adopt(away, first, abroad))
  const conf = readFileSync(join(away.directory(there), 'phoenix.conf'), 'utf8')
  expect(conf).toContain(`http-password=${created.credentials.password}\n`)
  const [, restricted = ''] = /^http-password-limited-access=([0-9a-f]{64})$/m.exec(conf) ?? []
  // Simulates that an older database was restored, which does not contain the node.
  const sql = away.sql()
  await sql`DELETE FROM node_secrets WHERE node_id = ${there}`
  await sql`DELETE FROM nodes WHERE id = ${there}`
  expect(await adopt(away, away.directory(there), abroad)).toEqual(refusal('--version'))
  const again = idOf(await adopt(away, away.directory(there), abroad, '--version', '0.8.0'))
  const back = idOf(await adopt(home, await released(away, again), atHome))
  expect(await balanceAfterStart(home, atHome, back, created)).toBe(FUNDED_SAT)
  await home.node(back, restricted, 'GET', '/getinfo')
})

test('C72: which node has a wallet now does not depend on the clock, and the database refuses a second one', async () => {
  const { node } = await home.createReady()
  const id = idOf(await adopt(home, await released(home, node.id), atHome))
  const sql = home.sql()
  await sql`UPDATE nodes SET created_at = now() + interval '1 day' WHERE id = ${node.id}`
  expect(await release(home, node.id, newPath())).toEqual(refusal(`came back as ${id}`))
  await expect(sql`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history, adopted_at)
    SELECT 'node_00000000000000000000', account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history, now()
    FROM nodes WHERE id = ${id}`).rejects.toMatchObject({ code: '23505' })
  await released(home, id)
})

test('C72: a wallet comes back only from the last release, never from an older copy', async () => {
  const created = await funded()
  const first = await released(home, created.node.id)
  const there = idOf(await adopt(away, first, abroad))
  expect(await balanceAfterStart(away, abroad, there, created)).toBe(FUNDED_SAT)
  await away.fund(there, FUNDED_SAT)
  const second = await released(away, there)
  // The first directory is older than what the other installation has released since.
  expect(await adopt(away, first, abroad)).toEqual(refusal(`is older than the release of ${there}`))
  const back = idOf(await adopt(home, second, atHome))
  expect(back).not.toBe(created.node.id)
  expect(await balanceAfterStart(home, atHome, back, created)).toBe(2 * FUNDED_SAT)
  // This machine still has the data from before the first release, which is older.
  expect(await release(home, created.node.id, newPath())).toEqual(refusal(`came back as ${back}`))
  const third = await released(home, back)
  expect(await adopt(home, second, atHome)).toEqual(refusal(`is older than the release of ${back}`))
  const last = idOf(await adopt(home, third, atHome))
  expect(await balanceAfterStart(home, atHome, last, created)).toBe(2 * FUNDED_SAT)
})

test('C72: a release is undone by adopting its directory, and an ordinary copy of the wallet does not count', async () => {
  const created = await funded()
  const copy = await phoenixdOf(home, created)
  const directory = await released(home, created.node.id)
  expect(await adopt(home, copy, atHome, '--version', '0.8.0')).toEqual(refusal('is older than the release of'))
  expect(await adopt(home, home.directory(created.node.id), atHome, '--version', '0.8.0')).toEqual(refusal('is older than'))
  const id = idOf(await adopt(home, directory, atHome, '--start'))
  await expect.poll(async () => (await home.send('GET', `/v1/nodes/${id}`, { token: atHome.key })).json().status).toBe('ready')
  expect((await home.node(id, created.credentials.password, 'GET', '/getbalance')).balanceSat).toBe(FUNDED_SAT)
})

test('C71: a payment that was paid before its node was released can still be redeemed, once', async () => {
  const merchant = await newMerchant(home)
  const node = await merchant.createReady()
  const payment = await charge(merchant, node)
  const credential = credentialOf(payment, await pay(home, payment))
  await released(home, node.node.id)
  expect((await redeem(merchant, payment.id, credential)).status).toBe(200)
  expect((await redeem(merchant, payment.id, credential)).json().error.code).toBe('already_redeemed')
})

test('C71: refused with one line, and the node keeps running', async () => {
  const { node } = await home.createReady()
  const taken = newPath()
  mkdirSync(taken)
  expect(await release(home, node.id, taken)).toEqual(refusal('already exists'))
  expect(await release(home, node.id, join(taken, 'missing', 'released'))).toEqual(refusal('does not exist'))
  expect(await release(home, node.id, join(home.dataDir, 'nodes', `${node.id}.released`))).toEqual(refusal('inside DATA_DIR'))
  expect(await release(home, 'node_00000000000000000000', newPath())).toEqual(refusal('no such node'))
  expect(await command(home, ['release', node.id])).toEqual(refusal('usage: release'))
  const other = newPath()
  expect(await release(away, node.id, other)).toEqual(refusal('no such node'))
  expect(existsSync(other)).toBe(false)
  expect((await home.view(node.id)).status).toBe('ready')
  expect(home.daemon(node.id)).toBeDefined()
  await home.expectOk(home.v1('DELETE', `/${node.id}`))
  expect(await release(home, node.id, other)).toEqual(refusal('is deleted'))
})
