/** Replaced at build time: false in the service people run, so that nothing of this is left in it; true only in the tests' build. */
declare const CRASHPOINTS: boolean

/** A place where the tests' build dies as if by kill -9, to prove that every step can be repeated by the next process. */
export function crashpoint(name: string): void {
  if (CRASHPOINTS && process.env.CRASH_AT === name && ++hits >= Number(process.env.CRASH_AFTER ?? 1))
    process.kill(process.pid, 'SIGKILL')
}

let hits = 0
