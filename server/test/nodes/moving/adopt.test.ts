import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { SERVER } from '../../../../testing/bundles.ts'
import { markMoved, openAgain, openWalletDirectory } from '../../../src/nodes/moving/wallet-directory.ts'
import { lookUpUser } from '../../../src/platform/linux.ts'
import { run } from '../../support/commands.ts'
import { type Created, daemonsIn, Yard } from '../../support/crash.ts'
import { lockingTransaction } from '../../support/database.ts'
import { eventually, type Key, temporaryDirectory } from '../../support/server.ts'
import { adopt, command, contentsOf, idOf, phoenixdOf, runDaemon } from './moving.ts'

/** C70: an existing phoenixd becomes a node, with its seed, passwords and channels. */

const FUNDED_SAT = 5_000
const VERSION = ['--version', '0.8.0']

let origin: Yard
let yard: Yard
let owner: Key

beforeAll(async () => {
  ;[origin, yard] = await Promise.all([new Yard().start(), new Yard().start()])
  owner = await yard.newKey(['nodes:write'])
})

const asOwner = (method: string, path: string) => yard.send(method, `/v1/nodes${path}`, { token: owner.key })

async function newPhoenixd(): Promise<{ directory: string; created: Created }> {
  const created = await origin.createReady()
  await origin.fund(created.node.id, FUNDED_SAT)
  return { directory: await phoenixdOf(origin, created), created }
}

const balanceOf = async (id: string, { credentials }: Created): Promise<number> =>
  (await yard.node(id, credentials.password, 'GET', '/getbalance')).balanceSat

const statusOf = async (id: string): Promise<string> => (await asOwner('GET', `/${id}`)).json().status

test('C70: an adopted wallet is a stopped node, and once started it has the passwords and the money it had', async () => {
  const { directory, created } = await newPhoenixd()
  const before = await origin.sql()`SELECT lightning_id FROM nodes WHERE id = ${created.node.id}`
  const outcome = await adopt(yard, directory, owner, ...VERSION, '--name', 'Kiosk')
  expect(outcome.stderr).not.toContain(created.credentials.seed)
  const id = idOf(outcome)
  expect((await asOwner('GET', `/${id}`)).json()).toMatchObject({ name: 'Kiosk', status: 'stopped' })
  // Its funds are unknown until its channels have been online.
  expect((await asOwner('DELETE', `/${id}`)).json().error.code).toBe('node_has_funds')
  await yard.expectOk(asOwner('POST', `/${id}/start`))
  expect(await balanceOf(id, created)).toBe(FUNDED_SAT)
  const info = await yard.node(id, created.credentials.restrictedPassword, 'GET', '/getinfo')
  expect(info.nodeId).toBe(before[0]?.lightning_id)
  expect(readdirSync(join(yard.dataDir, 'adopting'))).toEqual(['lock'])
})

test('C70: with --start, the service starts the node by itself', async () => {
  const { directory, created } = await newPhoenixd()
  const id = idOf(await adopt(yard, directory, owner, ...VERSION, '--start'))
  await expect.poll(() => statusOf(id)).toBe('ready')
  expect(await balanceOf(id, created)).toBe(FUNDED_SAT)
})

test('C70: a repeated adoption changes nothing, and never puts old channel data back', async () => {
  const { directory, created } = await newPhoenixd()
  const copy = `${directory}-copy`
  cpSync(directory, copy, { recursive: true })
  const id = idOf(await adopt(yard, directory, owner, ...VERSION))
  await yard.expectOk(asOwner('POST', `/${id}/start`))
  await yard.fund(id, FUNDED_SAT)
  const daemon = yard.daemon(id)
  // Tries the directory that was adopted, and a copy that was made before.
  for (const path of [directory, copy]) {
    const again = await adopt(yard, path, owner, ...VERSION, '--start')
    expect(again.stderr).toMatch(/^Already adopted/)
    expect(idOf(again)).toBe(id)
  }
  expect(yard.daemon(id)).toEqual(daemon)
  expect(await balanceOf(id, created)).toBe(2 * FUNDED_SAT)
  const other = await yard.newKey()
  expect(await adopt(yard, directory, other, ...VERSION)).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('already has this seed'),
  })
})

test('C70: no daemon starts in the directory afterwards, and another installation refuses it', async () => {
  const { directory, created } = await newPhoenixd()
  const id = idOf(await adopt(yard, directory, owner, ...VERSION))
  const before = contentsOf(directory)
  const daemon = await runDaemon(directory)
  await expect.poll(() => daemon.exitCode).toBe(1)
  expect(daemon.said()).toMatch(/mnemonic/)
  expect(contentsOf(directory)['seed.dat']).toBe(before['seed.dat'])
  // Nothing is lost: the words are in the renamed file.
  expect(readFileSync(join(directory, 'seed.dat.moved'), 'utf8')).toBe(created.credentials.seed)
  const third = await new Yard().start()
  const outcome = await adopt(third, directory, await third.newKey(), ...VERSION)
  expect(outcome).toMatchObject({ code: 78, stderr: expect.stringContaining(`was moved to ${id} already`) })
})

test('C70: the directory of a running daemon is refused, and nothing changes', async () => {
  const { directory } = await newPhoenixd()
  const daemon = await runDaemon(directory)
  const before = contentsOf(directory)
  const outcome = await adopt(yard, directory, owner, ...VERSION)
  expect(outcome).toMatchObject({ code: 78, stderr: expect.stringContaining(`in use by process ${daemon.pid};`) })
  expect(contentsOf(directory)).toEqual(before)
  expect(daemon.exitCode).toBeNull()
  daemon.kill('SIGKILL')
  await once(daemon, 'exit')
  idOf(await adopt(yard, directory, owner, ...VERSION))
})

test('C70: data that is written until the seed is replaced is adopted too', async () => {
  const { directory } = await newPhoenixd()
  const journal = `${readdirSync(directory).find((name) => name.endsWith('.db'))}-journal`
  const sql = yard.sql()
  // The lock on the account makes the command wait after it has read the directory.
  const outcome = await lockingTransaction(sql, async (transaction) => {
    await transaction`SELECT 1 FROM accounts WHERE id = ${owner.accountId} FOR UPDATE`
    const adopting = adopt(yard, directory, owner, ...VERSION)
    const waiting = () => sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    await eventually(async () => (await waiting()).length > 0, 'the command to wait')
    writeFileSync(join(directory, journal), 'written late')
    return { adopting }
  })
  const id = idOf(await outcome.adopting)
  expect(readFileSync(join(yard.directory(id), journal), 'utf8')).toBe('written late')
})

test('C70: a seed that a node has, or a deleted one had, is refused', async () => {
  const created = await yard.createReady()
  const directory = await phoenixdOf(yard, created)
  const before = contentsOf(directory)
  const refused = async (says: string): Promise<void> => {
    expect(await adopt(yard, directory, owner, ...VERSION)).toMatchObject({ code: 78, stderr: expect.stringContaining(says) })
    expect(contentsOf(directory)).toEqual(before)
  }
  await refused(`${created.node.id} already has this seed`)
  await yard.expectOk(yard.v1('DELETE', `/${created.node.id}?force=true`))
  await refused(`${created.node.id} has this seed and is deleted`)
  await yard.sql()`UPDATE nodes SET operation = NULL, desired_state = 'deleted', deleted_at = now() - interval '40 days',
    purging_at = now(), purged_at = now() WHERE id = ${created.node.id}`
  await refused(`${created.node.id} had this seed and was deleted for good`)
})

describe('C70: refused with one line, and nothing changes', () => {
  let whole: string
  let seed: string
  beforeAll(async () => {
    const { directory, created } = await newPhoenixd()
    ;[whole, seed] = [directory, created.credentials.seed]
  })

  const databaseIn = (directory: string): string =>
    join(directory, readdirSync(directory).find((name) => name.endsWith('.db')) ?? 'no database')
  const conf = (directory: string, line: string): void => appendFileSync(join(directory, 'phoenix.conf'), `\n${line}\n`)

  test.each<[what: string, says: string, spoil: (directory: string) => void]>([
    ['no seed', 'has no seed.dat', (directory) => rmSync(join(directory, 'seed.dat'))],
    [
      'words that are not a seed',
      'without valid recovery words',
      (directory) => writeFileSync(join(directory, 'seed.dat'), 'abandon ability'),
    ],
    ['no configuration', 'has no phoenix.conf', (directory) => rmSync(join(directory, 'phoenix.conf'))],
    ['no channels', 'has no channel database', (directory) => rmSync(databaseIn(directory))],
    ['empty channels', 'has an empty phoenix.regtest', (directory) => truncateSync(databaseIn(directory))],
    [
      'channels of another seed',
      'has no channel database',
      (directory) => renameSync(databaseIn(directory), join(directory, 'phoenix.regtest.000000.db')),
    ],
    ['another network', 'for another network', (directory) => conf(directory, 'chain=testnet')],
    ['a seed elsewhere', 'that names another seed', (directory) => conf(directory, 'seed-path=/root/seed.dat')],
    [
      'no separate limited access',
      'the same password',
      (directory) => conf(directory, 'http-password=the-same-for-both\nhttp-password-limited-access=the-same-for-both'),
    ],
    ['a password that can be guessed', 'less than 16 characters', (directory) => conf(directory, 'http-password=satoshi')],
    ['auto-liquidity off', 'auto-liquidity', (directory) => conf(directory, 'auto-liquidity=off')],
    ['a link', 'a link or a special file: "exports"', (directory) => symlinkSync('/etc', join(directory, 'exports'))],
    [
      'a link for its channels',
      'a link or a special file',
      (directory) => {
        const database = databaseIn(directory)
        renameSync(database, `${directory}.db`)
        symlinkSync(`${directory}.db`, database)
      },
    ],
    ['channels with a second name', 'that is linked', (directory) => linkSync(databaseIn(directory), `${directory}.link`)],
    ['a pipe', 'a link or a special file', (directory) => execFileSync('mkfifo', [join(directory, 'phoenix.log')])],
    [
      'a manifest of a later version',
      'cannot read',
      (directory) => writeFileSync(join(directory, 'boltyard.json'), '{"format":2}'),
    ],
  ])('%s', async (_what, says, spoil) => {
    const directory = join(temporaryDirectory(), 'phoenix')
    cpSync(whole, directory, { recursive: true })
    rmSync(join(directory, 'phoenix.log'), { force: true })
    spoil(directory)
    const before = contentsOf(directory)
    const outcome = await adopt(yard, directory, owner, ...VERSION)
    expect(outcome).toEqual({ code: 78, signal: null, stderr: expect.stringMatching(/^[^\n]+\n$/) })
    expect(outcome.stderr).toContain(says)
    expect(outcome.stderr).not.toContain(seed)
    expect(contentsOf(directory)).toEqual(before)
  })

  test.each<[what: string, says: string, args: (directory: string) => string[]]>([
    ['no version', '--version', (directory) => [directory, '--account', owner.accountId]],
    [
      'a version that is not offered here',
      'is not one of those',
      (directory) => [directory, '--account', owner.accountId, '--version', '0.9.0'],
    ],
    [
      'no account',
      '--account: required, because this wallet was never part of this installation',
      (directory) => [directory, ...VERSION],
    ],
    ['an unknown account', 'no such account', (directory) => [directory, '--account', 'acct_00000000000000000000', ...VERSION]],
    ['an unknown option', 'usage: adopt', (directory) => [directory, '--account', owner.accountId, ...VERSION, '--force']],
    [
      'a name that is too long',
      '16 characters',
      (directory) => [directory, '--account', owner.accountId, ...VERSION, '--name', 'a'.repeat(17)],
    ],
    [
      'a path that is not a directory',
      'cannot read',
      (directory) => [`${directory}/missing`, '--account', owner.accountId, ...VERSION],
    ],
  ])('%s', async (_what, says, args) => {
    const before = contentsOf(whole)
    const outcome = await command(yard, ['adopt', ...args(whole)])
    expect(outcome).toEqual({ code: 78, signal: null, stderr: expect.stringMatching(/^[^\n]+\n$/) })
    expect(outcome.stderr).toContain(says)
    expect(contentsOf(whole)).toEqual(before)
  })

  test('the database of a machine, on Kubernetes', async () => {
    const [cluster, before] = [
      { NODE_RUNTIME: 'kubernetes', KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' },
      contentsOf(whole),
    ]
    const hub = { SANDBOX_HUB: '127.0.0.1:1', SANDBOX_HUB_NODE_TOKEN: 'n'.repeat(32), SANDBOX_HUB_CONTROL_TOKEN: 'c'.repeat(32) }
    const NODE_VERSIONS = `0.8.0=registry.example/sandboxd@sha256:${'a'.repeat(64)}`
    const env = { ...yard.sharedStoreEnv, ...cluster, ...hub, NODE_VERSIONS, NODE_CALLBACK_URL: 'http://127.0.0.1:1' }
    for (const args of [
      ['adopt', whole, '--account', owner.accountId, ...VERSION],
      ['release', 'node_00000000000000000000', '/released'],
    ])
      expect(run(args, env)).toEqual({
        code: 78,
        stdout: '',
        stderr: expect.stringMatching(/^DATABASE_URL: no service has run on Kubernetes with this database\n$/),
      })
    expect(contentsOf(whole)).toEqual(before)
  })

  test('an account with as many nodes as it may have', async () => {
    const [small, before] = [await new Yard({ env: { MAX_NODES_PER_ACCOUNT: '1' } }).start(), contentsOf(whole)]
    const key = await small.newKey(['nodes:write'])
    await small.expectOk(small.send('POST', '/v1/nodes', { token: key.key, json: {} }))
    expect(await adopt(small, whole, key, ...VERSION)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('at most 1 node'),
    })
    expect(contentsOf(whole)).toEqual(before)
  })
})

test('C70: a wallet that is to start at once needs credit; a stopped one does not', async () => {
  const { directory } = await newPhoenixd()
  const before = contentsOf(directory)
  const dear = await new Yard({ env: { NODE_PRICE_SAT_PER_DAY: '100', SIGNUP_CREDIT_SAT: '0' } }).start()
  const key = await dear.newKey()
  expect(await adopt(dear, directory, key, ...VERSION, '--start')).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('credit does not cover'),
  })
  expect(contentsOf(directory)).toEqual(before)
  idOf(await adopt(dear, directory, key, ...VERSION))
})

test('C70: with the embedded database, the service must be running', async () => {
  const { directory, created } = await newPhoenixd()
  const local = await new Yard({ store: 'embedded' }).start()
  const { accountId, apiKey } = local.firstRun
  const adoptHere = () =>
    run(['adopt', directory, '--account', accountId, ...VERSION], { DATA_DIR: local.dataDir, NODE_PRICE_SAT_PER_DAY: '0' })
  const before = contentsOf(directory)
  await local.stop()
  expect(adoptHere()).toEqual({
    code: 1,
    stdout: '',
    stderr: 'cannot reach the database; this command needs a running service\n',
  })
  expect(contentsOf(directory)).toEqual(before)
  await local.start()
  const { code, stderr } = adoptHere()
  const id = idOf({ code, signal: null, stderr })
  await local.expectOk(local.send('POST', `/v1/nodes/${id}/start`, { token: apiKey }))
  expect((await local.node(id, created.credentials.password, 'GET', '/getbalance')).balanceSat).toBe(FUNDED_SAT)
})

test('C70: of several adoptions at once, one makes the node', async () => {
  const { directory } = await newPhoenixd()
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => adopt(yard, directory, owner, ...VERSION)))
  const ids = outcomes.filter(({ code }) => code === 0).map(idOf)
  expect(new Set(ids).size).toBe(1)
  for (const { code } of outcomes) expect([0, 75]).toContain(code)
  expect(existsSync(yard.directory(ids[0] ?? ''))).toBe(true)
})

test('C70: settings that nodes do not have are named, and missing passwords are generated', async () => {
  const { directory } = await newPhoenixd()
  writeFileSync(
    join(directory, 'phoenix.conf'),
    'http-password=kept-from-before\nwebhook=https://shop.example/paid\nmax-mining-fee=7000\n',
  )
  const outcome = await adopt(yard, directory, owner, ...VERSION)
  expect(outcome.stderr).toContain('not kept, because nodes do not support them: webhook, max-mining-fee.\n')
  expect(outcome.stderr).not.toContain('shop.example')
  const id = idOf(outcome)
  await yard.expectOk(asOwner('POST', `/${id}/start`))
  await yard.node(id, 'kept-from-before', 'GET', '/getbalance')
  expect(yard.conf(id)).toMatch(/^http-password-limited-access=[0-9a-f]{64}$/m)
})

test('C70: data that a node has written since is never replaced, even if an older database is restored', async () => {
  const { directory, created } = await newPhoenixd()
  const copy = `${directory}-copy`
  cpSync(directory, copy, { recursive: true })
  const before = contentsOf(copy)
  const id = idOf(await adopt(yard, directory, owner, ...VERSION))
  await yard.expectOk(asOwner('POST', `/${id}/start`))
  await yard.fund(id, FUNDED_SAT)
  await yard.expectOk(asOwner('POST', `/${id}/stop`))
  const sql = yard.sql()
  const [{ lightning_id: lightningId } = { lightning_id: '' }] = await sql`SELECT lightning_id FROM nodes WHERE id = ${id}`
  await sql`DELETE FROM node_secrets WHERE node_id = ${id}`
  await sql`DELETE FROM nodes WHERE id = ${id}`
  expect(await adopt(yard, directory, owner, ...VERSION)).toMatchObject({
    code: 78,
    stderr: expect.stringContaining(`was moved to ${id} already`),
  })
  expect(existsSync(join(yard.dataDir, 'adopting', lightningId))).toBe(false)
  // The database does not know the node, but its directory is newer than the copy.
  expect(await adopt(yard, copy, owner, ...VERSION)).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('may be newer; adopt that directory'),
  })
  // A command that died before its last step has left this record.
  const { dev, ino } = statSync(directory)
  const record = { nodeId: id, source: { path: directory, dev: String(dev), ino: String(ino) } }
  writeFileSync(join(yard.dataDir, 'adopting', lightningId), JSON.stringify(record))
  for (const path of [directory, copy])
    expect(await adopt(yard, path, owner, ...VERSION)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('is newer; adopt that directory'),
    })
  expect(contentsOf(copy)).toEqual(before)
  // The node's run.json, unlike the database, still records which version ran last.
  expect(await adopt(yard, yard.directory(id), owner, '--version', '0.7.0')).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('last ran "0.8.0"'),
  })
  // The way back: the newer directory itself can be adopted.
  const again = idOf(await adopt(yard, yard.directory(id), owner, ...VERSION))
  await yard.expectOk(asOwner('POST', `/${again}/start`))
  expect(await balanceOf(again, created)).toBe(2 * FUNDED_SAT)
  expect(daemonsIn(yard.dataDir).filter(({ nodeId }) => nodeId === id)).toEqual([])
})

test('C70: if the outcome is unknown, the operator is told to repeat the command and to start the wallet nowhere else', async () => {
  const { directory } = await newPhoenixd()
  const sql = yard.sql()
  await sql`ALTER TABLE nodes ADD CONSTRAINT dies CHECK (adopted_at IS NULL OR pg_terminate_backend(pg_backend_pid())) NOT VALID`
  const outcome = await adopt(yard, directory, owner, ...VERSION)
  await sql`ALTER TABLE nodes DROP CONSTRAINT dies`
  expect(outcome.code).toBe(1)
  expect(outcome.stderr).toContain('cannot reach the database')
  expect(outcome.stderr).toContain('may have been adopted: repeat this command')
  idOf(await adopt(yard, directory, owner, ...VERSION))
})

test.skipIf(process.getuid?.() !== 0)('C70: an unprivileged user is not misled by daemons that it cannot inspect', async () => {
  const { uid, gid } = lookUpUser('nobody') ?? { uid: 0, gid: 0 }
  const { directory } = await newPhoenixd()
  const daemon = await runDaemon(directory)
  // As the instructions say, the files are given to the service's user. The daemon still runs as the user that owned them before.
  execFileSync('chown', ['-R', `${uid}:${gid}`, directory])
  const before = contentsOf(directory)
  const root = temporaryDirectory()
  chownSync(root, uid, gid)
  const user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', process.execPath, SERVER]
  const local = await new Yard({ dataDir: join(root, 'data'), command: user }).start()
  const key = await local.newKey(['nodes:write'])
  const [program = '', ...args] = [...user, 'adopt', directory, '--account', key.accountId, ...VERSION]
  const env = { PATH: process.env.PATH, DATA_DIR: local.dataDir, ...local.sharedStoreEnv, ...local.env }
  const { status, stderr } = spawnSync(program, args, { env, encoding: 'utf8' })
  expect(stderr).toMatch(new RegExp(`cannot see whether process (\\d+, )*${daemon.pid}[,\\s]`))
  expect(status).toBe(78)
  expect(contentsOf(directory)).toEqual(before)
})

test('C70: the directory that was checked is the one that is written to and copied, even if its owner puts a link in its place', async () => {
  const { directory } = await newPhoenixd()
  const [aside, victim] = [`${directory}-aside`, `${directory}-victim`]
  cpSync(directory, victim, { recursive: true })
  const before = contentsOf(victim)
  const wallet = openWalletDirectory(directory, 'regtest')
  renameSync(directory, aside)
  symlinkSync(victim, directory)
  markMoved(wallet, 'node_00000000000000000000')
  expect(contentsOf(victim)).toEqual(before)
  expect(readFileSync(join(aside, 'seed.dat'), 'utf8')).toContain('has moved this wallet to node_00000000000000000000')
  expect(openAgain(wallet).movedTo).toBe('node_00000000000000000000')
})

test('C70: phoenixd’s own files are recognized: readable by all, with SQLite’s log beside the database', () => {
  const directory = temporaryDirectory()
  const words = `${'abandon '.repeat(11)}about`
  const files = ['phoenix.mainnet.02f600.db', 'phoenix.mainnet.02f600.db-wal', 'phoenix.mainnet.02f600.db-shm', 'phoenix.log']
  for (const name of files) writeFileSync(join(directory, name), randomBytes(64), { mode: 0o644 })
  // The testnet wallet of the same seed.
  writeFileSync(join(directory, 'phoenix.testnet3.03ae1f.db'), randomBytes(64))
  mkdirSync(join(directory, 'exports'))
  writeFileSync(join(directory, 'seed.dat'), words, { mode: 0o644 })
  const [password, limited, webhook] = [0, 1, 2].map(() => randomBytes(32).toString('hex'))
  const conf = `\nhttp-password=${password}\nhttp-password-limited-access=${limited}\nwebhook-secret=${webhook}`
  writeFileSync(join(directory, 'phoenix.conf'), conf, { mode: 0o644 })
  const opened = openWalletDirectory(directory, 'mainnet')
  expect(opened).toMatchObject({
    seed: words,
    lightningId: '02f6007dd7f72e8753f189a55d3893190611d7b16d9625b7d10df528bf38e34446',
    conf: { password, restrictedPassword: limited, webhookSecret: webhook, notKept: [] },
    databaseFiles: files.slice(0, 2),
    movedTo: undefined,
  })
  expect(openWalletDirectory(directory, 'testnet').databaseFiles).toEqual(['phoenix.testnet3.03ae1f.db'])
  expect(() => openWalletDirectory(directory, 'regtest')).toThrow('is a wallet for mainnet; this installation uses regtest')
  expect(statSync(join(directory, 'seed.dat')).mode & 0o777).toBe(0o644)
})
