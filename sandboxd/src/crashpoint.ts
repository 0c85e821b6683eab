/** Replaced at build time: false in the released daemon, which removes this code; true only in the build for tests. */
declare const CRASHPOINTS: boolean

/** A point where the build for tests dies as if by kill -9, to prove that a crash between two durable steps loses no payment. */
export function crashpoint(name: string): void {
  if (CRASHPOINTS && process.env.CRASH_AT === name) process.kill(process.pid, 'SIGKILL')
}
