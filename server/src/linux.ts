import { spawnSync } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'

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
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // no such process
    return false
  }
}
