import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { SERVER } from '../../../testing/bundles.ts'
import { checkMasterKey } from '../../src/platform/master-key.ts'
import { masterKeyOf } from '../../src/platform/secrets.ts'
import { writeBackup } from '../../src/store/backup/write.ts'
import { openStore } from '../../src/store/db.ts'
import { isUpToDate, type Migration, migrate, readMigrations } from '../../src/store/migrate.ts'
import { installationOf, settingOnce } from '../../src/store/settings.ts'
import { emptyDatabase, type Outcome, run } from '../support/commands.ts'
import { lockingTransaction, lockWaitOn } from '../support/database.ts'
import { charge, credentialOf, newMerchant, pay, redeem } from '../support/gateway.ts'
import { type Created, directoryOf, infoOf, type Owner, stateOf } from '../support/nodes.ts'
import { PROCESS, type Server, startServer, storeEnv, temporaryDirectory, track } from '../support/server.ts'

/** reliability 22: one command copies the database into a file, another restores it. Nodes keep their seeds, and no secret is generated. */

let server: Server
let merchant: Owner
let nodes: Created[]
let redeemed: { id: string; credential: string }
let settled: { id: string; credential: string }
const directory = temporaryDirectory()
const file = join(directory, 'boltyard.backup')

const command = (...args: string[]): Outcome => run(args, { DATA_DIR: server.dataDir, NODE_PRICE_SAT_PER_DAY: '0' })
const contents = (path = file): string => gunzipSync(readFileSync(path)).toString('utf8')
const hashOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')
const pidOf = ({ node }: Created): number => JSON.parse(readFileSync(join(stateOf(server, node), 'run.json'), 'utf8')).process.pid

async function paid(): Promise<{ id: string; credential: string }> {
  const payment = await charge(merchant, nodes[0] as Created)
  return { id: payment.id, credential: credentialOf(payment, await pay(server, payment)) }
}

beforeAll(async () => {
  server = await startServer({ command: PROCESS, store: 'embedded', env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
  merchant = await newMerchant(server)
  nodes = await Promise.all([merchant.createReady(), merchant.createReady()])
  ;[redeemed, settled] = [await paid(), await paid()]
  expect((await redeem(merchant, redeemed.id, redeemed.credential)).status).toBe(200)
})

test('reliability 22: a backup made while the service runs restores accounts, keys, payments and the same nodes after the database is lost', async () => {
  const before = { pids: nodes.map(pidOf), seeds: nodes.map(({ node }) => hashOf(join(directoryOf(server, node), 'seed.dat'))) }
  const backup = command('backup', file)
  expect(backup).toEqual({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(
      /^Backup written to .+: \d accounts, \d nodes, 2 payments\.\nTHE BACKUP DOES NOT CONTAIN THE MASTER KEY/,
    ),
  })
  expect(backup.stderr).toContain(join(server.dataDir, 'master.key'))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const info = await Promise.all(nodes.map(infoOf))
  // Created after the backup, so the backup does not contain this node.
  const later = await merchant.createReady()

  await server.stop()
  rmSync(join(server.dataDir, 'postgres'), { recursive: true })
  // The service can write this file again from the sealed material in the backup.
  rmSync(join(directoryOf(server, (nodes[1] as Created).node), 'phoenix.conf'))
  expect(command('restore', file)).toEqual({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(/^Restored: \d accounts, \d nodes, 2 payments, as of 20/),
  })
  await server.start()

  expect((await merchant.list()).map(({ id, status }) => [id, status]).sort()).toEqual(
    nodes.map(({ node }) => [node.id, 'ready']).sort(),
  )
  expect(nodes.map(pidOf)).toEqual(before.pids)
  expect(await Promise.all(nodes.map(infoOf))).toEqual(info)
  expect((await redeem(merchant, redeemed.id, redeemed.credential)).json().error.code).toBe('already_redeemed')
  expect((await redeem(merchant, settled.id, settled.credential)).status).toBe(200)
  const restarted = nodes[1] as Created
  await merchant.act(restarted.node.id, 'restart')
  await merchant.until(restarted.node.id, 'ready')
  expect(nodes.map(({ node }) => hashOf(join(directoryOf(server, node), 'seed.dat')))).toEqual(before.seeds)
  expect(existsSync(join(directoryOf(server, restarted.node), 'phoenix.conf'))).toBe(true)
  // A node that is not in the restored database keeps its data, and a new node gets neither its user nor its port.
  expect(existsSync(join(directoryOf(server, later.node), 'seed.dat'))).toBe(true)
  await merchant.createReady()
})

test('a backup contains neither sessions nor links, and nothing that the master key protects', () => {
  const text = contents()
  const tables = [...text.matchAll(/^\{"table":"(\w+)"/gm)].map(([, name]) => name)
  expect(tables).toEqual(
    expect.arrayContaining(['accounts', 'api_keys', 'credit_entries', 'nodes', 'node_secrets', 'paid_payments', 'people']),
  )
  for (const name of ['links', 'people_sessions', 'people_verifications', 'rate_limits', 'sign_in_failures'])
    expect(tables).not.toContain(name)
  const secrets = nodes.flatMap(({ credentials }) => [credentials.seed, credentials.password, credentials.restrictedPassword])
  for (const secret of [...secrets, merchant.key.key, server.readSecret('master.key')]) expect(text).not.toContain(secret)
})

test('numbers given out before the backup are not given out again', async () => {
  const sql = server.sql()
  const [highest] = await sql<
    { id: number }[]
  >`SELECT greatest(max(id), (SELECT max(log_id) FROM paid_payments)) AS id FROM activity`
  const [next] = await sql<{ id: number }[]>`SELECT nextval('activity_id_seq') AS id`
  expect(next?.id).toBeGreaterThan(highest?.id ?? Number.NaN)
})

test('a backup of a stopped service is the same; standard output and standard input work too', async () => {
  await server.stop()
  const second = join(directory, 'stopped.backup')
  expect(command('backup', second).code).toBe(0)
  const shell = (script: string, env: Record<string, string>) =>
    once(spawn('sh', ['-c', script], { env: { PATH: process.env.PATH, ...env }, stdio: 'ignore' }), 'close')
  const third = join(directory, 'piped.backup')
  const env = { DATA_DIR: server.dataDir, NODE_PRICE_SAT_PER_DAY: '0' }
  expect(await shell(`'${process.execPath}' '${SERVER}' backup - > '${third}'`, env)).toEqual([0, null])
  const parts = (path: string) => contents(path).split('\n').slice(1)
  expect(parts(third)).toEqual(parts(second))
  renameSync(join(server.dataDir, 'postgres'), join(directory, 'postgres'))
  expect(await shell(`'${process.execPath}' '${SERVER}' restore - < '${third}'`, env)).toEqual([0, null])
  const fourth = join(directory, 'again.backup')
  expect(command('backup', fourth).code).toBe(0)
  expect(parts(fourth)).toEqual(parts(third))
})

describe('refused with one line, and nothing is changed', () => {
  const refusal = (says: RegExp) => ({
    code: expect.any(Number),
    stdout: '',
    stderr: expect.stringMatching(new RegExp(`^[^\\n]*(${says.source})[^\\n]*\\n$`)),
  })
  /** The situation after the loss of a database: a new, empty database, and the service's other files. */
  const newPlace = async () => {
    const dataDir = temporaryDirectory()
    writeFileSync(join(dataDir, 'host.id'), server.readSecret('host.id'))
    const address = await emptyDatabase()
    const { MASTER_KEY, ...store } = storeEnv(address, '')
    const restoring = (path: string, key: Record<string, string> = { MASTER_KEY: server.masterKey }): Outcome =>
      run(['restore', path], { DATA_DIR: dataDir, ...store, ...key })
    return { dataDir, address, restoring }
  }
  const altered = (from: string | RegExp, to: string): string => {
    const path = join(directory, `${randomBytes(4).toString('hex')}.backup`)
    const text = contents().replace(from, to)
    expect(text).not.toBe(contents())
    writeFileSync(path, gzipSync(text))
    return path
  }

  test('a backup over a file, of nothing, or without a name', () => {
    expect(command('backup', file)).toEqual(refusal(/already exists/))
    expect(run(['backup', join(directory, 'none')], {})).toEqual(refusal(/no database to back up/))
    expect(existsSync(join(directory, 'none'))).toBe(false)
    for (const name of ['backup', 'restore']) expect(command(name)).toEqual(refusal(/usage:/))
  })

  test('into a database that is not empty', () => {
    expect(command('restore', file)).toEqual(refusal(/can only be restored into an empty database/))
  })

  test('while the service runs', async () => {
    await server.start()
    expect(command('restore', file)).toEqual(refusal(/another instance/))
    await server.stop()
  })

  test('a file that is not a backup, is from the future, is cut short or was altered; a good one then still restores', async () => {
    const bytes = readFileSync(file)
    const cut = join(directory, 'cut.backup')
    writeFileSync(cut, bytes.subarray(0, bytes.length - 100))
    const text = join(directory, 'text')
    writeFileSync(text, 'hello')
    const row = new RegExp(`\n[^\n]*${redeemed.id}[^\n]*`)
    const damaged: [string, RegExp][] = [
      [text, /not a Boltyard backup/],
      [join(directory, 'absent'), /does not exist/],
      [altered('"boltyardBackup":1', '"boltyardBackup":2'), /newer version/],
      [altered(/"schema":\d+/, '"schema":999'), /newer version/],
      [cut, /damaged or incomplete/],
      [altered(/\{"rows".*\n$/, ''), /damaged or incomplete/],
      [altered(/$/, '{}\n'), /damaged or incomplete/],
      [altered(/\{"rows":\{[^}]*\}/, '{"rows":null'), /damaged or incomplete/],
      [altered(/"sequences":\{[^}]*\}/, '"sequences":null'), /damaged or incomplete/],
      // In this order: a missing table, a missing row, an invalid row, a table of PostgreSQL, and a table name that contains SQL.
      [altered(/\{"table":"people".*\n(.*\n)*?\\\.\n/, ''), /damaged/],
      [altered(row, ''), /damaged/],
      [altered(row, '\nnonsense'), /damaged/],
      [altered('{"table":"people"', '{"table":"pg_authid"'), /damaged/],
      [altered('{"table":"people"', `{"table":"people\\" FROM PROGRAM 'id'; --"`), /damaged/],
    ]
    const { restoring } = await newPlace()
    for (const [path, says] of damaged) expect([says, restoring(path)]).toEqual([says, refusal(says)])
    expect(restoring(file).code).toBe(0)
  })

  test('without its master key, or with another; no key is generated', async () => {
    const { restoring } = await newPlace()
    const lost = temporaryDirectory()
    expect(run(['restore', file], { DATA_DIR: lost })).toEqual(refusal(/MASTER_KEY: .*copy that key/))
    expect(readdirSync(lost)).toEqual([])
    expect(restoring(file, { MASTER_KEY: randomBytes(32).toString('base64') })).toEqual(refusal(/MASTER_KEY: not the key/))
    expect(restoring(file).code).toBe(0)
  })

  test('on another machine: a node must never run twice', async () => {
    const { dataDir, restoring } = await newPlace()
    rmSync(join(dataDir, 'host.id'))
    expect(restoring(file)).toEqual(refusal(/another machine/))
    writeFileSync(join(dataDir, 'host.id'), server.readSecret('host.id'))
    expect(restoring(file).code).toBe(0)
  })

  test('on a cluster: a node of a machine would never run there, but its owner would be charged; deleted ones are the cluster’s to purge', async () => {
    const { dataDir, address, restoring } = await newPlace()
    const cluster = {
      MASTER_KEY: server.masterKey,
      NODE_SOFTWARE: 'phoenixd',
      NODE_RUNTIME: 'kubernetes',
      NODE_VERSIONS: `0.8.0=example/phoenixd@sha256:${'0'.repeat(64)}`,
      NODE_CALLBACK_URL: 'http://boltyard.example',
      KUBECONFIG: join(directory, 'kubeconfig'),
    }
    expect(restoring(file, cluster)).toEqual(refusal(/run on a machine/))

    const machine = await emptyDatabase()
    const env = { DATA_DIR: dataDir, ...storeEnv(machine, server.masterKey) }
    expect(run(['restore', file], env).code).toBe(0)
    await track(openStore(machine, 1))`UPDATE nodes SET deleted_at = now()`
    const emptied = join(directory, 'emptied.backup')
    expect(run(['backup', emptied], env).code).toBe(0)
    expect(restoring(emptied, cluster).code).toBe(0)
    const sql = track(openStore(address, 1))
    const installation = await installationOf(sql)
    const nodes = await sql<{ host: string; port: number | null; uid: number | null }[]>`SELECT host, port, uid FROM nodes`
    expect(nodes.length).toBeGreaterThan(0)
    for (const node of nodes) expect(node).toEqual({ host: installation, port: null, uid: null })
  })
})

test('killed at any moment, a restore leaves an empty database, and can be run again', async () => {
  const store = await emptyDatabase()
  const env = { ...storeEnv(store, server.readSecret('master.key')), DATA_DIR: server.dataDir }
  const sql = track(openStore(store, 1))
  const accounts = async (): Promise<number> => (await sql`SELECT 1 FROM accounts`).length
  // The lock below keeps the restore from committing before it is killed.
  await migrate(sql)
  await lockingTransaction(sql, async (transaction) => {
    await transaction`LOCK TABLE accounts`
    const child = spawn(process.execPath, [SERVER, 'restore', file], { env: { PATH: process.env.PATH, ...env }, stdio: 'ignore' })
    const waiting = track(openStore(store, 1))
    await lockWaitOn(waiting, 'accounts')
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
  })
  expect(await accounts()).toBe(0)
  expect(run(['restore', file], env).code).toBe(0)
  expect(await accounts()).toBeGreaterThan(0)
})

test.each([
  ['an earlier version', (all: Migration[]) => all.slice(0, -1)],
  // 025 adds a column to `accounts`, which is in the backup.
  ['a version without one of the migrations', (all: Migration[]) => all.filter(({ version }) => version !== 25)],
])('a backup of %s is restored, and then migrated', async (_title, earlier) => {
  const [from, to] = [await emptyDatabase(), await emptyDatabase()]
  const migrations = readMigrations()
  const sql = track(openStore(from, 1))
  await migrate(sql, earlier(migrations))
  const key = randomBytes(32)
  const settingOnceIn = (name: string, value: Buffer) => settingOnce(sql, name, value)
  await checkMasterKey({ settingOnce: settingOnceIn, replaceSetting: async () => undefined }, masterKeyOf(key), undefined)
  await sql`INSERT INTO accounts (id, name) VALUES ('acc_00000000000000000000', 'early')`
  const path = join(directory, `${from.database}.backup`)
  await writeBackup(from, createWriteStream(path))
  expect(run(['restore', path], storeEnv(to, key.toString('base64'))).stderr).toMatch(/^Restored: 1 account, 0 nodes, 0 payments/)
  const restored = track(openStore(to, 1))
  expect(await restored`SELECT name FROM accounts`).toEqual([{ name: 'early' }])
  expect(await isUpToDate(restored)).toBe(true)
})

test('a backup is the state at one moment, whatever is written meanwhile', async () => {
  const store = await emptyDatabase()
  const sql = track(openStore(store, 2))
  await migrate(sql)
  const path = join(directory, 'moment.backup')
  const backup = await lockingTransaction(sql, async (transaction) => {
    await transaction`LOCK TABLE people`
    const writing = writeBackup(store, createWriteStream(path))
    await lockWaitOn(sql, 'people')
    // The backup reads this table after the one for which it waits.
    await transaction`INSERT INTO settings (name, value) VALUES ('late', '')`
    return { writing }
  })
  await backup.writing
  expect(contents(path)).toMatch(/\n\{"table":"settings"[^\n]+\n\\\.\n/)
})
