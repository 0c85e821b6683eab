import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { crashpoint } from '../../crashpoint.ts'
import { findByEnvironment, identify, isAlive, type ProcessIdentity, type UserIds, underLock } from '../../linux.ts'

/** What is known of the process of one directory; written before the spawn and again after it. */
type RunFile = {
  attempt: string
  port: number
  version: string
  run: number
  /** Where its part of the log begins; null once it has been cut. */
  logFrom: number | null
  process?: ProcessIdentity
  stopRequestedAtMs?: number
}

export type Launch = {
  command: string[]
  env: Record<string, string>
  user: UserIds | undefined
  port: number
  version: string
  run: number
}

const TERM_PATIENCE_MS = 45_000
const MAX_LOG_BYTES = 10_000_000
const KEPT_LOG_BYTES = 1_000_000

/**
 * One daemon of this machine that outlives us and is found again: by its pid, the time it started and the boot it started in; or, when
 * we died between starting it and writing that down, by the attempt's name in its environment.
 */
export class Daemon {
  readonly directory: string

  constructor(directory: string) {
    this.directory = directory
  }

  get #runPath(): string {
    return join(this.directory, 'run.json')
  }

  read(): RunFile | undefined {
    try {
      return JSON.parse(readFileSync(this.#runPath, 'utf8')) as RunFile
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  /** The living process, adopted if its start was never written down; undefined when there is none. */
  alive(): RunFile | undefined {
    const run = this.read()
    if (!run) return undefined
    if (run.process) return isAlive(run.process) ? run : undefined
    const [pid] = findByEnvironment(`BOLTYARD_ATTEMPT=${run.attempt}`)
    const found = pid === undefined ? undefined : identify(pid)
    if (!found) return undefined
    this.#write({ ...run, process: found })
    return { ...run, process: found }
  }

  start({ command, env, user, port, version, run }: Launch): void {
    const log = this.#openLog()
    const intent = { attempt: randomUUID(), port, version, run, logFrom: fstatSync(log).size }
    // Intent before effect: a process without it could never be told from a stranger's.
    this.#write(intent)
    crashpoint('process: intent is durable')
    const [program = '', ...args] = underLock(join(this.directory, '.lock'), command)
    const child = spawn(program, args, {
      ...user,
      cwd: this.directory,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', ...env, BOLTYARD_ATTEMPT: intent.attempt },
      detached: true,
      // Never a pipe to us: the daemon would die of writing to it once we are gone.
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    child.on('error', (error) =>
      writeFileSync(join(this.directory, 'daemon.log'), `cannot start: ${error.message}\n`, { flag: 'a', mode: 0o600 }),
    )
    child.unref()
    crashpoint('process: spawned')
    const found = child.pid === undefined ? undefined : identify(child.pid)
    if (found) this.#write({ ...intent, process: found })
  }

  /** Gently first; for good when it has had its time. Called again until it is gone. */
  stop(nowMs: number): void {
    const run = this.alive()
    if (!run?.process) return
    if (run.stopRequestedAtMs === undefined) {
      // Asked first, then written down: whoever dies in between asks twice. The other way round nobody would ask until it is killed.
      this.#signal(run.process, 'SIGTERM')
      crashpoint('process: asked to stop')
      this.#write({ ...run, stopRequestedAtMs: nowMs })
    } else if (nowMs - run.stopRequestedAtMs > TERM_PATIENCE_MS) this.#signal(run.process, 'SIGKILL')
  }

  kill(): void {
    const run = this.alive()
    if (run?.process) this.#signal(run.process, 'SIGKILL')
  }

  #signal(identity: ProcessIdentity, signal: NodeJS.Signals): void {
    if (isAlive(identity)) process.kill(identity.pid, signal)
  }

  /** The last line it wrote, without its timestamp: most often the reason why it is gone. */
  lastWords(): string {
    const path = join(this.directory, 'daemon.log')
    if (!existsSync(path)) return 'it left no message'
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    return (
      lines
        .at(-1)
        ?.replace(/^[\d-]+ [\d:]+ /, '')
        .slice(0, 200) || 'it left no message'
    )
  }

  /** Has the last process written this? Yes, too, when its part of the log is no longer whole: who cannot know must not say no. */
  mayHaveSaid(words: string): boolean {
    const path = join(this.directory, 'daemon.log')
    const run = this.read()
    if (!run) return false
    return run.logFrom === null || !existsSync(path) || readFileSync(path).subarray(run.logFrom).includes(words)
  }

  #openLog(): number {
    this.trimLog()
    return openSync(join(this.directory, 'daemon.log'), 'a', 0o600)
  }

  /** Copied and truncated in place: the daemon holds it open, and goes on appending. */
  trimLog(): void {
    const path = join(this.directory, 'daemon.log')
    if (!existsSync(path) || statSync(path).size <= MAX_LOG_BYTES) return
    const run = this.read()
    if (run) this.#write({ ...run, logFrom: null })
    const kept = readFileSync(path).subarray(-KEPT_LOG_BYTES)
    truncateSync(path, 0)
    writeFileSync(path, kept, { flag: 'a' })
  }

  #write(run: RunFile): void {
    const descriptor = openSync(`${this.#runPath}.new`, 'w', 0o600)
    writeSync(descriptor, JSON.stringify(run))
    fsyncSync(descriptor)
    closeSync(descriptor)
    renameSync(`${this.#runPath}.new`, this.#runPath)
    const directory = openSync(dirname(this.#runPath), 'r')
    fsyncSync(directory)
    closeSync(directory)
  }
}
