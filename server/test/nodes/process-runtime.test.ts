import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SANDBOXD } from '../../../testing/bundles.ts'
import { eventually } from '../../../testing/eventually.ts'
import { openDataDir, serviceDirectory } from '../../src/platform/data-dir.ts'
import { HubProcess } from '../../src/runtimes/process/hub-process.ts'
import { Places } from '../../src/runtimes/process/places.ts'
import { ProcessRuntime } from '../../src/runtimes/process/process-runtime.ts'
import { installSoftware } from '../../src/runtimes/process/software.ts'
import { program, sandboxd } from '../support/crash.ts'
import { isRunning } from '../support/nodes.ts'
import { describeRuntime } from '../support/runtime-contract.ts'
import { temporaryDirectory } from '../support/server.ts'

const uids = process.getuid?.() === 0 ? { from: 50_000, to: 54_999 } : undefined

function newDataDir(): string {
  const dataDir = join(temporaryDirectory(), 'data')
  openDataDir(dataDir, 'shared')
  return dataDir
}

/** Undefined if the process ended before its start was recorded. */
const pidOf = (dataDir: string, name: string): number | undefined =>
  JSON.parse(readFileSync(join(serviceDirectory(dataDir), name, 'run.json'), 'utf8')).process?.pid

describeRuntime('processes of this machine', async (materialOf) => {
  const dataDir = newDataDir()
  const software = temporaryDirectory()
  const versions = new Map(['0.8.0', '0.9.0'].map((version) => [version, sandboxd(software, version)]))
  versions.set('1.0.0', program(software, 'bad', 'exit 1'))
  const { catalogue, sandbox } = installSoftware(dataDir, SANDBOXD, versions, uids)
  const places = new Places(dataDir, uids)
  const hub = await HubProcess.start(dataDir, sandbox, places)
  mkdirSync(join(dataDir, 'nodes'), { recursive: true })
  const reopen = (): ProcessRuntime =>
    new ProcessRuntime({
      dataDir,
      catalogue,
      places: new Places(dataDir, uids),
      confLines: ({ controlToken }) => [`sandbox-hub=${hub.nodeAddress}`, `sandbox-control-token=${controlToken}`],
      passwordOf: async (nodeId) => materialOf(nodeId).restrictedPassword,
    })
  const kill = async (name: string): Promise<void> => {
    const pid = pidOf(dataDir, name)
    if (pid === undefined) return
    if (isRunning(pid)) process.kill(pid, 'SIGKILL')
    await eventually(() => !isRunning(pid), `the end of ${name}`)
  }
  return {
    runtime: reopen(),
    reopen,
    crash: kill,
    close: async () => {
      hub.leave()
      for (const name of readdirSync(serviceDirectory(dataDir)))
        if (existsSync(join(serviceDirectory(dataDir), name, 'run.json'))) await kill(name)
    },
  }
})

test('records of an earlier version are adopted; existing ones stay', () => {
  const dataDir = newDataDir()
  const places = new Places(dataDir, { from: 50_000, to: 50_009 })
  places.adopt('node_a', { port: 20_001, uid: 50_003 })
  places.adopt('node_a', { port: 20_002, uid: 50_004 })
  places.adopt('node_b', { port: null, uid: null })
  const again = new Places(dataDir, { from: 50_000, to: 50_009 })
  expect(again.known('node_a')).toEqual({ port: 20_001, uid: 50_003 })
  expect(again.known('node_b')).toBeUndefined()
  expect(again.user('node_a')).toEqual({ uid: 50_003, gid: 50_003 })
})

test('security 2: no two nodes have the same user or port, and the result says when no user is left', async () => {
  const dataDir = newDataDir()
  const range = { from: 3_000_000_000, to: 3_000_000_004 }
  const names = ['hub', 'node_a', 'node_b', 'node_c', 'node_d']
  // A new instance for each, as after a crash, so that only the files count.
  const users = names.map((name) => new Places(dataDir, range).user(name))
  expect(new Set(users.map((user) => JSON.stringify(user))).size).toBe(5)
  expect(new Places(dataDir, range).user('node_e')).toBe('none left')
  const places = new Places(dataDir, range)
  places.forget('node_a')
  expect(places.user('node_e')).toEqual(users[1])
  const ports = await Promise.all(names.map((name) => places.freePort(name, { from: 28_000, to: 28_100 })))
  expect(new Set(ports).size).toBe(5)
})

test('a user that is outside the configured range is replaced', () => {
  const dataDir = newDataDir()
  chmodSync(dataDir, 0o700)
  new Places(dataDir, { from: 50_000, to: 50_009 }).user('node_a')
  expect(new Places(dataDir, { from: 60_000, to: 60_000 }).user('node_a')).toEqual({ uid: 60_000, gid: 60_000 })
})

test('a first hub that dies before it responds is restarted, because its port may have been taken', async () => {
  const dataDir = newDataDir()
  const places = new Places(dataDir, uids)
  const { sandbox } = installSoftware(dataDir, SANDBOXD, undefined, uids)
  const script = `test -e "$HOME/tried" || { touch "$HOME/tried"; exit 1; }; exec ${sandbox.map((word) => `'${word}'`).join(' ')} "$@"`
  const hub = await HubProcess.start(dataDir, [program(temporaryDirectory(), 'hub', script)], places)
  hub.leave()
  process.kill(pidOf(dataDir, 'hub') as number, 'SIGKILL')
  expect(existsSync(join(dataDir, 'hub', 'tried'))).toBe(true)
})
