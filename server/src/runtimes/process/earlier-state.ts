import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { readForeignFile, serviceDirectory, writeSecretFile } from '../../platform/data-dir.ts'
import { environmentOf, findByEnvironment, identify, isAlive, type ProcessIdentity, uidOf } from '../../platform/linux.ts'
import { removeTree } from '../../platform/trees.ts'
import { Daemon, type RunFile } from './daemon.ts'

/**
 * Earlier versions kept records and logs in the daemons' own directories. They are moved once, and trusted only as far as the kernel
 * confirms them, because the daemons' user could have written them: a process is adopted only if it belongs to that user and was started
 * for that directory.
 */
export async function moveEarlierState(dataDir: string): Promise<void> {
  const nodes = join(dataDir, 'nodes')
  for (const name of existsSync(nodes) ? readdirSync(nodes) : [])
    if (/^node_[0-9a-z]+$/.test(name)) await moveState(new Daemon(join(nodes, name), join(serviceDirectory(dataDir), name)))
  const hub = new Daemon(join(dataDir, 'hub'), join(serviceDirectory(dataDir), 'hub'))
  const port = Number(readForeignFile(join(hub.directory, 'port'), ...ownersOf(hub.directory)))
  if (Number.isInteger(port) && port > 0 && port < 65_536 && !existsSync(join(hub.state, 'port'))) {
    mkdirSync(hub.state, { recursive: true, mode: 0o700 })
    writeSecretFile(join(hub.state, 'port'), String(port))
  }
  await moveState(hub)
  await removeTree(join(hub.directory, 'port'))
}

/** Possible owners of the records: the service, which wrote them, and the daemons' user, to whom the next start gave them. */
function ownersOf(directory: string): number[] {
  return existsSync(directory) ? [process.getuid?.() ?? 0, lstatSync(directory).uid] : []
}

async function moveState(daemon: Daemon): Promise<void> {
  const { directory, state } = daemon
  if (!existsSync(directory)) return
  const owners = ownersOf(directory)
  const text = readForeignFile(join(directory, 'run.json'), ...owners)
  if (text !== undefined && daemon.read() === undefined) {
    mkdirSync(state, { recursive: true, mode: 0o700 })
    await moveLog(daemon, owners)
    const run = parseRun(text)
    if (run) daemon.write(confirmed(run, directory))
  }
  for (const name of ['run.json', 'run.json.new', 'daemon.log']) await removeTree(join(directory, name))
}

/** The log is renamed first, and then inspected where its former owner can no longer replace it. */
async function moveLog({ directory, state }: Daemon, owners: number[]): Promise<void> {
  const [from, to] = [join(directory, 'daemon.log'), join(state, 'daemon.log')]
  if (!existsSync(from) || existsSync(to)) return
  renameSync(from, to)
  const stat = lstatSync(to)
  if (!stat.isFile() || stat.nlink !== 1 || !owners.includes(stat.uid)) await removeTree(to)
}

type EarlierRun = Omit<RunFile, 'uid' | 'process'> & { process?: Omit<ProcessIdentity, 'uid'> }

function parseRun(text: string): EarlierRun | undefined {
  let run: Partial<EarlierRun> | null
  try {
    run = JSON.parse(text) as Partial<EarlierRun> | null
  } catch {
    // not a record we wrote
    return undefined
  }
  const { attempt, port, version, run: number, logFrom = null, process, stopRequestedAtMs } = run ?? {}
  if (typeof attempt !== 'string' || typeof version !== 'string' || !Number.isInteger(port) || !Number.isInteger(number))
    return undefined
  return {
    attempt,
    port: port as number,
    version,
    run: number as number,
    logFrom: Number.isInteger(logFrom) ? logFrom : null,
    ...(process && Number.isInteger(process.pid) ? { process } : {}),
    ...(typeof stopRequestedAtMs === 'number' ? { stopRequestedAtMs } : {}),
  }
}

/** The record with the process that actually works in this directory, whatever the record says; without a process if there is none. */
function confirmed({ process: recorded, ...run }: EarlierRun, directory: string): RunFile {
  const { uid } = lstatSync(directory)
  const belongs = (pid: number): boolean => uidOf(pid) === uid && (environmentOf(pid)?.includes(`HOME=${directory}`) ?? true)
  const isRight = recorded && belongs(recorded.pid) && isAlive({ ...recorded, uid })
  const pid = isRight ? recorded.pid : findByEnvironment(uid, `HOME=${directory}`)
  const found = pid === undefined ? undefined : identify(pid)
  return { ...run, uid, ...(found ? { process: found } : {}) }
}
