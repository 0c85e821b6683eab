import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { afterAll } from 'vitest'
import { SANDBOXD } from '../../testing/bundles.ts'
import { eventually, Hopeless } from '../../testing/eventually.ts'

export { eventually }

/** Real daemons, files and sockets. Everything a test file starts or writes is removed at its end. */

const daemons = new Set<Daemon>()
const directories: string[] = []
const agent = new Agent({ keepAlive: false })

afterAll(async () => {
  await Promise.all([...daemons].map((daemon) => daemon.kill()))
  for (const claim of claims) claim.close()
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxd-test-'))
  directories.push(directory)
  return directory
}

/**
 * Outside the system's ephemeral ports and those of the service's nodes (from 20000) and hub (from 19000), because a daemon that is killed
 * and restarted must find its port free. Each test worker has one thousand ports.
 */
let nextPort = 10_000 + (Number(process.env.VITEST_POOL_ID ?? 0) % 9) * 1_000 + (process.pid % 500)
/** Abstract sockets, which end with this process. Another suite on this machine must not take a port while its daemon is down. */
const claims: Server[] = []

export async function freePort(): Promise<number> {
  for (;;) {
    const port = nextPort++
    const claim = await listenOn(`\0boltyard-test-port-${port}`)
    if (!claim) continue
    claims.push(claim.unref())
    const probe = await listenOn(port)
    if (!probe) continue
    probe.close()
    await once(probe, 'close')
    return port
  }
}

function listenOn(place: number | string): Promise<Server | undefined> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined))
    const options = typeof place === 'number' ? { port: place, host: '127.0.0.1' } : { path: place }
    server.listen(options, () => resolve(server))
  })
}

export type Answer = { status: number; headers: IncomingHttpHeaders; text: string; json: () => any }

export function send(
  port: number,
  method: string,
  path: string,
  options: { headers?: Record<string, string>; body?: string | Buffer; timeoutMs?: number } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(options.timeoutMs ?? 120_000)
    const outgoing = request({ host: '127.0.0.1', port, method, path, headers: options.headers, agent, signal }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: () => JSON.parse(text) })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(options.body)
  })
}

export const basic = (password: string, user = ''): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

export type Spawned = { args: string[]; env?: Record<string, string>; program?: string; stdin?: string; wrapper?: string[] }

export class Daemon {
  stdout = ''
  stderr = ''
  readonly child: ChildProcess
  readonly exited: Promise<{ code: number | null; signal: string | null }>

  constructor({ args, env = {}, program = SANDBOXD, stdin, wrapper = [] }: Spawned) {
    const [command, ...rest] = [...wrapper, process.execPath, program, ...args] as [string, ...string[]]
    this.child = spawn(command, rest, { env: { PATH: process.env.PATH, HOME: '/nonexistent', ...env }, stdio: 'pipe' })
    this.child.stdout?.on('data', (chunk: Buffer) => {
      this.stdout += chunk
    })
    this.child.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk
    })
    this.child.stdin?.on('error', () => undefined)
    this.child.stdin?.end(stdin)
    this.exited = once(this.child, 'close').then(([code, signal]) => {
      daemons.delete(this)
      return { code, signal }
    })
    daemons.add(this)
  }

  /** Waits for the first match in the daemon's output. Fails if the daemon exits without one. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    let gone = false
    void this.exited.then(() => {
      gone = true
    })
    return eventually(() => {
      const match = pattern.exec(this.stdout)
      if (!match && gone) throw new Hopeless(`exited without printing ${pattern}: ${this.stdout}${this.stderr}`)
      return match
    }, `the daemon to print ${pattern}`)
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<{ code: number | null; signal: string | null }> {
    this.child.kill(signal)
    return this.exited
  }
}

export type NodeSetup = {
  hub?: TestHub
  words?: string
  conf?: Record<string, string>
  args?: string[]
  env?: Record<string, string>
  program?: string
  dataDir?: string
}

export const FULL = 'f'.repeat(64)
export const LIMITED = 'e'.repeat(64)
export const WEBHOOK_SECRET = 'd'.repeat(64)
const CONTROL = 'c'.repeat(64)

export function confText(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}=${value}`)
    .join('\n')
}

/** A node with a known seed and passwords, as a supervisor would prepare it. */
export class TestNode {
  readonly dataDir: string
  readonly words: string
  readonly setup: NodeSetup
  daemon!: Daemon
  port = 0
  controlPort = 0
  nodeId = ''

  constructor(setup: NodeSetup = {}) {
    this.setup = setup
    this.dataDir = setup.dataDir ?? temporaryDirectory()
    this.words = setup.words ?? generateMnemonic(wordlist, 128)
    writeFileSync(join(this.dataDir, 'seed.dat'), this.words)
    this.writeConf()
  }

  writeConf(extra: Record<string, string> = {}): void {
    const conf = {
      'http-password': FULL,
      'http-password-limited-access': LIMITED,
      'webhook-secret': WEBHOOK_SECRET,
      'sandbox-control-token': CONTROL,
      ...(this.setup.hub ? { 'sandbox-hub': `${this.setup.hub.nodeToken}@127.0.0.1:${this.setup.hub.port}` } : {}),
      ...this.setup.conf,
      ...extra,
    }
    writeFileSync(join(this.dataDir, 'phoenix.conf'), confText(conf))
  }

  /** Starts the process and waits only for its control port. */
  async launch(env: Record<string, string> = {}): Promise<this> {
    this.port ||= await freePort()
    this.daemon = new Daemon({
      args: [`--http-bind-port=${this.port}`, ...(this.setup.args ?? [])],
      env: { PHOENIX_DATADIR: this.dataDir, ...this.setup.env, ...env },
      ...(this.setup.program ? { program: this.setup.program } : {}),
    })
    this.nodeId = (await this.daemon.printed(/nodeid: (\w+)/))[1] ?? ''
    this.controlPort = Number((await this.daemon.printed(/controls on http:\/\/[^:]+:(\d+)/))[1])
    return this
  }

  async start(env: Record<string, string> = {}): Promise<this> {
    await this.launch(env)
    await this.daemon.printed(/listening on http/)
    return this
  }

  async restart(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.daemon.kill(signal)
    await this.start()
  }

  get(path: string, password: string | undefined = FULL): Promise<Answer> {
    return send(this.port, 'GET', path, { headers: password === undefined ? {} : { authorization: basic(password) } })
  }

  post(path: string, form: Record<string, string | number> = {}, password = FULL): Promise<Answer> {
    const body = new URLSearchParams(form as Record<string, string>).toString()
    const headers = { authorization: basic(password), 'content-type': 'application/x-www-form-urlencoded' }
    return send(this.port, 'POST', path, { headers, body })
  }

  async invoice(
    form: Record<string, string | number> = {},
  ): Promise<{ amountSat: number; paymentHash: string; serialized: string }> {
    const answer = await this.post('/createinvoice', { description: 'test', ...form })
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.json()
  }

  async pay(invoice: string, form: Record<string, string | number> = {}): Promise<any> {
    const answer = await this.post('/payinvoice', { invoice, ...form })
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
    return answer.json()
  }

  async balance(): Promise<{ balanceSat: number; feeCreditSat: number }> {
    return (await this.get('/getbalance')).json()
  }

  async incoming(paymentHash: string): Promise<any> {
    return (await this.get(`/payments/incoming/${paymentHash}`)).json()
  }

  control(verb: string, body: Record<string, unknown> = {}, token = CONTROL): Promise<Answer> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return send(this.controlPort, 'POST', `/${verb}`, { headers, body: JSON.stringify(body) })
  }

  async state(): Promise<any> {
    return (await send(this.controlPort, 'GET', '/state', { headers: { authorization: `Bearer ${CONTROL}` } })).json()
  }

  async fund(amountSat: number): Promise<void> {
    const answer = await this.control('fund', { amountSat })
    if (answer.status !== 200) throw new Error(answer.text)
  }
}

export class TestHub {
  readonly dataDir = temporaryDirectory()
  readonly nodeToken = randomBytes(32).toString('hex')
  readonly controlToken = randomBytes(32).toString('hex')
  readonly program: string | undefined
  daemon!: Daemon
  port = 0

  constructor(program?: string) {
    this.program = program
    writeFileSync(join(this.dataDir, 'hub.conf'), confText({ 'node-token': this.nodeToken, 'control-token': this.controlToken }))
  }

  async start(env: Record<string, string> = {}): Promise<this> {
    this.port ||= await freePort()
    const args = ['hub', `--datadir=${this.dataDir}`, `--http-bind-port=${this.port}`]
    this.daemon = new Daemon({ args, env, ...(this.program ? { program: this.program } : {}) })
    await this.daemon.printed(/listening on http/)
    return this
  }

  async restart(): Promise<void> {
    await this.daemon.kill()
    await this.start()
  }

  post(path: string, body: Record<string, unknown>, token = this.controlToken): Promise<Answer> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return send(this.port, 'POST', path, { headers, body: JSON.stringify(body) })
  }

  async get(path: string, token = this.controlToken): Promise<Answer> {
    return send(this.port, 'GET', path, { headers: { authorization: `Bearer ${token}` } })
  }

  async fund(node: TestNode, amountSat: number): Promise<void> {
    const answer = await this.post(`/nodes/${node.nodeId}/fund`, { amountSat })
    if (answer.status !== 200) throw new Error(answer.text)
  }
}

/** A hub and two connected nodes; the first has money. */
export async function startNetwork(
  setup: { amountSat?: number } = {},
): Promise<{ hub: TestHub; payer: TestNode; payee: TestNode }> {
  const hub = await new TestHub().start()
  const [payer, payee] = await Promise.all([new TestNode({ hub }).start(), new TestNode({ hub }).start()])
  await hub.fund(payer, setup.amountSat ?? 1_000_000)
  return { hub, payer, payee }
}

export const readText = (path: string): string => readFileSync(path, 'utf8')
