import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { identify, listenerUid, lookUpUser, uidOf } from '../../src/platform/linux.ts'
import { copyTree, giveTree, removeTree } from '../../src/platform/trees.ts'
import { sandboxd, versions } from '../support/crash.ts'
import { type Created, directoryOf, infoOf, isRunning, newOwner, type Owner, runningPidOf, stateOf } from '../support/nodes.ts'
import { eventually, PROCESS, Server, temporaryDirectory } from '../support/server.ts'

/**
 * What an attacker who controls a node's process can do to the host and to other nodes. Needs root, because only root can run processes as
 * other users.
 */

const isRoot = process.getuid?.() === 0
if (!isRoot) process.stderr.write('SKIPPED: the tests of hostile node users need root\n')

/** Runs a script as this user, without any other rights. Returns its output. */
function as(uid: number, script: string, ...args: string[]): string {
  const options = { uid, gid: uid, cwd: '/', env: { PATH: process.env.PATH }, encoding: 'utf8' } as const
  return execFileSync('sh', ['-c', script, 'sh', ...args], options)
}

const placeOf = (server: Server, nodeId: string): { port: number; uid: number } =>
  JSON.parse(readFileSync(join(server.dataDir, 'run', nodeId, 'place.json'), 'utf8'))

const refused = (uid: number, script: string, ...args: string[]): boolean => {
  try {
    as(uid, `${script} 2>/dev/null`, ...args)
    return false
  } catch {
    // the script was not permitted to do it
    return true
  }
}

describe.skipIf(!isRoot)('a hostile node', () => {
  const MASTER_KEY = randomBytes(32).toString('base64')
  const OPERATOR_TOKEN = randomBytes(24).toString('hex')
  let server: Server
  let owner: Owner
  let made: Created
  let other: Created
  let uid: number
  /** A file of root to which the node creates links. If it changes or its content is shown, the service has followed a link. */
  let canary: string
  const SECRET = 'canary of root, not to be read'

  beforeAll(async () => {
    const env = { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0', MASTER_KEY, OPERATOR_TOKEN }
    server = await new Server({ command: PROCESS, store: 'embedded', env }).start()
    owner = await newOwner(server)
    ;[made, other] = await Promise.all([owner.createReady(), (await newOwner(server)).createReady()])
    uid = uidOf(runningPidOf(server, made.node)) ?? 0
    canary = join(temporaryDirectory(), 'canary')
  })

  const plant = (): void => {
    rmSync(canary, { force: true })
    writeFileSync(canary, SECRET, { mode: 0o600 })
  }
  const expectUntouched = (): void => {
    const { uid: ownerUid, mode } = lstatSync(canary)
    expect([ownerUid, mode & 0o777, readFileSync(canary, 'utf8')]).toEqual([0, 0o600, SECRET])
  }

  test('security 10: every node and the hub have their own user, from the range and never the database’s, and their own HOME', () => {
    const pids = [runningPidOf(server, made.node), runningPidOf(server, other.node), server.hubPid]
    const uids = pids.map((pid) => uidOf(pid) ?? 0)
    expect(new Set(uids).size).toBe(3)
    for (const one of uids) expect(one >= 50_000 && one <= 54_999).toBe(true)
    expect(uids).not.toContain(uidOf(server.postmasterPid))
    const homes = pids.map((pid) =>
      readFileSync(`/proc/${pid}/environ`, 'latin1')
        .split('\0')
        .find((one) => one.startsWith('HOME=')),
    )
    expect(homes).toEqual(
      [made, other].map(({ node }) => `HOME=${directoryOf(server, node)}`).concat(`HOME=${server.dataDir}/hub`),
    )
  })

  test('security 10: a node can read no other node’s seed, passwords or log, nor the hub’s tokens, nor any file of the service or the database', () => {
    expect(as(uid, 'cat "$1"', join(directoryOf(server, made.node), 'seed.dat'))).toBe(made.credentials.seed)
    const closed = [
      join(directoryOf(server, other.node), 'seed.dat'),
      join(directoryOf(server, other.node), 'phoenix.conf'),
      join(server.dataDir, 'hub', 'hub.conf'),
      join(stateOf(server, made.node), 'run.json'),
      join(stateOf(server, made.node), 'daemon.log'),
      join(server.dataDir, 'run', 'postgres.log'),
      join(server.dataDir, 'postgres', 'data', 'PG_VERSION'),
      ...['first-run.json', 'host.id', 'postgres.password'].map((name) => join(server.dataDir, name)),
    ]
    for (const path of closed) {
      expect([path, existsSync(path)]).toEqual([path, true])
      expect([path, refused(uid, 'cat "$1"', path)]).toEqual([path, true])
    }
    for (const path of [
      server.dataDir,
      join(server.dataDir, 'nodes'),
      join(server.dataDir, 'run'),
      join(server.dataDir, 'software'),
    ])
      expect([path, refused(uid, 'touch "$1/x"', path)]).toEqual([path, true])
    expect(refused(uid, `kill -0 ${runningPidOf(server, other.node)}`)).toBe(true)
  })

  /** Links at the places that the service reads or writes during the restart. */
  const redirections: [name: string, script: string][] = [
    ...['phoenix.conf', 'phoenix.conf.new', 'run.json', 'run.json.new', 'daemon.log', '.lock.new', 'anything'].map(
      (name): [string, string] => [`a link ${name}`, `ln -sf "$1" ./${name}`],
    ),
    ['a link in a directory', 'mkdir -p below && ln -sf "$1" below/link'],
    ['a directory that is a link to root’s', 'ln -sfn "$(dirname "$1")" directory'],
  ]
  test.each(redirections)('security 2: %s in its directory does not mislead the service at a restart', async (_name, script) => {
    plant()
    const directory = directoryOf(server, made.node)
    as(uid, `cd "$2" && ${script}`, canary, directory)
    const before = runningPidOf(server, made.node)
    expect((await owner.act(made.node.id, 'restart')).status).toBe('ready')
    expect(runningPidOf(server, made.node)).not.toBe(before)
    expectUntouched()
    expect(lstatSync(join(directory, 'phoenix.conf')).isSymbolicLink()).toBe(false)
    expect((await infoOf(made)).nodeId).toHaveLength(66)
    as(uid, 'cd "$1" && rm -rf below directory anything run.json* daemon.log .lock.new', directory)
  })

  test('security 2: a link seed.dat.new in its directory does not mislead the service at a repeated first start', async () => {
    plant()
    const directory = directoryOf(server, made.node)
    const { nodeId } = await infoOf(made)
    await owner.act(made.node.id, 'stop')
    as(uid, 'cd "$2" && rm seed.dat && ln -s "$1" seed.dat.new', canary, directory)
    // Simulates that the service died between starting the process and recording it. Only then is a seed written to a directory that the
    // node's user has already been able to change. The new epoch keeps a running step from overwriting this.
    await server.sql()`
      UPDATE nodes SET lease_epoch = lease_epoch + 1, history = history || '{"version": null}' WHERE id = ${made.node.id}`
    expect((await owner.act(made.node.id, 'start')).status).toBe('ready')
    expectUntouched()
    expect(lstatSync(join(directory, 'seed.dat')).isFile()).toBe(true)
    expect((await infoOf(made)).nodeId).toBe(nodeId)
  })

  test('security 2: a link in place of its seed is refused with a reason, and its target is not shown', async () => {
    plant()
    const directory = directoryOf(server, made.node)
    await owner.act(made.node.id, 'stop')
    as(uid, 'cd "$2" && mv seed.dat kept && ln -s "$1" seed.dat', canary, directory)
    const answer = await owner.send('POST', `/nodes/${made.node.id}/start`)
    expect(answer.status).toBe(502)
    const shown = await owner.get(made.node.id)
    expect([shown.status, shown.failureMessage?.includes('canary')]).toEqual(['failed', false])
    expectUntouched()
    as(uid, 'cd "$1" && mv -f kept seed.dat', directory)
    expect((await owner.act(made.node.id, 'start')).status).toBe('ready')
  })

  test('security 2: a forged record that names another process has no effect: its own process is stopped, the other lives', async () => {
    const victim = spawn('sleep', ['10000'], { stdio: 'ignore', env: {} })
    const own = runningPidOf(server, made.node)
    const forged = { attempt: 'x', port: 1, version: '0.8.0', run: 1, logFrom: 0, process: identify(victim.pid ?? 0) }
    as(uid, 'cd "$1" && printf %s "$2" > run.json', directoryOf(server, made.node), JSON.stringify(forged))
    // When it starts, the service looks for records of earlier versions in this place.
    await server.restart()
    expect(runningPidOf(server, made.node)).toBe(own)
    expect((await owner.act(made.node.id, 'stop')).status).toBe('stopped')
    expect([isRunning(own), isRunning(victim.pid ?? 0)]).toEqual([false, true])
    victim.kill('SIGKILL')
    expect((await owner.act(made.node.id, 'start')).status).toBe('ready')
  })

  test('security 6: what its user can see of other processes, during a whole start of the service, contains no secret', async () => {
    // Reads the environment and arguments of every new process as fast as possible, because some exist only for milliseconds.
    const poller = `
      const { existsSync, readdirSync, readFileSync } = require('node:fs')
      const known = new Set(readdirSync('/proc'))
      const seen = new Set()
      let looks = 0
      process.stdout.write('ready')
      for (let until = Date.now(); Date.now() < until + 1000 || !existsSync(process.argv[1]); looks++) {
        if (Date.now() >= until + 1000) until = Date.now()
        for (const pid of readdirSync('/proc')) if (!known.has(pid)) for (const part of ['environ', 'cmdline'])
          try { seen.add(readFileSync('/proc/' + pid + '/' + part, 'latin1')) } catch {}
      }
      process.stdout.write(JSON.stringify({ looks, seen: [...seen] }))`
    const users = [uid, 50_000]
    const done = join(temporaryDirectory(), 'done')
    const pollers = users.map((one) => {
      const child = spawn(process.execPath, ['-e', poller, done], { uid: one, gid: one, cwd: '/', env: {} })
      const told = { text: '' }
      child.stdout.on('data', (chunk: Buffer) => {
        told.text += chunk
      })
      return { told, closed: new Promise((resolve) => child.on('close', resolve)) }
    })
    await eventually(() => pollers.every(({ told }) => told.text === 'ready'), 'the pollers')
    await server.restart()
    expect((await owner.act(made.node.id, 'restart')).status).toBe('ready')
    writeFileSync(done, '')
    const secrets = [
      MASTER_KEY,
      OPERATOR_TOKEN,
      ...Object.values(made.credentials),
      ...Object.values(other.credentials),
      server.readSecret('postgres.password'),
    ]
    for (const { told, closed } of pollers) {
      await closed
      const { looks, seen } = JSON.parse(told.text.slice('ready'.length)) as { looks: number; seen: string[] }
      expect(looks).toBeGreaterThan(1)
      expect(seen.length).toBeGreaterThan(1)
      expect(secrets.filter((secret) => seen.some((text) => text.includes(secret)))).toEqual([])
    }
  })

  test('security 10: a program that takes a node’s port while it is down gets its password neither from the service nor from callers', async () => {
    await owner.act(made.node.id, 'stop')
    const sql = server.sql()
    const { port } = placeOf(server, made.node.id)
    const squatter = `
      const { createServer } = require('node:net')
      createServer((socket) => socket.on('data', (chunk) => process.stdout.write(chunk))).listen(${port}, '127.0.0.1', () => process.stdout.write('listening'))`
    const otherUid = uidOf(runningPidOf(server, other.node)) ?? 0
    const child = spawn(process.execPath, ['-e', squatter], { uid: otherUid, gid: otherUid, cwd: '/', env: {} })
    let heard = ''
    child.stdout.on('data', (chunk: Buffer) => {
      heard += chunk
    })
    await eventually(() => heard === 'listening', 'the squatter')
    expect(listenerUid(port)).toBe(otherUid)
    // The node still counts as ready, as it does between its exit and the next check.
    await sql`
      UPDATE nodes SET lease_epoch = lease_epoch + 1, desired_state = 'running', status = 'ready', next_at = now() + interval '1 hour'
      WHERE id = ${made.node.id}`
    const basic = `Basic ${Buffer.from(`:${made.credentials.password}`).toString('base64')}`
    const answer = await server.send('GET', `/n/${made.node.id}/getinfo`, { headers: { authorization: basic } })
    expect(answer.status).toBe(502)
    const key = await server.newKey(['gateway:write'], owner.accountId)
    const payment = { protocol: 'l402', nodeId: made.node.id, amountSat: 10, description: 'x' }
    expect((await server.send('POST', '/v1/gateway/payments', { token: key.key, json: payment })).status).toBe(502)
    // The service moves the node to another port.
    await sql`UPDATE nodes SET next_at = now() WHERE id = ${made.node.id}`
    expect((await server.restart()).port).toBeGreaterThan(0)
    await eventually(async () => (await infoOf(made)).nodeId, 'the node on another port')
    expect(placeOf(server, made.node.id).port).not.toBe(port)
    expect(heard).toBe('listening')
    child.kill('SIGKILL')
  })
})

describe.skipIf(!isRoot)('trees of another user', () => {
  const UID = 50_123
  const SECRET = 'root only'
  let root: string
  let tree: string

  beforeAll(() => {
    root = temporaryDirectory()
    writeFileSync(join(root, 'secret'), SECRET, { mode: 0o600 })
    mkdirSync(join(root, 'kept'))
    writeFileSync(join(root, 'kept', 'file'), 'kept')
  })

  const build = (): void => {
    tree = join(root, 'tree')
    mkdirSync(join(tree, 'below'), { recursive: true, mode: 0o700 })
    writeFileSync(join(tree, 'below', 'own'), 'own', { mode: 0o640 })
    symlinkSync(join(root, 'kept'), join(tree, 'link to a directory'))
    symlinkSync(join(root, 'secret'), join(tree, 'below', 'link to a file'))
    for (const path of ['', 'below', 'below/own']) chownSync(join(tree, path), UID, UID)
    execFileSync('chown', ['-h', `${UID}:${UID}`, join(tree, 'link to a directory'), join(tree, 'below', 'link to a file')])
    execFileSync('mkfifo', [join(tree, 'pipe')])
    chownSync(join(tree, 'pipe'), UID, UID)
    linkSync(join(root, 'secret'), join(tree, 'hard link'))
  }
  const expectKept = (): void => {
    expect(readFileSync(join(root, 'kept', 'file'), 'utf8')).toBe('kept')
    expect([statSync(join(root, 'secret')).uid, readFileSync(join(root, 'secret'), 'utf8')]).toEqual([0, SECRET])
    expect([statSync(join(root, 'kept')).uid, statSync(join(root, 'kept', 'file')).uid]).toEqual([0, 0])
  }

  test('security 2: a copy follows no link, waits for no pipe, and contains nothing of a third user', async () => {
    build()
    await copyTree(tree, join(root, 'copy'))
    expect(entriesBelow(join(root, 'copy'))).toEqual(['below', 'below/link to a file', 'below/own', 'link to a directory'])
    expect(lstatSync(join(root, 'copy', 'below', 'link to a file')).isSymbolicLink()).toBe(true)
    for (const path of ['', 'below', 'below/own']) {
      const { uid, mode } = lstatSync(join(root, 'copy', path))
      expect([path, uid, mode & 0o077]).toEqual([path, 0, 0])
    }
    expectKept()
    await removeTree(join(root, 'copy'))
    await removeTree(tree)
  })

  test('security 2: changing the owner of a tree does not affect the targets of links, including hard links', async () => {
    build()
    await giveTree(tree, { uid: UID + 1, gid: UID + 1 })
    const uids = ['', 'below', 'below/own', 'hard link'].map((path) => lstatSync(join(tree, path)).uid)
    expect(uids).toEqual([UID + 1, UID + 1, UID + 1, 0])
    expectKept()
    await removeTree(tree)
  })

  test('security 2: removing a tree keeps the targets of links; a link in its place is itself removed', async () => {
    build()
    await removeTree(tree)
    expect(existsSync(tree)).toBe(false)
    symlinkSync(join(root, 'kept'), tree)
    await removeTree(tree)
    expect(lstatSync(tree, { throwIfNoEntry: false })).toBeUndefined()
    await removeTree(tree)
    expectKept()
  })

  test('security 2: while its owner keeps swapping directories for links, removing and copying a tree changes nothing outside', async () => {
    tree = join(root, 'tree')
    const swap = `
      const fs = require('node:fs')
      process.chdir(${JSON.stringify(tree)})
      process.stdout.write('ready')
      for (;;) {
        try { fs.mkdirSync('a') } catch {}
        try { fs.mkdirSync('b') } catch {}
        try { fs.writeFileSync('a/file', 'mine') } catch {}
        try { fs.renameSync('a', 'aside') } catch {}
        try { fs.symlinkSync(${JSON.stringify(join(root, 'kept'))}, 'a') } catch {}
        try { fs.unlinkSync('a') } catch {}
        try { fs.renameSync('aside', 'a') } catch {}
      }`
    mkdirSync(tree, { mode: 0o700 })
    chownSync(tree, UID, UID)
    // The hostile process must be able to reach its directory below this one.
    chmodSync(root, 0o711)
    const child = spawn(process.execPath, ['-e', swap], { uid: UID, gid: UID, cwd: '/', env: {} })
    await new Promise((resolve) => child.stdout.once('data', resolve))
    for (let round = 0; round < 200; round++) {
      const copy = join(root, `copy-${round}`)
      // Missing files are an expected error, after which the service would retry. Files from outside the tree must never be copied.
      await copyTree(tree, copy).catch(expectRace)
      for (const path of entriesBelow(copy))
        if (path.endsWith('file')) expect(readFileSync(join(copy, path), 'utf8')).not.toBe('kept')
      await removeTree(copy)
      await removeTree(join(tree, 'a')).catch(expectRace)
    }
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('close', resolve))
    await removeTree(tree)
    expectKept()
  })
})

/** Does not follow links. */
function entriesBelow(directory: string): string[] {
  return execFileSync('find', ['-P', directory, '-mindepth', '1', '-printf', '%P\\n'], { encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '')
    .sort()
}

function expectRace(error: NodeJS.ErrnoException): void {
  expect(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENOTEMPTY', 'EISDIR', 'EEXIST', 'EPERM', 'EINVAL']).toContain(error.code)
}

describe.skipIf(!isRoot)('an installation of an earlier version', () => {
  test('security 2 C17: records are moved; a running node continues unchanged and gets its own user at its next start', async () => {
    const nobody = lookUpUser('nobody') ?? { uid: 0, gid: 0 }
    const directory = temporaryDirectory()
    const daemon = sandboxd(directory, '0.8.0')
    const server = await new Server({
      env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0', ...versions({ '0.8.0': daemon }) },
    }).start()
    const owner = await newOwner(server)
    const made = await owner.createReady()
    const forged = await owner.createReady()
    const sql = server.sql()
    const rows = [made, forged].map(({ node: { id } }) => ({ id, port: placeOf(server, id).port }))
    for (const { id, port } of rows) await sql`UPDATE nodes SET uid = NULL, port = ${port} WHERE id = ${id}`
    await server.stop()

    // The state that an earlier version left: everything is in the node's directory, and all nodes have the same user.
    const old = new Map<string, number>()
    for (const { id, port } of rows) {
      const [home, state] = [join(server.dataDir, 'nodes', id), join(server.dataDir, 'run', id)]
      const run = JSON.parse(readFileSync(join(state, 'run.json'), 'utf8'))
      process.kill(run.process.pid, 'SIGKILL')
      await eventually(() => !isRunning(run.process.pid), 'the end of the new one')
      renameSync(join(state, 'daemon.log'), join(home, 'daemon.log'))
      rmSync(state, { recursive: true })
      execFileSync('chown', ['-R', `${nobody.uid}:${nobody.gid}`, home])
      const args = ['--no-fork', '--nonblock', join(home, '.lock'), daemon]
      const child = spawn(
        'flock',
        [...args, '--agree-to-terms-of-service', '--http-bind-ip=127.0.0.1', `--http-bind-port=${port}`],
        {
          ...nobody,
          cwd: home,
          env: { PATH: process.env.PATH, PHOENIX_DATADIR: home, HOME: home, BOLTYARD_NODE_ID: id, BOLTYARD_ATTEMPT: run.attempt },
          detached: true,
          stdio: 'ignore',
        },
      )
      old.set(id, child.pid ?? 0)
      const { uid: _uid, ...identity } = identify(child.pid ?? 0) ?? { uid: 0 }
      const { uid: _, ...record } = run
      // The forged record names the process of this test, which belongs to root.
      const process_ = id === forged.node.id ? { ...identify(process.pid), uid: undefined } : identity
      writeFileSync(join(home, 'run.json'), JSON.stringify({ ...record, process: process_ }), { mode: 0o600 })
    }
    // Use a new port for the service, because another program may have taken the old one in the meantime.
    server.port = 0
    await server.start()
    const answers = async (): Promise<string> => (await infoOf({ ...made, node: await owner.get(made.node.id) })).nodeId
    await eventually(answers, 'the node that was adopted')
    for (const { node } of [made, forged]) {
      expect(runningPidOf(server, node)).toBe(old.get(node.id))
      expect(uidOf(runningPidOf(server, node))).toBe(nobody.uid)
      expect(readdirSync(directoryOf(server, node)).filter((name) => /run\.json|daemon\.log/.test(name))).toEqual([])
      expect((await owner.act(node.id, 'restart')).status).toBe('ready')
      const uid = uidOf(runningPidOf(server, node)) ?? 0
      expect([uid >= 50_000, isRunning(old.get(node.id) ?? 0)]).toEqual([true, false])
      const home = directoryOf(server, node)
      const strange = ['.', ...readdirSync(home)].filter((name) => lstatSync(join(home, name)).uid !== uid)
      expect(strange).toEqual([])
    }
    expect(await answers()).toHaveLength(66)
  })
})
