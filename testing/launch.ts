import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Writable } from 'node:stream'
import { readConfig } from '../server/src/config.ts'
import { SERVICE } from './bundles.ts'

/** The published service, in a separate process or in the process of the test. */

export type Exit = { code: number | null; signal: string | null }
export type Print = (stream: 'stdout' | 'stderr', text: string) => void
type Environment = Record<string, string | undefined>

export type Running = {
  /** Undefined in the process of the test. */
  child: ChildProcess | undefined
  exited: Promise<Exit>
  end: (signal: NodeJS.Signals) => void
}

export function launchProcess([command = '', ...args]: string[], env: Environment, print: Print): Running {
  const child = spawn(command, args, { env, stdio: 'pipe' })
  child.stdin.on('error', () => undefined)
  for (const stream of ['stdout', 'stderr'] as const) child[stream].on('data', (chunk: Buffer) => print(stream, String(chunk)))
  const exited = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  return { child, exited, end: (signal) => void child.kill(signal) }
}

/**
 * A process spends half a second of CPU time on loading and compiling the service before it responds. In the process of the test, that
 * happens only once for all files that the worker runs.
 */
export async function launchHere(env: Environment, print: Print): Promise<Running> {
  const { startService } = await loadService()
  const stderr = new Writable({
    write: (chunk, _encoding, done) => {
      print('stderr', String(chunk))
      done()
    },
  })
  const service = await startService(readConfig(env), stderr)
  print('stdout', `boltyard ready ${service.url}\n`)
  let stop!: () => void
  const exited = new Promise<Exit>((resolve, reject) => {
    stop = () => void service.close().then(() => resolve({ code: 0, signal: null }), reject)
  })
  const end = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGTERM')
      throw new Error(`${signal} needs a service in a separate process: startServer({ command: PROCESS })`)
    stop()
  }
  return { child: undefined, exited, end }
}

function loadService(): Promise<typeof import('../server/src/service.ts')> {
  // The test runner sets these. Libraries behave differently when they are set, and the service must run as in production.
  for (const name of ['NODE_ENV', 'TEST']) delete process.env[name]
  return import(SERVICE)
}
