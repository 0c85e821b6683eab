import { spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'

/** Most of what is specific to Linux. A port to another system starts here. */

export function isSupportedPlatform(): boolean {
  return process.platform === 'linux'
}

/**
 * Holds the lock until it is released or this process ends; undefined if another process has it. flock(1) locks our open file and exits:
 * the lock belongs to the open file, and the kernel releases it when we are gone, even after kill -9.
 */
export function holdLock(path: string): { release: () => void } | undefined {
  const descriptor = openSync(path, 'a', 0o600)
  const flock = spawnSync('flock', ['--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
    env: { PATH: process.env.PATH },
  })
  if (flock.error) throw new Error(`cannot run flock (package util-linux): ${flock.error.message}`)
  if (flock.status === 0) return { release: () => closeSync(descriptor) }
  closeSync(descriptor)
  return undefined
}

export type UserIds = { uid: number; gid: number }
/** Both bounds are included. */
export type IdRange = { from: number; to: number }

/** Whether an existing user or group has an id in the range. A process with that id would share its rights. */
export function hasNamedId({ from, to }: IdRange): boolean {
  return ['/etc/passwd', '/etc/group'].some((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .some((line) => {
        const [, , id] = line.split(':')
        return id !== undefined && id !== '' && Number(id) >= from && Number(id) <= to
      }),
  )
}

/** The first of these users that exists on this machine. */
export function lookUpUser(...names: string[]): UserIds | undefined {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of names) {
    const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(':')
    if (fields) return { uid: Number(fields[2]), gid: Number(fields[3]) }
  }
  return undefined
}

/** False for a zombie: it has ended, but its parent has not collected its exit status yet. */
export function isRunning(pid: number): boolean {
  return startTimeOf(pid) !== undefined
}

/**
 * Guards against a pid file whose pid was reused: PostgreSQL's working directory is its cluster. In a container without CAP_SYS_PTRACE, not
 * even root can read the working directory of another user's process. Everyone can read its arguments, which name the cluster too.
 */
export function isPostgresOf(pid: number, cluster: string): boolean {
  if (!isRunning(pid)) return false
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(cluster)
  } catch (error) {
    if (!isHidden(error)) return false
    const args = commandLineOf(pid).split('\0')
    const place = args[args.indexOf('-D') + 1] ?? ''
    return existsSync(place) && realpathSync(place) === realpathSync(cluster)
  }
}

const isHidden = (error: unknown): boolean => ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')

/** Distinguishes processes that reuse a pid: by start time (field 22 of /proc/<pid>/stat), boot and user. */
export type ProcessIdentity = { pid: number; startTime: string; bootId: string; uid: number }

export function identify(pid: number): ProcessIdentity | undefined {
  const [startTime, uid] = [startTimeOf(pid), uidOf(pid)]
  return startTime === undefined || uid === undefined ? undefined : { pid, startTime, bootId: bootId(), uid }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identity.bootId === bootId() && startTimeOf(identity.pid) === identity.startTime
}

/** Undefined for a zombie or a process that is gone. */
function startTimeOf(pid: number): string | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    // no such process
    return undefined
  }
  // The name in parentheses may contain anything, including parentheses and spaces, so count fields from the last one.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return state === 'Z' || state === 'X' ? undefined : fields[18]
}

let knownBootId: string | undefined
function bootId(): string {
  knownBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return knownBootId
}

const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** The real user: a setuid program changes only the effective one. */
export function uidOf(pid: number): number | undefined {
  try {
    const uid = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return uid === undefined ? undefined : Number(uid)
  } catch {
    // no such process
    return undefined
  }
}

/** Users that currently have a process on this machine. */
export function uidsInUse(): number[] {
  return [...new Set(pids().flatMap((pid) => uidOf(pid) ?? []))]
}

/** The environment that the process was started with; undefined if the process is gone or we may not read it. */
export function environmentOf(pid: number): string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
  } catch {
    // without CAP_SYS_PTRACE, a container's root cannot read other users' processes
    return undefined
  }
}

/** A process of this user whose initial environment contains these variables. */
export function findByEnvironment(uid: number, ...variables: string[]): number | undefined {
  return pids().find((pid) => {
    const environment = uidOf(pid) === uid ? environmentOf(pid) : undefined
    return environment !== undefined && variables.every((variable) => environment.includes(variable))
  })
}

/**
 * Other processes that have a file of this directory open, under any path and in any container, or were started with it as PHOENIX_DATADIR.
 * Only root sees all of them; other users see only their own processes. A daemon of the directory's owner that we may not inspect is
 * included.
 */
export function processesUsing(directory: string, knownAs = directory): number[] {
  const owner = statSync(directory).uid
  const entries = readdirSync(directory).map((name) => lstatSync(join(directory, name), { bigint: true, throwIfNoEntry: false }))
  const files = new Set(entries.flatMap((stat) => (stat ? `${stat.dev}:${stat.ino}` : [])))
  return pids().filter((pid) => {
    if (pid === process.pid || !isRunning(pid)) return false
    const opened = openFilesOf(pid)
    if (opened === 'hidden') return uidOf(pid) === owner && isLightningDaemon(pid)
    return opened.some((file) => files.has(file)) || (environmentOf(pid)?.includes(`PHOENIX_DATADIR=${knownAs}`) ?? false)
  })
}

/**
 * Lightning daemons of other users whose open files we may not see. One of them may still use a directory that was given to our user while
 * the daemon ran. Empty for root: it sees all open files, except in a container without CAP_SYS_PTRACE, where this would always list the
 * daemons of all other nodes.
 */
export function hiddenDaemons(): number[] {
  if (process.getuid?.() === 0) return []
  return pids().filter((pid) => isRunning(pid) && openFilesOf(pid) === 'hidden' && isLightningDaemon(pid))
}

const isLightningDaemon = (pid: number): boolean => /phoenix|sandboxd/.test(commandLineOf(pid))

function openFilesOf(pid: number): string[] | 'hidden' {
  const descriptors = `/proc/${pid}/fd`
  try {
    return readdirSync(descriptors).flatMap((name) => {
      const stat = statSync(join(descriptors, name), { bigint: true, throwIfNoEntry: false })
      return stat ? `${stat.dev}:${stat.ino}` : []
    })
  } catch (error) {
    return isHidden(error) ? 'hidden' : []
  }
}

function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    // gone meanwhile
    return ''
  }
}

/**
 * 127.0.0.1, 127.0.0.1 on an IPv6 socket, and the wildcards, as the kernel writes them. A specific address takes precedence over a
 * wildcard.
 */
const LISTENING_ADDRESSES = ['0100007F', '0000000000000000FFFF00000100007F', '00000000', '00000000000000000000000000000000']
const LISTENING = '0A'

const CHUNK_BYTES = 16_384

/**
 * The kernel lists listening sockets first, so reading stops at the first socket in another state. Otherwise thousands of open connections
 * would slow down every new connection to a node.
 */
function* listeners(path: string): Generator<[localAddress: string, uid: number]> {
  const descriptor = openSync(path, 'r')
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES)
    let rest = ''
    let isHeader = true
    for (let length = readSync(descriptor, chunk); length > 0; length = readSync(descriptor, chunk)) {
      const lines = (rest + chunk.toString('latin1', 0, length)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const [, local = '', , state, , , , uid] = line.trim().split(/\s+/)
        if (!isHeader && state !== LISTENING) return
        if (!isHeader) yield [local, Number(uid)]
        isHeader = false
      }
    }
  } finally {
    closeSync(descriptor)
  }
}

/** The user that receives connections to 127.0.0.1 on this port; undefined if nothing listens. */
export function listenerUid(port: number): number | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const uids = new Map<string, number>()
  for (const path of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const [local, uid] of existsSync(path) ? listeners(path) : [])
      if (local.endsWith(suffix)) uids.set(local.slice(0, -suffix.length), uid)
  }
  const address = LISTENING_ADDRESSES.find((one) => uids.has(one))
  return address === undefined ? undefined : uids.get(address)
}

/** Signals only the identified process, and only if it still belongs to the same user. */
export function signal(identity: ProcessIdentity, name: NodeJS.Signals): void {
  if (isAlive(identity) && uidOf(identity.pid) === identity.uid) process.kill(identity.pid, name)
}

/**
 * Runs the program with the lock held for its lifetime; exits with 75 if another process holds it. flock does not fork, so its pid is the
 * program's pid.
 */
export function underLock(lockPath: string, command: string[]): string[] {
  return ['flock', '--no-fork', '--nonblock', '--conflict-exit-code', '75', lockPath, ...command]
}
