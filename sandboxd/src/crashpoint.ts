/** Replaced at build time: true only in the build for tests. In the released daemon it is false, so the build removes the code. */
declare const CRASHPOINTS: boolean

/** A point where the build for tests dies as if by kill -9, to prove that a crash between two durable steps loses no payment. */
export function crashpoint(name: string): void {
  if (CRASHPOINTS && process.env.CRASH_AT === name) process.kill(process.pid, 'SIGKILL')
}
