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
import { lastWordsIn } from '../last-words.ts'

/** What we know about the process that works in one directory; written before the spawn and again after it. */
export type RunFile = {
  attempt: string
  port: number
  version: string
  run: number
  /** The user it was started as. */
  uid: number
  /** Where its part of the log begins; null once the log has been trimmed. */
  logFrom: number | null
  process?: ProcessIdentity
  stopRequestedAtMs?: number
  /** The version whose data was restored after this process ended. */
  restored?: string
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
 * A daemon on this machine that outlives us and is found again: by its pid, start time and boot id, or, if we died between starting it and
 * recording that, by the attempt's id in its environment.
 *
 * The daemon works in `directory`, which belongs to its user. Our own records are in `state`, which that user can neither read nor write: a
 * record in the daemon's directory could make us stop any process, and a link there could turn any file into its log.
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

  /** The running process, adopted if its start was never recorded; undefined if there is none. */
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
    // Record the intent first. Otherwise, if we died right after the spawn, the process could not be distinguished from an unrelated one.
    this.write(intent)
    crashpoint('process: intent is durable')
    // The daemon's own user takes the lock, so the file may be in that user's directory.
    const [program = '', ...args] = underLock(join(this.directory, '.lock'), command)
    const child = spawn(program, args, {
      ...user,
      cwd: this.directory,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: this.directory, TZ: 'UTC', ...env, BOLTYARD_ATTEMPT: intent.attempt },
      detached: true,
      // Never a pipe to us: the daemon would die writing to it once we are gone.
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    child.on('error', (error) => this.#log.append(`cannot start: ${error.message}`))
    child.unref()
    crashpoint('process: spawned')
    const found = child.pid === undefined ? undefined : identify(child.pid)
    if (found) this.write({ ...intent, process: found })
  }

  /** Sends SIGTERM first, and SIGKILL when the time is up. Called repeatedly until the process is gone. */
  stop(nowMs: number): void {
    const run = this.alive()
    if (!run?.process) return
    if (run.stopRequestedAtMs === undefined) {
      // Signal first, then record: if we die in between, SIGTERM is sent twice. In the reverse order, the process might be killed
      // without ever getting SIGTERM.
      signal(run.process, 'SIGTERM')
      crashpoint('process: asked to stop')
      this.write({ ...run, stopRequestedAtMs: nowMs })
    } else if (nowMs - run.stopRequestedAtMs > TERM_PATIENCE_MS) signal(run.process, 'SIGKILL')
  }

  kill(): void {
    const run = this.alive()
    if (run?.process) signal(run.process, 'SIGKILL')
  }

  /** After a restore, the data belongs to this version, not to the version that ran last. */
  recordRestore(version: string): void {
    const run = this.read()
    if (run) this.write({ ...run, restored: version })
  }

  /** The last output of the last process: usually the reason why it exited. */
  lastWords(): string {
    return lastWordsIn(this.#log.tail(this.read()?.logFrom ?? 0, LAST_WORDS_BYTES)?.toString('utf8') ?? '')
  }

  /** The newest output, also of earlier processes. */
  logTail(maxBytes: number): string | undefined {
    return this.#log.tail(0, maxBytes)?.toString('utf8')
  }

  /** Whether the last process wrote these words. Also true if its part of the log is incomplete, so that we cannot know. */
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
