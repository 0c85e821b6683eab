import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, fstatSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crashpoint } from '../../platform/crashpoint.ts'
import { writeSecretFile } from '../../platform/data-dir.ts'
import {
  findByEnvironment,
  identify,
  isAlive,
  type ProcessIdentity,
  signal,
  type UserIds,
  underLock,
} from '../../platform/linux.ts'
import { LogFile, MAX_LOG_BYTES } from '../../platform/log-file.ts'
import { lastWordsIn } from './last-words.ts'

/** What is known of the process of one directory; written before the spawn and again after it. */
export type RunFile = {
  attempt: string
  port: number
  version: string
  run: number
  /** Whom it was started as. */
  uid: number
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
const LAST_WORDS_BYTES = 16_384

/**
 * One daemon of this machine that outlives us and is found again: by its pid, the time it started and the boot it started in; or, when
 * we died between starting it and writing that down, by the attempt's name in its environment.
 *
 * It works in `directory`, which belongs to its user. What we rely on is in `state`, where that user can neither read nor write: a record
 * in its own directory could name any process to be stopped, and a link there could turn any file into its log.
 */
export class Daemon {
  readonly directory: string
  readonly state: string
  readonly #log: LogFile

  constructor(directory: string, state: string) {
    this.directory = directory
    this.state = state
    this.#log = new LogFile(join(state, 'daemon.log'))
  }

  get #runPath(): string {
    return join(this.state, 'run.json')
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
    const pid = findByEnvironment(run.uid, `BOLTYARD_ATTEMPT=${run.attempt}`)
    const found = pid === undefined ? undefined : identify(pid)
    if (!found) return undefined
    this.write({ ...run, process: found })
    return { ...run, process: found }
  }

  start({ command, env, user, port, version, run }: Launch): void {
    mkdirSync(this.state, { recursive: true, mode: 0o700 })
    this.trimLog()
    const log = this.#log.open()
    const uid = user?.uid ?? process.getuid?.() ?? 0
    const intent = { attempt: randomUUID(), port, version, run, uid, logFrom: fstatSync(log).size }
    // Intent before effect: a process without it could never be told from a stranger's.
    this.write(intent)
    crashpoint('process: intent is durable')
    // The lock is taken by the daemon's own user, so it may lie in that user's directory.
    const [program = '', ...args] = underLock(join(this.directory, '.lock'), command)
    const child = spawn(program, args, {
      ...user,
      cwd: this.directory,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: this.directory, ...env, BOLTYARD_ATTEMPT: intent.attempt },
      detached: true,
      // Never a pipe to us: the daemon would die of writing to it once we are gone.
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    child.on('error', (error) => this.#log.append(`cannot start: ${error.message}`))
    child.unref()
    crashpoint('process: spawned')
    const found = child.pid === undefined ? undefined : identify(child.pid)
    if (found) this.write({ ...intent, process: found })
  }

  /** Gently first; for good when it has had its time. Called again until it is gone. */
  stop(nowMs: number): void {
    const run = this.alive()
    if (!run?.process) return
    if (run.stopRequestedAtMs === undefined) {
      // Asked first, then written down: whoever dies in between asks twice. The other way round nobody would ask until it is killed.
      signal(run.process, 'SIGTERM')
      crashpoint('process: asked to stop')
      this.write({ ...run, stopRequestedAtMs: nowMs })
    } else if (nowMs - run.stopRequestedAtMs > TERM_PATIENCE_MS) signal(run.process, 'SIGKILL')
  }

  kill(): void {
    const run = this.alive()
    if (run?.process) signal(run.process, 'SIGKILL')
  }

  /** What its last process said before it ended: most often the reason why. */
  lastWords(): string {
    return lastWordsIn(this.#log.tail(this.read()?.logFrom ?? 0, LAST_WORDS_BYTES)?.toString('utf8') ?? '')
  }

  /** Has the last process written this? Yes, too, when its part of the log is no longer whole: who cannot know must not say no. */
  mayHaveSaid(words: string): boolean {
    const run = this.read()
    if (!run) return false
    if (run.logFrom === null || this.#log.isTooLarge) return true
    return this.#log.tail(run.logFrom, MAX_LOG_BYTES)?.includes(words) ?? true
  }

  trimLog(): void {
    if (!this.#log.isTooLarge) return
    const run = this.read()
    if (run) this.write({ ...run, logFrom: null })
    this.#log.trim()
  }

  write(run: RunFile): void {
    writeSecretFile(this.#runPath, JSON.stringify(run))
  }
}
