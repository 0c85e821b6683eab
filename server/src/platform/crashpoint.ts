import { readFileSync, rmSync } from 'node:fs'

/** Replaced at build time: false in the published service, so that this code is removed from it; true only in the test build. */
declare const CRASHPOINTS: boolean

/** A point where the test build dies as if by kill -9, to prove that the next process can repeat every step. */
export function crashpoint(name: string): void {
  if (CRASHPOINTS && isArmed(name)) process.kill(process.pid, 'SIGKILL')
}

let hits = 0
let reached = 0

/**
 * Armed at startup by CRASH_AT, or later by the file CRASH_FILE. The lines of the file are the name of the point, how often it
 * must be passed, and the points that must be passed before it, in order.
 */
function isArmed(name: string): boolean {
  const { CRASH_AT, CRASH_FILE } = process.env
  if (CRASH_AT === name) return true
  const [point, nth, ...first] = CRASH_FILE === undefined ? [] : readOrder(CRASH_FILE)
  if (CRASH_FILE === undefined || point === undefined) return false
  if (first[reached] === name) reached++
  if (reached < first.length || point !== name || ++hits < Number(nth)) return false
  // The next process has the same environment and must survive.
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
