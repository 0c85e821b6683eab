import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { expect } from 'vitest'
import { type Credentials, Owner } from './nodes.ts'
import { type Answer, eventually, PATIENCE_MS, type Request, type Server } from './server.ts'

/** People who use the dashboard, through the requests that their browsers send. */

export type DashboardNode = {
  id: string
  name: string
  status: 'provisioning' | 'ready' | 'stopped' | 'failed'
  endpointUrl: string
  accessMode: 'limited' | 'full'
  operation: string | null
}
export type CreatedNode = { node: DashboardNode; credentials: Credentials }

let addresses = 0
/** Each request comes from its own address, so that only tests of a limit reach it (TRUST_PROXY=1). */
const newAddress = (): string => `10.128.${(addresses >> 8) & 255}.${addresses++ & 255}`
let people = 0
const PASSWORD = 'correct horse battery'

export const newRepeatKey = (): string => randomBytes(16).toString('hex')

export class Visitor {
  readonly server: Server
  cookie: string
  readonly accountId: string
  readonly userId: string
  readonly email: string
  readonly origin: string

  constructor(
    server: Server,
    cookie: string,
    { accountId, userId, email, origin }: { accountId: string; userId: string; email: string; origin: string },
  ) {
    this.server = server
    this.cookie = cookie
    this.accountId = accountId
    this.userId = userId
    this.email = email
    this.origin = origin
  }

  headers(): Record<string, string> {
    return { cookie: this.cookie, origin: this.origin, 'x-forwarded-for': newAddress() }
  }

  send(method: string, path: string, options: Request = {}): Promise<Answer> {
    const headers = { ...this.headers(), ...options.headers }
    return this.server.send(method, `/dashboard/api${path}`, { ...options, headers })
  }

  /** The body of a response that must have this status. */
  async want<T = any>(status: number, method: string, path: string, options: Request = {}): Promise<T> {
    const answer = await this.send(method, path, options)
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return (answer.text === '' ? undefined : answer.json()) as T
  }

  async refusal(method: string, path: string, options: Request = {}): Promise<[status: number, code: string, message: string]> {
    const { status, text, json } = await this.send(method, path, options)
    if (status < 400) throw new Error(`${method} ${path}: ${status} ${text}`)
    expect(Object.keys(json())).toEqual(['error'])
    return [status, json().error.code, json().error.message]
  }

  create(json: unknown = {}, key = newRepeatKey()): Promise<CreatedNode> {
    return this.want(202, 'POST', '/nodes', { json, headers: { 'idempotency-key': key } })
  }

  async createReady(json: unknown = {}): Promise<CreatedNode> {
    const created = await this.create(json)
    return { ...created, node: await this.until(created.node.id, 'ready') }
  }

  until(id: string, status: DashboardNode['status'], timeoutMs = PATIENCE_MS): Promise<DashboardNode> {
    return eventually(
      async () => {
        const node = await this.want<DashboardNode>(200, 'GET', `/nodes/${id}`)
        if (node.status !== status) throw new Error(node.status)
        return node
      },
      `${id} to be ${status}`,
      timeoutMs,
    )
  }

  /** A caller with an API key of the same account. */
  async owner(scopes: string[] = ['nodes:write', 'gateway:write']): Promise<Owner> {
    return new Owner(this.server, await this.server.newKey(scopes, this.accountId))
  }

  /** Ends the earlier session first. */
  async signInAgain(): Promise<void> {
    await this.want(200, 'POST', '/auth/sign-out', { json: {} })
    const json = { email: this.email, password: PASSWORD }
    this.cookie = cookieOf(await this.send('POST', '/auth/sign-in/email', { json }))
  }

  listen(): Promise<Stream> {
    return openStream(this)
  }
}

/** `origin` is where the page was loaded from, if that is not the service's own URL. */
export async function signUp(server: Server, origin = server.url): Promise<Visitor> {
  const email = `person${people++}@example.com`
  const headers = { origin, 'x-forwarded-for': newAddress() }
  const answer = await server.send('POST', '/dashboard/api/auth/sign-up/email', {
    headers,
    json: { email, password: PASSWORD },
  })
  const cookie = cookieOf(answer)
  const me = (await server.send('GET', '/dashboard/api/me', { headers: { cookie } })).json()
  return new Visitor(server, cookie, { accountId: me.account.id, userId: me.user.id, email, origin })
}

function cookieOf({ status, text, headers }: Answer): string {
  if (status !== 200) throw new Error(`sign-in: ${status} ${text}`)
  return (headers['set-cookie'] ?? []).map((line) => line.split(';')[0]).join('; ')
}

export type Changed = { nodes: boolean; payments: boolean; activity: boolean }
/** Server-sent events as a browser reads them. */
export type Stream = {
  headers: Record<string, unknown>
  events: Changed[]
  /** When each event arrived, by the wall clock. */
  times: number[]
  comments: string[]
  retries: string[]
  /** When the server ended the stream. */
  ended: Promise<void>
  isOpen: () => boolean
  close: () => void
  /** Waits for the first event of that kind from now on; returns how many milliseconds that took. */
  next: (is: (changed: Changed) => boolean, timeoutMs?: number) => Promise<number>
}

function openStream(visitor: Visitor): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: '127.0.0.1',
      port: visitor.server.port,
      path: '/dashboard/api/events',
      headers: { ...visitor.headers(), accept: 'text/event-stream' },
      agent: false,
    })
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      if (response.statusCode !== 200) {
        response.resume()
        return reject(new Error(`events: ${response.statusCode}`))
      }
      const events: Changed[] = []
      const times: number[] = []
      const comments: string[] = []
      const retries: string[] = []
      let text = ''
      let isOpen = true
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) {
          if (block.startsWith(':')) comments.push(block)
          else if (block.startsWith('retry:')) retries.push(block)
          else {
            const [, event, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
            if (event !== 'changed') throw new Error(`not an event: ${block}`)
            events.push(JSON.parse(data))
            times.push(Date.now())
          }
        }
      })
      response.on('error', () => undefined)
      const ended = new Promise<void>((done) => {
        response.on('close', () => {
          isOpen = false
          done()
        })
      })
      const next = async (is: (changed: Changed) => boolean, timeoutMs = PATIENCE_MS): Promise<number> => {
        const [since, seen] = [performance.now(), events.length]
        await eventually(() => events.slice(seen).some(is), 'an event', timeoutMs)
        return performance.now() - since
      }
      resolve({
        headers: response.headers,
        events,
        times,
        comments,
        retries,
        ended,
        isOpen: () => isOpen,
        close: () => outgoing.destroy(),
        next,
      })
    })
    outgoing.end()
  })
}
