import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { afterAll } from 'vitest'

const shells = new Set<Shell>()
afterAll(async () => {
  for (const shell of shells) await shell.close()
})

/**
 * A terminal of someone who follows the documentation: variables and background jobs stay from one block to the next. It ends at the first
 * command that fails.
 */
export class Shell {
  stdout = ''
  stderr = ''
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #watchers = new Set<() => void>()
  #hasEnded = false
  #typed = 0

  constructor(cwd: string, env: Record<string, string>) {
    // Detached, so that everything it starts can be ended as a group.
    this.#child = spawn('/bin/bash', ['-e', '-o', 'pipefail'], { cwd, env, detached: true })
    for (const name of ['stdout', 'stderr'] as const)
      this.#child[name]?.setEncoding('utf8').on('data', (chunk) => {
        this[name] += chunk
        this.#look()
      })
    this.#child.stdin?.on('error', () => undefined)
    this.#ended = once(this.#child, 'close').then(() => {
      this.#hasEnded = true
      this.#look()
    })
    shells.add(this)
  }

  /** Runs the commands to their end, and returns what they wrote to stdout. */
  async type(commands: string): Promise<string> {
    const from = this.stdout.length
    const end = `end of block ${++this.#typed}\n`
    this.enter(`${commands}\n} </dev/null\n{ echo '${end.trim()}'`)
    await this.prints(new RegExp(end), from)
    return this.stdout.slice(from, this.stdout.indexOf(end, from))
  }

  /** Starts the commands, of which one does not end by itself. They cannot read what is typed next. */
  enter(commands: string): void {
    this.#child.stdin?.write(`{\n${commands}\n} </dev/null\n`)
  }

  /** Waits until this is in what was written to stdout. */
  async prints(text: RegExp, from = 0): Promise<void> {
    const isThere = (): boolean => text.test(this.stdout.slice(from))
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (isThere()) resolve()
        else if (this.#hasEnded) reject(new Error(`ended without printing ${text}: ${this.stdout}${this.stderr}`))
      }
      this.#watchers.add(look)
      look()
    })
  }

  /** Ctrl-C: ends the command in the foreground, which was started last. */
  interrupt(): void {
    const { pid } = this.#child
    const [last] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').slice(-1)
    process.kill(Number(last), 'SIGINT')
  }

  /** Closes the terminal, and waits until everything that was started in it has ended by itself. */
  async leave(): Promise<void> {
    this.#child.stdin?.end()
    await this.#ended
  }

  async close(): Promise<void> {
    shells.delete(this)
    try {
      if (!this.#hasEnded && this.#child.pid !== undefined) process.kill(-this.#child.pid, 'SIGKILL')
    } catch {
      // Every process of the group has exited.
    }
    await this.#ended
  }

  #look(): void {
    for (const look of this.#watchers) look()
  }
}
