import { spawnSync } from 'node:child_process'
import { openSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'

/** All that is Linux-only. Elsewhere the service says so and stops, until someone adds it here. */

export function isSupportedPlatform(): boolean {
  return process.platform === 'linux'
}

/**
 * Holds the lock for as long as this process lives; false when another process has it. flock(1) takes the lock on our open file and
 * exits: a lock belongs to the open file, and the kernel gives it back when we are gone, also after kill -9.
 */
export function holdLock(path: string): boolean {
  const descriptor = openSync(path, 'a', 0o600)
  const flock = spawnSync('flock', ['--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
    env: { PATH: process.env.PATH },
  })
  if (flock.error) throw new Error(`cannot run flock (package util-linux): ${flock.error.message}`)
  return flock.status === 0
}

export type UserIds = { uid: number; gid: number }

/** The first of these users that the machine knows. */
export function lookUpUser(...names: string[]): UserIds | undefined {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of names) {
    const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(':')
    if (fields) return { uid: Number(fields[2]), gid: Number(fields[3]) }
  }
  return undefined
}

/** A zombie has ended: it only waits for its parent to notice. */
export function isRunning(pid: number): boolean {
  return startTimeOf(pid) !== undefined
}

/** PostgreSQL's working directory is its cluster: a pid file whose number has passed to another process does not fool us. */
export function worksIn(pid: number, directory: string): boolean {
  try {
    return isRunning(pid) && readlinkSync(`/proc/${pid}/cwd`) === realpathSync(directory)
  } catch {
    // gone meanwhile, or of a user whose processes we may not look at
    return false
  }
}

/** Tells one life of a process id from the next: what field 22 of its stat line says, within one boot. */
export type ProcessIdentity = { pid: number; startTime: string; bootId: string }

export function identify(pid: number): ProcessIdentity | undefined {
  const startTime = startTimeOf(pid)
  return startTime === undefined ? undefined : { pid, startTime, bootId: bootId() }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identity.bootId === bootId() && startTimeOf(identity.pid) === identity.startTime
}

/** Undefined for a process that is gone, or a zombie. */
function startTimeOf(pid: number): string | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    // no such process
    return undefined
  }
  // The name in brackets may hold anything, brackets and spaces too: fields count from the last one.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return state === 'Z' || state === 'X' ? undefined : fields[18]
}

let knownBootId: string | undefined
function bootId(): string {
  knownBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return knownBootId
}

/** Processes that were started with this variable in their environment. */
export function findByEnvironment(variable: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(variable)
      } catch {
        // gone meanwhile, or not ours to read
        return false
      }
    })
}

/** Runs the program with the lock held for as long as it lives; 75 when another process has it. The pid stays the program's. */
export function underLock(lockPath: string, command: string[]): string[] {
  return ['flock', '--no-fork', '--nonblock', '--conflict-exit-code', '75', lockPath, ...command]
}
