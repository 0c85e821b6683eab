import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import type { Sql } from '../../src/store/db.ts'
import { type Answer, eventually, type Key, type Request, type Server, send, temporaryDirectory } from './server.ts'

/** Nodes of a server, as seen by their owner, the operator and the machine. */

export type Node = {
  id: string
  name: string
  status: 'provisioning' | 'ready' | 'stopped' | 'failed'
  endpointUrl: string
  failureMessage: string | null
  updateStatus: string | null
  updateCompletedAt: number | null
  createdAt: number
  updatedAt: number
}
export type Credentials = { seed: string; password: string; restrictedPassword: string }
export type Created = { node: Node; credentials: Credentials }

let addresses = 0
const newAddress = (): string => `10.${(addresses >> 16) & 127}.${(addresses >> 8) & 255}.${addresses++ & 255}`

/** A caller with a key. Each request is from its own address, so that only tests of the rate limit reach it (TRUST_PROXY=1). */
export class Owner {
  readonly server: Server
  readonly key: Key

  constructor(server: Server, key: Key) {
    this.server = server
    this.key = key
  }

  get accountId(): string {
    return this.key.accountId
  }

  send(method: string, path: string, options: Request = {}): Promise<Answer> {
    const headers = { 'x-forwarded-for': newAddress(), ...options.headers }
    return this.server.send(method, `/v1${path}`, { token: this.key.key, ...options, headers })
  }

  /** The body of a response that must have this status. */
  async want<T = Node>(status: number, method: string, path: string, options: Request = {}): Promise<T> {
    const answer = await this.send(method, path, options)
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return (answer.text === '' ? undefined : answer.json()) as T
  }

  create(json: unknown = {}, headers: Record<string, string> = {}): Promise<Created> {
    return this.want<Created>(202, 'POST', '/nodes', { json, headers })
  }

  async createReady(json: unknown = {}): Promise<Created> {
    const { node, credentials } = await this.create(json)
    return { node: await this.until(node.id, 'ready'), credentials }
  }

  get(id: string): Promise<Node> {
    return this.want(200, 'GET', `/nodes/${id}`)
  }

  async list(): Promise<Node[]> {
    return (await this.want<{ nodes: Node[] }>(200, 'GET', '/nodes')).nodes
  }

  until(id: string, status: Node['status']): Promise<Node> {
    return eventually(async () => {
      const node = await this.get(id)
      if (node.status !== status) throw new Error(`${node.status}: ${node.failureMessage}`)
      return node
    }, `${id} to be ${status}`)
  }

  act(id: string, action: 'start' | 'stop' | 'restart'): Promise<Node> {
    return this.want(200, 'POST', `/nodes/${id}/${action}`)
  }

  delete(id: string, query = ''): Promise<Answer> {
    return this.send('DELETE', `/nodes/${id}${query}`)
  }

  /** The status and code of a response that must be an error. */
  async refusal(method: string, path: string, options: Request = {}): Promise<[status: number, code: string]> {
    const { status, text, json } = await this.send(method, path, options)
    if (status < 400) throw new Error(`${method} ${path}: ${status} ${text}`)
    expect(Object.keys(json())).toEqual(['error'])
    return [status, json().error.code]
  }
}

/** In a new account unless one is given. */
export async function newOwner(server: Server, account: { creditSat?: number; accountId?: string } = {}): Promise<Owner> {
  const { creditSat, accountId } = account
  const id = accountId ?? (await server.newAccount(creditSat === undefined ? {} : { creditSat })).id
  return new Owner(server, await server.newKey(['nodes:write'], id))
}

export const basic = (password: string) => ({ authorization: `Basic ${Buffer.from(`:${password}`).toString('base64')}` })

/** The node's own API, the way clients reach it. */
export function callNode(
  { endpointUrl }: Pick<Node, 'endpointUrl'>,
  password: string,
  method: string,
  path: string,
  body?: string,
): Promise<Answer> {
  const { port, pathname } = new URL(endpointUrl)
  const form = body === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }
  return send(Number(port), method, pathname + path, {
    headers: { ...basic(password), ...form },
    ...(body === undefined ? {} : { body }),
  })
}

export async function infoOf({ node, credentials }: Created): Promise<{ nodeId: string; version: string }> {
  const answer = await callNode(node, credentials.password, 'GET', '/getinfo')
  if (answer.status !== 200) throw new Error(`getinfo: ${answer.status} ${answer.text}`)
  return answer.json()
}

export async function balanceOf({ node, credentials }: Created): Promise<number> {
  return (await callNode(node, credentials.password, 'GET', '/getbalance')).json().balanceSat
}

export async function invoiceOf({ node, credentials }: Created, amount = ''): Promise<string> {
  const answer = await callNode(node, credentials.password, 'POST', '/createinvoice', `description=test${amount}`)
  return answer.json().serialized
}

export async function fund(server: Server, { node }: Created, amountSat: number): Promise<void> {
  const answer = await server.operator('POST', `/sandbox/nodes/${node.id}/fund`, { json: { amountSat } })
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
}

export async function fault(server: Server, { node }: { node: Pick<Node, 'id'> }, kind: string): Promise<void> {
  const answer = await server.operator('POST', `/sandbox/nodes/${node.id}/fault`, { json: { fault: kind } })
  expect([answer.status, answer.text]).toEqual([200, '{}'])
}

/** Controls a sandbox daemon through the hub, in ways that the operator API does not offer. */
export async function control(server: Server, made: Created, verb: string, json: Record<string, unknown>): Promise<void> {
  const { nodeId } = await infoOf(made)
  const hub = join(server.dataDir, 'hub')
  const { port } = JSON.parse(readFileSync(join(server.dataDir, 'run', 'hub', 'run.json'), 'utf8'))
  const [, token = ''] = /^control-token=(.+)$/m.exec(readFileSync(join(hub, 'hub.conf'), 'utf8')) ?? []
  const answer = await send(port, 'POST', `/nodes/${nodeId}/${verb}`, { token, json })
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
}

export const directoryOf = (server: Server, { id }: { id: string }): string => join(server.dataDir, 'nodes', id)
/** The directory for files about a node that only the service can read. */
export const stateOf = (server: Server, { id }: { id: string }): string => join(server.dataDir, 'run', id)

/** A zombie still has an entry in /proc, but does not count as running. */
export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
  } catch {
    return false
  }
}

function pidIn(directory: string): number | undefined {
  const pid = JSON.parse(readFileSync(join(directory, 'run.json'), 'utf8')).process?.pid
  return typeof pid === 'number' && isRunning(pid) ? pid : undefined
}

export const pidOf = (server: Server, node: { id: string }): number | undefined => pidIn(stateOf(server, node))

export function runningPidOf(server: Server, node: { id: string }): number {
  const pid = pidOf(server, node)
  if (pid === undefined) throw new Error(`no process of ${node.id}`)
  return pid
}

/** Suspends the hub, so that nodes cannot reach their Lightning peer. Its process stays alive, so the service does not start another. */
export function freezeHub(server: Server): { thaw: () => void } {
  const pid = pidIn(join(server.dataDir, 'run', 'hub'))
  if (pid === undefined) throw new Error('no hub')
  process.kill(pid, 'SIGSTOP')
  return { thaw: () => process.kill(pid, 'SIGCONT') }
}

/**
 * From now on, the reconciler does not look at the node, so it neither changes the node's status nor restarts it. The result of a look
 * under way is discarded.
 */
export async function withhold(
  sql: Sql,
  { id }: { id: string },
  shown?: Node['status'],
): Promise<{ giveBack: () => Promise<void> }> {
  await sql`
    UPDATE nodes SET lease_owner = 'the test', lease_epoch = lease_epoch + 1, lease_until = now() + interval '1 hour',
      status = coalesce(${shown ?? null}, status) WHERE id = ${id}`
  const giveBack = async (): Promise<void> => {
    await sql`UPDATE nodes SET lease_owner = NULL, lease_until = NULL, next_at = now() WHERE id = ${id}`
  }
  return { giveBack }
}

/**
 * Pauses the only running reconciler with SIGSTOP in the middle of a step on a node that does not answer, so that the reconciler
 * keeps its lease. `meanwhile` runs during the pause. An earlier lease does not count, because its process may have been killed.
 */
export async function pauseInStep(server: Server, sql: Sql, id: string, meanwhile = async (): Promise<void> => undefined) {
  const [before] = await sql<{ epoch: number }[]>`SELECT lease_epoch AS epoch FROM nodes WHERE id = ${id}`
  if (!before) throw new Error(`no node ${id}`)
  const isLeased = async (): Promise<boolean> =>
    (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND lease_owner IS NOT NULL AND lease_epoch > ${before.epoch}`).length === 1
  return eventually(async () => {
    await sql`UPDATE nodes SET next_at = now() WHERE id = ${id} AND lease_owner IS NULL`
    if (!(await isLeased())) return undefined
    server.child.kill('SIGSTOP')
    const resume = (): boolean => server.child.kill('SIGCONT')
    await meanwhile()
    if (await isLeased()) return { resume }
    // The step ended just before the pause, or its last statement had already been sent.
    resume()
    return undefined
  }, 'the process to be paused in the middle of a step')
}

/** How many steps ended without a write, because another process had leased the node. */
export async function leasesLost(metricsPort: number): Promise<number> {
  const { text } = await send(metricsPort, 'GET', '/metrics')
  return Number(/^boltyard_reconciler_step_duration_seconds_count\{result="lease_lost"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

const SANDBOXD = fileURLToPath(new URL('../../../sandboxd/dist/sandboxd.cjs', import.meta.url))

/** From now on, the service connects to the node on this port. Returns the previous port. */
export function redirectNode(server: Server, node: { id: string }, port: number): number {
  const path = join(stateOf(server, node), 'run.json')
  const run = JSON.parse(readFileSync(path, 'utf8'))
  writeFileSync(`${path}.test`, JSON.stringify({ ...run, port }))
  renameSync(`${path}.test`, path)
  return run.port
}

/** A catalog of the bundled daemon under several versions, each of which reports its own. A custom command line can break one. */
export function catalogue(versions: { version: string; command?: string }[]): string {
  const directory = temporaryDirectory()
  const bundle = readFileSync(SANDBOXD, 'utf8')
  return versions
    .map(({ version, command = 'exec "$NODE" "$DAEMON" "$@"' }) => {
      const daemon = join(directory, `${version}.cjs`)
      writeFileSync(daemon, bundle.replace(/"0\.8\.0-/g, `"${version}-`))
      const script = join(directory, version)
      writeFileSync(script, `#!/bin/sh\nNODE='${process.execPath}' DAEMON='${daemon}'\n${command}\n`)
      chmodSync(script, 0o755)
      return `${version}=${script}`
    })
    .join(',')
}
