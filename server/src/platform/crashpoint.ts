import { readFileSync, rmSync } from 'node:fs'

/** Replaced at build time: false in the service people run, so that nothing of this is left in it; true only in the tests' build. */
declare const CRASHPOINTS: boolean

/** A place where the tests' build dies as if by kill -9, to prove that every step can be repeated by the next process. */
export function crashpoint(name: string): void {
  if (CRASHPOINTS && isArmed(name)) process.kill(process.pid, 'SIGKILL')
}

let hits = 0

/** From the start by CRASH_AT, or later by a file: its lines are the point and how often it has to be passed. */
function isArmed(name: string): boolean {
  const { CRASH_AT, CRASH_FILE } = process.env
  if (CRASH_AT === name) return true
  const [point, nth] = CRASH_FILE === undefined ? [] : readOrder(CRASH_FILE)
  if (CRASH_FILE === undefined || point !== name || ++hits < Number(nth)) return false
  // The next process has the same environment, and has to live.
  rmSync(CRASH_FILE)
  return true
}

function readOrder(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
