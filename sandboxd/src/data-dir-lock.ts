import { spawnSync } from 'node:child_process'
import { openSync } from 'node:fs'
import { reasonOf, StartFault } from './start-fault.ts'

const EXIT_IN_USE = 75

/**
 * Ensures that only one daemon uses the data directory while this process lives. Two daemons would run the same seed.
 *
 * Node has no flock(2), and a pid file is unreliable after kill -9. The lock belongs to the open file, not to the process that requests it,
 * so flock(1) can take it on our descriptor and exit. The kernel releases it when this process ends. Linux only.
 */
export function lockDataDir(path: string): void {
  if (process.platform !== 'linux')
    throw new StartFault('sandboxd runs on Linux only: it locks its data directory with flock', 78)
  let descriptor: number
  try {
    descriptor = openSync(path, 'a', 0o600)
  } catch (error) {
    throw new StartFault(`cannot open ${path}: ${reasonOf(error)}`)
  }
  const flock = spawnSync('flock', ['-n', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
    env: { PATH: process.env.PATH },
  })
  if (flock.error)
    throw new StartFault(`cannot run flock (package util-linux), needed to lock the data directory: ${reasonOf(flock.error)}`)
  if (flock.status !== 0) throw new StartFault(`another daemon holds ${path}; stop it first`, EXIT_IN_USE)
}
