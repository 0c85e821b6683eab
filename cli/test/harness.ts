import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { type Server, temporaryDirectory } from '../../server/test/support/server.ts'
import { BOLTYARD } from '../../testing/bundles.ts'

/** Runs the built command as a process, piped or in a terminal, against a real service. */

const running = new Set<ChildProcess>()
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
})

export type Ended = { code: number | null; stdout: string; stderr: string; json: () => any; error: () => any }
export type Setting = {
  env?: Record<string, string | undefined>
  input?: string | Buffer | null
  cwd?: string
  /** A shell redirect, such as `> /dev/full`. */
  redirect?: string
}

/** A temporary home directory per test file, never the real one. */
export const home = temporaryDirectory()

function environment(more: Setting['env'] = {}): Record<string, string> {
  const all = { PATH: process.env.PATH, HOME: home, DATA_DIR: home, TERM: 'xterm', ...more }
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** Runs the command piped, as in a script. Also returns the process, so that a test can kill it. */
export function start(
  args: string[],
  { env, input, cwd, redirect }: Setting = {},
): { child: ChildProcess; ended: Promise<Ended> } {
  const command = [process.execPath, BOLTYARD, ...args]
  const [file = '', ...rest] = redirect === undefined ? command : ['sh', '-c', `exec "$@" ${redirect}`, 'sh', ...command]
  const child = spawn(file, rest, { env: environment(env), cwd: cwd ?? home, stdio: 'pipe' })
  running.add(child)
  let [stdout, stderr] = ['', '']
  child.stdout?.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  child.stdin?.on('error', () => undefined)
  // Null keeps the input open, as if nothing had been typed yet.
  if (input !== null) child.stdin?.end(input ?? '')
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child)
    return {
      code,
      stdout,
      stderr,
      json: () => JSON.parse(stdout),
      error: () => JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '').error,
    }
  })
  return { child, ended }
}

export const run = (args: string[], setting: Setting = {}): Promise<Ended> => start(args, setting).ended

const SCRIPT = '/usr/bin/script'
const hasTerminals = existsSync(SCRIPT)

/** Skipped with a message if there is no pseudo-terminal; with CI=true, that is a failure. */
export function onTerminal(name: string, tests: () => void): void {
  if (!hasTerminals) process.stderr.write(`\n### SKIPPED: ${name}: ${SCRIPT} (util-linux) is not there ###\n\n`)
  describe.skipIf(!hasTerminals && process.env.CI !== 'true')(`${name}, on a terminal`, tests)
}

const quoted = (word: string): string => `'${word.replace(/'/g, `'\\''`)}'`

/** An interactive terminal: its screen and input. `redirect` is a shell redirect, for a stream that is not a terminal. */
export class Terminal {
  screen = ''
  readonly exited: Promise<number | null>
  readonly #child: ChildProcess

  constructor(args: string[], { env, cwd }: Setting = {}, redirect = '') {
    if (!hasTerminals) throw new Error(`CI needs ${SCRIPT}`)
    const line = `exec ${[process.execPath, BOLTYARD, ...args].map(quoted).join(' ')} ${redirect}`
    this.#child = spawn(SCRIPT, ['-qefc', line, '/dev/null'], { env: environment(env), cwd: cwd ?? home, stdio: 'pipe' })
    running.add(this.#child)
    this.#child.stdin?.on('error', () => undefined)
    this.#child.stdout?.on('data', (chunk) => {
      this.screen += chunk
    })
    this.exited = once(this.#child, 'close').then(([code]) => {
      running.delete(this.#child)
      return code
    })
  }

  type(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** The first match on the screen, now or later. */
  shows(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(this.plain)
        if (match) resolve(match)
      }
      look()
      this.#child.stdout?.on('data', look)
      void this.exited.then((code) => reject(new Error(`ended (${code}) without showing ${pattern}: ${this.plain}`)))
    })
  }

  /** The final screen content, without colors and overwritten text. */
  get plain(): string {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal escape sequences
    const drawnOver = /[^\n]*\r\x1b\[K/g
    // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal escape sequences
    const colours = /\x1b\[[\d;]*[A-Za-z]/g
    return this.screen.replace(drawnOver, '').replace(colours, '').replace(/\r/g, '')
  }
}

export async function inTerminal(
  args: string[],
  setting: Setting = {},
  redirect = '',
): Promise<{ code: number | null; plain: string; screen: string }> {
  const terminal = new Terminal(args, setting, redirect)
  const code = await terminal.exited
  return { code, plain: terminal.plain, screen: terminal.screen }
}

/** A command line user with an API key. */
export class Customer {
  readonly env: Record<string, string | undefined>

  constructor(baseUrl: string, apiKey: string) {
    this.env = { SERVICE_BASE_URL: baseUrl, SERVICE_API_KEY: apiKey }
  }

  static async of(server: Server, scopes = ['nodes:write', 'gateway:write'], accountId?: string): Promise<Customer> {
    return new Customer(`${server.url}/v1`, (await server.newKey(scopes, accountId)).key)
  }

  /** The same user with another base URL. */
  via(baseUrl: string): Customer {
    return new Customer(baseUrl, this.env.SERVICE_API_KEY ?? '')
  }

  run(args: string[], { env, ...setting }: Setting = {}): Promise<Ended> {
    return run(args, { ...setting, env: { ...this.env, ...env } })
  }

  start(args: string[], { env, ...setting }: Setting = {}): ReturnType<typeof start> {
    return start(args, { ...setting, env: { ...this.env, ...env } })
  }

  terminal(args: string[], { env, ...setting }: Setting = {}, redirect = ''): Terminal {
    return new Terminal(args, { ...setting, env: { ...this.env, ...env } }, redirect)
  }

  sees(
    args: string[],
    { env, ...setting }: Setting = {},
    redirect = '',
  ): Promise<{ code: number | null; plain: string; screen: string }> {
    return inTerminal(args, { ...setting, env: { ...this.env, ...env } }, redirect)
  }

  /** The parsed output of a command that must succeed. */
  async gets(args: string[], setting: Setting = {}): Promise<any> {
    const ended = await this.run(args, setting)
    if (ended.code !== 0) throw new Error(`boltyard ${args.join(' ')}: ${ended.code} ${ended.stderr}`)
    return ended.stdout === '' ? undefined : ended.json()
  }
}

/** A high limit, because all calls come from one address; the limit has its own test. Nodes are free, so no treasury node has to start. */
export const ROOMY = { RATE_LIMIT_MAX: '100000', NODE_PRICE_SAT_PER_DAY: '0' }
export const inHome = (name: string): string => join(home, name)
