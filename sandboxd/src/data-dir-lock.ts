import { spawnSync } from 'node:child_process'
import { openSync } from 'node:fs'
import { reasonOf, StartFault } from './start-fault.ts'

const EXIT_IN_USE = 75

/**
 * At most one daemon per data directory, for as long as this process lives: two of them would run one seed twice.
 *
 * Node has no flock(2), and a pid file would be a guess after kill -9. The lock belongs to the open file, not to the program that
 * asks for it, so flock(1) can take it on our descriptor and exit; the kernel gives it back when we are gone. Linux only.
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
