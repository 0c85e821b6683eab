import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SANDBOXD } from '../../../testing/bundles.ts'
import { type Answer, eventually, type Key, PATIENCE_MS, processesIn, type Request, Server, type ServerSetup } from './server.ts'

/** An executable for a catalog. Nodes may run as another user, so everyone may read it. */
export function program(directory: string, name: string, script: string): string {
  const path = join(directory, name)
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return path
}

/** A copy of the sandbox daemon that reports this version. */
export function sandboxd(directory: string, version: string): string {
  const bundle = join(directory, `sandboxd-${version}.cjs`)
  const source = readFileSync(SANDBOXD, 'utf8')
  if (source.split('0.8.0-sandbox').length !== 2) throw new Error('the version is expected once in the bundle')
  writeFileSync(bundle, source.replace('0.8.0-sandbox', `${version}-sandbox`), { mode: 0o644 })
  return program(directory, `sandboxd-${version}`, `exec '${process.execPath}' '${bundle}' "$@"`)
}

export const versions = (catalogue: Record<string, string>): Record<string, string> => ({
  NODE_VERSIONS: Object.entries(catalogue)
    .map(([version, path]) => `${version}=${path}`)
    .join(','),
})

export type Daemon = { pid: number; startTime: string; nodeId: string }

/** The hubs of this data directory, and of no other, recognised by their command line. */
export function hubsIn(dataDir: string): number[] {
  return processesIn(dataDir).filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`\0hub\0--datadir=${dataDir}/hub\0`),
  )
}

/** Every running process that was started for a node of this data directory, recorded or not. */
export function daemonsIn(dataDir: string): Daemon[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const environment = readFileSync(`/proc/${name}/environ`, 'latin1').split('\0')
        const directory = environment.find((entry) => entry.startsWith(`PHOENIX_DATADIR=${dataDir}/nodes/`))
        const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
        const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        if (directory === undefined || state === 'Z') return []
        return [{ pid: Number(name), startTime: fields[18] ?? '', nodeId: directory.split('/').at(-1) ?? '' }]
      } catch {
        // it has exited meanwhile
        return []
      }
    })
}

export type Status = 'provisioning' | 'ready' | 'stopped' | 'failed'
export type NodeView = {
  id: string
  name: string
  status: Status
  failureMessage: string | null
  updateStatus: string | null
  updateCompletedAt: number | null
}
export type Credentials = { seed: string; password: string; restrictedPassword: string }
export type Created = { node: NodeView; credentials: Credentials }

/** A service and the nodes of one account. */
export class Yard extends Server {
  #key: Promise<Key> | undefined

  /** Limits that are not under test are high. Nodes are free, so there is no treasury node among the processes. */
  constructor(setup: ServerSetup = {}) {
    super({ ...setup, env: { RATE_LIMIT_MAX: '1000000', NODE_PRICE_SAT_PER_DAY: '0', LOG_LEVEL: 'warn', ...setup.env } })
  }

  async v1(method: string, path: string, options: Request = {}): Promise<Answer> {
    this.#key ??= this.newKey(['nodes:write', 'gateway:write'])
    return this.send(method, `/v1/nodes${path}`, { token: (await this.#key).key, ...options })
  }

  async create(headers: Record<string, string> = {}): Promise<Created> {
    const answer = await this.v1('POST', '', { json: {}, headers })
    if (answer.status !== 202) throw new Error(answer.text)
    return answer.json()
  }

  async createReady(): Promise<Created> {
    const created = await this.create()
    await this.becomes(created.node.id, 'ready')
    return created
  }

  async view(id: string): Promise<NodeView> {
    const answer = await this.v1('GET', `/${id}`)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.json()
  }

  async list(): Promise<NodeView[]> {
    return (await this.v1('GET', '')).json().nodes
  }

  async becomes(id: string, status: Status, timeoutMs = PATIENCE_MS): Promise<NodeView> {
    return this.shows(id, (view) => view.status === status, `${id} to be ${status}`, timeoutMs)
  }

  async shows(id: string, holds: (view: NodeView) => boolean, what: string, timeoutMs = PATIENCE_MS): Promise<NodeView> {
    let last: NodeView | undefined
    return eventually(
      async () => {
        last = await this.view(id)
        return holds(last) ? last : undefined
      },
      what,
      timeoutMs,
    ).catch((error: Error) => {
      throw new Error(`${error.message}; it shows ${JSON.stringify(last)}`)
    })
  }

  async expectOk(answer: Promise<Answer>): Promise<any> {
    const { status, text } = await answer
    if (status >= 300) throw new Error(`${status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }

  /** The node's own API through the service's proxy, for anyone who has its password. */
  async node(id: string, password: string, method: string, path: string, form?: Record<string, string>): Promise<any> {
    const authorization = `Basic ${Buffer.from(`:${password}`).toString('base64')}`
    const body = form && { body: new URLSearchParams(form).toString() }
    const headers = { authorization, ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}) }
    const answer = await this.send(method, `/n/${id}${path}`, { headers, ...body })
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text} ${this.stderr}`)
    return answer.json()
  }

  async fund(id: string, amountSat: number): Promise<void> {
    await this.expectOk(this.operator('POST', `/sandbox/nodes/${id}/fund`, { json: { amountSat } }))
  }

  /** The only process of a node; undefined if it has none. Two would put its money at risk. */
  daemon(id: string): Daemon | undefined {
    const daemons = daemonsIn(this.dataDir).filter(({ nodeId }) => nodeId === id)
    if (daemons.length > 1) throw new Error(`${id} runs ${daemons.length} times`)
    return daemons[0]
  }

  directory(id: string): string {
    return join(this.dataDir, 'nodes', id)
  }

  /** The directory for files about a node that only the service can read. */
  state(id: string): string {
    return join(this.dataDir, 'run', id)
  }

  copyOf(id: string, version: string): string {
    return `${this.directory(id)}.before-update-from-${version}`
  }

  conf(id: string): string {
    const path = join(this.directory(id), 'phoenix.conf')
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  /** The daemon's own command line, from the kernel. */
  commandLine(id: string): string[] {
    const daemon = this.daemon(id)
    return daemon ? readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8').split('\0') : []
  }
}
