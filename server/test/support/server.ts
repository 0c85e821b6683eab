import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync } from 'node:fs'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, inject } from 'vitest'
import { freePort } from '../../../sandboxd/test/harness.ts'
import { SERVER } from '../../../testing/bundles.ts'
import { eventually, PATIENCE_MS } from '../../../testing/eventually.ts'
import { type Exit, launchHere, launchProcess, type Print, type Running } from '../../../testing/launch.ts'
import { copyPreparedDataDir, createDatabase, dropDatabase, type Store } from '../../../testing/postgres.ts'
import { type Database, openStore } from '../../src/store/db.ts'
import { mismatch, operationAt } from './answers.ts'

export { eventually, freePort, PATIENCE_MS, type Store }

/** The real service on a real PostgreSQL. Everything that a test file starts or writes is removed when the file has run. */

const servers = new Set<Server>()
const stores = new Set<Database>()
const databases: Store[] = []
const directories: string[] = []
const agent = new Agent({ keepAlive: false })

afterAll(async () => {
  await Promise.all([...stores].map((sql) => sql.end({ timeoutMs: 0 })))
  await Promise.all([...servers].map((server) => server.end()))
  for (const directory of directories) {
    await killWhatRunsIn(directory)
    rmSync(directory, { recursive: true, force: true })
  }
  for (const database of databases) await dropDatabase(inject('postgres'), database)
})

export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-test-'))
  // When the tests run as root, PostgreSQL runs as another user, who must be able to enter this directory.
  chmodSync(directory, 0o711)
  directories.push(directory)
  return directory
}

/** For directories that a server creates outside its data directory. */
export function removeAfterwards(directory: string): void {
  directories.push(directory)
}

export type Answer = { status: number; headers: IncomingHttpHeaders; text: string; json: () => any }
export type Request = {
  headers?: Record<string, string | string[]>
  /** Sent as JSON, with its content type. */
  json?: unknown
  body?: string | Buffer
  token?: string
  timeoutMs?: number
}

export function send(port: number, method: string, path: string, options: Request = {}, host = '127.0.0.1'): Promise<Answer> {
  const body = options.json === undefined ? options.body : JSON.stringify(options.json)
  const headers = {
    ...(options.json === undefined ? {} : { 'content-type': 'application/json' }),
    ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    ...options.headers,
  }
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(options.timeoutMs ?? PATIENCE_MS)
    const outgoing = request({ host, port, method, path, headers, agent, signal }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        const status = response.statusCode ?? 0
        // A request with a Host header may be answered by a node, whose own API is not in the contract.
        const operation = 'host' in headers ? undefined : operationAt(method, path)
        const fault = operation && mismatch(operation, status, text)
        if (fault !== undefined) return reject(new Error(`${method} ${path} answers ${status} against the contract: ${fault}`))
        resolve({ status, headers: response.headers, text, json: () => JSON.parse(text) })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Whether the text begins with a whole response. */
function isResponse(text: string): boolean {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [, length] = /^content-length: *(\d+)\r?$/im.exec(head) ?? []
  return length !== undefined && rest.join('\r\n\r\n').length >= Number(length)
}

/** Sends raw bytes; returns everything received until the server closes, or has responded and is silent for a moment. */
export function sendRaw(port: number, bytes: string | Buffer, quietMs = 1_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.setTimeout(PATIENCE_MS, () => socket.destroy())
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (isResponse(text)) socket.setTimeout(quietMs)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => resolve(text))
    socket.write(bytes)
  })
}

/** The host is the directory of a Unix socket, which a URL can contain only in its query. */
export function storeEnv({ host, user, password, database }: Store, masterKey: string): Record<string, string> {
  return { DATABASE_URL: `postgres:///${database}?${new URLSearchParams({ host, user, password })}`, MASTER_KEY: masterKey }
}

/**
 * - shared: its own database in the PostgreSQL that all tests share. The default, because the service starts in half the time.
 * - embedded: its own PostgreSQL, for tests that take it away or look at its files, and for tests of the first run.
 * - none: nothing is prepared, as at the first start on a new machine.
 */
export type StoreKind = 'shared' | 'embedded' | 'none'

export type ServerSetup = {
  env?: Record<string, string>
  /** An existing directory, or one that the test fills. Unless `store` says otherwise, no database is prepared for it. */
  dataDir?: string
  store?: StoreKind
  /** Runs the service in a separate process, for example in a terminal or as another user. By default it runs in the process of the test. */
  command?: string[]
}

/** The command for tests that kill the service, or look at its process or exit code. */
export const PROCESS = [process.execPath, SERVER]

export class Server {
  readonly dataDir: string
  readonly env: Record<string, string>
  readonly #command: string[] | undefined
  readonly #watchers = new Set<() => void>()
  readonly #storeKind: StoreKind
  readonly #newMasterKey = randomBytes(32).toString('base64')
  #shared: Store | undefined
  #isPrepared = false
  #running: Running | undefined
  stdout = ''
  stderr = ''
  port = 0
  url = ''

  constructor({
    env = {},
    dataDir,
    store = dataDir === undefined && env.DATABASE_URL === undefined ? 'shared' : 'none',
    // Tests kill their Kubernetes replicas, and `startService` does not run ROLE=reaper. Tests with an embedded PostgreSQL kill
    // PostgreSQL while the service uses it.
    command = env.NODE_RUNTIME === 'kubernetes' || store === 'embedded' ? PROCESS : undefined,
  }: ServerSetup = {}) {
    this.dataDir = dataDir ?? join(temporaryDirectory(), 'data')
    this.env = env
    this.#storeKind = store
    this.#command = command
  }

  async #prepareStore(): Promise<void> {
    if (this.#isPrepared) return
    this.#isPrepared = true
    if (this.#storeKind === 'embedded') copyPreparedDataDir(inject('postgres'), this.dataDir)
    if (this.#storeKind !== 'shared') return
    this.#shared = await createDatabase(inject('postgres'))
    databases.push(this.#shared)
  }

  /** Starts the service; earlier output is discarded. Does not wait until a separate process is ready. */
  async launch(env: Record<string, string> = {}): Promise<this> {
    await this.#prepareStore()
    this.port ||= await freePort()
    this.stdout = ''
    this.stderr = ''
    const store = this.#shared ? storeEnv(this.#shared, this.#newMasterKey) : {}
    const place = { PATH: process.env.PATH, HOME: '/nonexistent', DATA_DIR: this.dataDir, PORT: String(this.port) }
    const environment = { ...place, ...store, ...this.env, ...env }
    const print: Print = (stream, text) => {
      this[stream] += text
      for (const look of this.#watchers) look()
    }
    this.#running = this.#command ? launchProcess(this.#command, environment, print) : await launchHere(environment, print)
    servers.add(this)
    void this.exited.finally(() => servers.delete(this)).catch(() => undefined)
    return this
  }

  async start(env: Record<string, string> = {}): Promise<this> {
    await this.launch(env)
    const [, url = ''] = await this.printed(/^boltyard ready (\S+)\r?\n/m)
    this.url = url
    this.port = Number(new URL(url).port)
    return this
  }

  /** Waits for the first match in the server's output; fails if the server exits first. */
  printed(pattern: RegExp, stream: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(this[stream])
        if (match) resolve(match)
      }
      look()
      this.#watchers.add(look)
      void this.exited.then(({ code }) => {
        reject(new Error(`exited (${code}) without printing ${pattern}: ${this.stdout}${this.stderr}`))
      })
    })
  }

  get running(): Running {
    if (!this.#running) throw new Error('not started')
    return this.#running
  }

  get child(): ChildProcess {
    const { child } = this.running
    if (!child) throw new Error('the service runs in the process of the test: startServer({ command: PROCESS })')
    return child
  }

  get exited(): Promise<Exit> {
    return this.running.exited
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    this.running.end(signal)
    return this.exited
  }

  /** A service in the process of the test can only be stopped, not killed. */
  async end(): Promise<void> {
    await this.kill(this.#command ? 'SIGKILL' : 'SIGTERM')
  }

  stop(): Promise<Exit> {
    return this.kill('SIGTERM')
  }

  async restart(signal: NodeJS.Signals = 'SIGTERM', env: Record<string, string> = {}): Promise<this> {
    await this.kill(signal)
    return this.start(env)
  }

  send(method: string, path: string, options: Request = {}): Promise<Answer> {
    return send(this.port, method, path, options)
  }

  /** The operator API, as the operator. */
  operator(method: string, path: string, options: Request = {}): Promise<Answer> {
    return this.send(method, `/operator/v1${path}`, { token: this.operatorToken, ...options })
  }

  readSecret(name: string): string {
    return readFileSync(join(this.dataDir, name), 'utf8').trim()
  }

  get operatorToken(): string {
    return this.env.OPERATOR_TOKEN ?? this.readSecret('operator.token')
  }

  get masterKey(): string {
    return this.env.MASTER_KEY ?? (this.#shared ? this.#newMasterKey : this.readSecret('master.key'))
  }

  /** Only with an embedded PostgreSQL: otherwise the service does not create an account on its own. */
  get firstRun(): { accountId: string; apiKey: string; claimUrl: string } {
    return JSON.parse(this.readSecret('first-run.json'))
  }

  async newAccount(body: { name?: string; creditSat?: number } = {}): Promise<Account> {
    const answer = await this.operator('POST', '/accounts', { json: { name: 'test', ...body } })
    if (answer.status !== 201) throw new Error(answer.text)
    return answer.json()
  }

  /** In a new account unless one is given. */
  async newKey(scopes: string[] = [], accountId?: string): Promise<Key> {
    const account = accountId ?? (await this.newAccount()).id
    const answer = await this.operator('POST', `/accounts/${account}/keys`, { json: { name: 'test', scopes } })
    if (answer.status !== 201) throw new Error(answer.text)
    return { accountId: account, ...answer.json() }
  }

  get store(): Store {
    if (this.#shared) return this.#shared
    const host = postmasterFile(this.dataDir)[4] ?? ''
    return { host, port: 5432, user: 'boltyard', password: this.readSecret('postgres.password'), database: 'postgres' }
  }

  /** For a second service that shares the store and the master key. */
  get sharedStoreEnv(): Record<string, string> {
    return storeEnv(this.store, this.masterKey)
  }

  get postmasterPid(): number {
    return Number(postmasterFile(this.dataDir)[0])
  }

  get hubPid(): number {
    return JSON.parse(readFileSync(join(this.dataDir, 'run', 'hub', 'run.json'), 'utf8')).process.pid
  }

  /** Kills the embedded PostgreSQL and keeps it down for as long as the caller likes, by moving its program away. */
  async takeStoreAway(): Promise<{ giveBack: () => void }> {
    const directory = join(this.dataDir, 'postgres')
    const programs = join(this.dataDir, 'software')
    const software = join(programs, readdirSync(programs).find((name) => name.startsWith('postgres-')) ?? '')
    const elsewhere = join(programs, 'elsewhere')
    renameSync(software, elsewhere)
    for (const pid of processesIn(directory)) {
      try {
        if (readlinkSync(`/proc/${pid}/cwd`) === join(directory, 'data')) process.kill(pid, 'SIGKILL')
      } catch {
        // it has already exited: PostgreSQL's processes end when its main process is gone
      }
    }
    await eventually(() => processesIn(directory).length === 0, 'PostgreSQL to be gone')
    return { giveBack: () => renameSync(elsewhere, software) }
  }

  sql(): Database {
    // A small pool, because every test opens its own and PostgreSQL accepts a limited number of connections.
    return track(openStore(this.store, 4))
  }
}

export type Account = { id: string; name: string; creditSat: number; createdAt: number }
export type Key = { accountId: string; id: string; name: string; scopes: string[]; key: string }

export async function startServer(setup: ServerSetup = {}): Promise<Server> {
  return new Server(setup).start()
}

/** A connection that is closed when the file has run. */
export function track(sql: Database): Database {
  stores.add(sql)
  return sql
}

function postmasterFile(dataDir: string): string[] {
  return readFileSync(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')
}

/** Processes that a server with this directory started, found by their command line or working directory. */
export function processesIn(directory: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      try {
        const [place, line] = [readlinkSync(`/proc/${pid}/cwd`), readFileSync(`/proc/${pid}/cmdline`, 'utf8')]
        return place.startsWith(`${directory}/`) || line.includes(`${directory}/`)
      } catch {
        // it has exited, or we may not inspect it
        return false
      }
    })
}

/** SIGQUIT first: PostgreSQL outlives a killed service, and this immediate shutdown frees its shared memory. */
export async function killWhatRunsIn(directory: string): Promise<void> {
  const isEmptyAfter = (signal?: NodeJS.Signals): boolean => {
    const pids = processesIn(directory)
    for (const pid of signal ? pids : []) {
      try {
        process.kill(pid, signal)
      } catch {
        // exited on its own meanwhile
      }
    }
    return pids.length === 0
  }
  if (isEmptyAfter('SIGQUIT')) return
  const gone = await eventually(() => isEmptyAfter(), 'processes to end', 3_000).catch(() => false)
  // Repeated until all are gone, because their directory is removed next and some may be starting others.
  if (!gone) await eventually(() => isEmptyAfter('SIGKILL'), 'killed processes to end')
}
