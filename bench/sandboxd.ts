import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { Agent, request } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { closedLoop, type Measure, median, quantile, timed } from './measure.ts'

const SANDBOXD = fileURLToPath(new URL('../sandboxd/dist/sandboxd.cjs', import.meta.url))
const PASSWORD = 'a'.repeat(64)
const TOKEN = 'b'.repeat(64)
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

type Target = { port: number; authorization: string }

function call(
  target: Target,
  method: string,
  path: string,
  body?: string,
  contentType = 'application/x-www-form-urlencoded',
): Promise<any> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: target.authorization, ...(body === undefined ? {} : { 'content-type': contentType }) }
    const outgoing = request({ host: '127.0.0.1', port: target.port, method, path, headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () =>
        response.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${response.statusCode} ${text}`)),
      )
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

const form = (values: Record<string, string | number>): string => new URLSearchParams(values as Record<string, string>).toString()

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Waits until the port responds. Polls every millisecond, so that the interval does not distort the measurement. */
async function answering(probe: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await probe()
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
}

class Running {
  readonly target: Target
  readonly process: ReturnType<typeof spawn>

  constructor(target: Target, child: ReturnType<typeof spawn>) {
    this.target = target
    this.process = child
  }

  get rssMb(): number {
    const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.process.pid}/status`, 'utf8'))?.[1]
    return Number(kilobytes) / 1024
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.process.once('close', resolve))
    this.process.kill()
    await gone
  }
}

async function startNode(directory: string, hubPort?: number): Promise<Running> {
  const dataDir = join(directory, randomBytes(4).toString('hex'))
  mkdirSync(dataDir)
  const conf = [`http-password=${PASSWORD}`, `http-password-limited-access=${TOKEN}`, `webhook-secret=${TOKEN}`]
  if (hubPort) conf.push(`sandbox-hub=${TOKEN}@127.0.0.1:${hubPort}`)
  writeFileSync(join(dataDir, 'phoenix.conf'), conf.join('\n'))
  const port = await freePort()
  const target = { port, authorization: `Basic ${Buffer.from(`:${PASSWORD}`).toString('base64')}` }
  const child = spawn(process.execPath, [SANDBOXD, '--agree-to-terms-of-service', '--silent', `--http-bind-port=${port}`], {
    env: { PHOENIX_DATADIR: dataDir },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await answering(() => call(target, 'GET', '/getinfo'))
  return new Running(target, child)
}

async function startHub(directory: string): Promise<Running> {
  const dataDir = join(directory, 'hub')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'hub.conf'), `node-token=${TOKEN}\ncontrol-token=${PASSWORD}`)
  const port = await freePort()
  const child = spawn(process.execPath, [SANDBOXD, 'hub', `--datadir=${dataDir}`, `--http-bind-port=${port}`], {
    env: {},
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const target = { port, authorization: `Bearer ${PASSWORD}` }
  await answering(() => call(target, 'GET', '/nodes'))
  return new Running(target, child)
}

function syncMedianMs(directory: string): number {
  const file = openSync(join(directory, 'fsync'), 'w')
  const line = Buffer.alloc(700, 'x')
  const took = Array.from({ length: 200 }, () => {
    const started = performance.now()
    writeSync(file, line)
    fdatasyncSync(file)
    return performance.now() - started
  })
  closeSync(file)
  return median(took)
}

export async function benchSandboxd(quick: boolean): Promise<{ measures: Measure[]; startMs: number }> {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-bench-'))
  const starts = quick ? 3 : 15
  const calls = quick ? 800 : 10_000
  const payments = quick ? 100 : 1_000
  const measures: Measure[] = []
  const running: Running[] = []
  const bareMs: number[] = []
  const startMs: number[] = []
  try {
    for (let round = 0; round < starts; round++) {
      bareMs.push(await timed(async () => spawnSync(process.execPath, ['-e', '0'], { env: {} })))
      let node: Running | undefined
      startMs.push(
        await timed(async () => {
          node = await startNode(directory)
        }),
      )
      await node?.stop()
    }
    measures.push({ name: 'bare Node start and exit', value: median(bareMs), unit: 'ms' })
    measures.push({ name: 'sandboxd start until its API answers', value: median(startMs), unit: 'ms' })
    measures.push({
      name: '  over bare Node',
      value: median(startMs) - median(bareMs),
      unit: 'ms',
      target: { op: '≤', value: 300 },
    })
    measures.push({ name: 'one write and fdatasync on this disk', value: syncMedianMs(directory), unit: 'ms' })

    const hub = await startHub(directory)
    const payer = await startNode(directory, hub.target.port)
    const payee = await startNode(directory, hub.target.port)
    running.push(hub, payer, payee)
    measures.push({ name: 'memory of a fresh node', value: payee.rssMb, unit: 'MB', target: { op: '≤', value: 80 } })

    const createInvoice = (): Promise<any> =>
      call(payee.target, 'POST', '/createinvoice', form({ description: 'bench', amountSat: 100 }))
    await closedLoop(300, 16, createInvoice)
    const alone = await closedLoop(calls / 5, 1, createInvoice)
    const crowd = await closedLoop(calls, 32, createInvoice)
    measures.push({
      name: 'createinvoice, 1 caller: median',
      value: median(alone.latenciesMs),
      unit: 'ms',
      target: { op: '≤', value: 5 },
    })
    measures.push({ name: 'createinvoice, 1 caller: p99', value: quantile(alone.latenciesMs, 0.99), unit: 'ms' })
    measures.push({ name: 'createinvoice, 32 callers', value: crowd.perSecond, unit: '/s', target: { op: '≥', value: 300 } })

    const { nodeId } = await call(payer.target, 'GET', '/getinfo')
    await call(hub.target, 'POST', `/nodes/${nodeId}/fund`, JSON.stringify({ amountSat: 1_000_000_000 }), 'application/json')
    const invoices: string[] = []
    for (let index = 0; index < payments * 2 + 50; index++) invoices.push((await createInvoice()).serialized)
    const pay = async (): Promise<void> => {
      const result = await call(payer.target, 'POST', '/payinvoice', form({ invoice: invoices.pop() ?? '' }))
      if (!result.paymentPreimage) throw new Error(result.reason)
    }
    await closedLoop(50, 8, pay)
    const single = await closedLoop(payments, 1, pay)
    const many = await closedLoop(payments, 32, pay)
    measures.push({
      name: 'payment, 1 at a time: median',
      value: median(single.latenciesMs),
      unit: 'ms',
      target: { op: '≤', value: 30 },
    })
    measures.push({ name: 'payment, 1 at a time: p99', value: quantile(single.latenciesMs, 0.99), unit: 'ms' })
    measures.push({ name: 'payments, 32 at once', value: many.perSecond, unit: '/s' })
    measures.push({ name: 'memory of the payee after all that', value: payee.rssMb, unit: 'MB' })
    measures.push({ name: 'memory of the hub after all that', value: hub.rssMb, unit: 'MB' })
    return { measures, startMs: median(startMs) }
  } finally {
    await Promise.all(running.map((daemon) => daemon.stop()))
    agent.destroy()
    rmSync(directory, { recursive: true, force: true })
  }
}
