import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { BodyBroken, BodyTooLarge, readBody } from './body.ts'
import { JournalUnavailable } from './journal.ts'
import { sameSecret } from './secret.ts'

/** An invalid request to the control port or the hub. */
export class RequestFault extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export type Call = { params: string[]; body: Record<string, unknown>; remoteAddress: string }
export type Route = { method: 'GET' | 'POST'; path: RegExp; token: string; handle: (call: Call) => Promise<unknown> | unknown }

/** The sandbox's own JSON API (control port, hub): every route needs a token, and errors have one shape. Unrelated to phoenixd's API. */
export function jsonServer(routes: Route[], log: (line: string) => void): Server {
  const server = createServer((request, response) => {
    answer(routes, request)
      .then((body) => send(response, 200, body))
      .catch((error: unknown) => {
        if (error instanceof RequestFault) return send(response, error.status, { error: error.message })
        if (error instanceof BodyTooLarge) return send(response, 413, { error: 'the body is too large' }, true)
        if (error instanceof BodyBroken) return send(response, 400, { error: 'the body is incomplete' })
        if (error instanceof JournalUnavailable) return send(response, 503, { error: error.message })
        log(`internal error: ${error instanceof Error ? error.message : String(error)}`)
        send(response, 500, { error: 'internal error' })
      })
  })
  server.requestTimeout = 30_000
  server.headersTimeout = 30_000
  server.keepAliveTimeout = 60_000
  return server
}

async function answer(routes: Route[], request: IncomingMessage): Promise<unknown> {
  const path = (request.url ?? '').split('?')[0] ?? ''
  const onPath = routes.filter((route) => route.path.test(path))
  if (onPath.length === 0) throw new RequestFault(404, 'unknown path')
  const route = onPath.find(({ method }) => method === request.method)
  if (!route) throw new RequestFault(405, 'wrong method')
  const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1]
  if (token === undefined || !sameSecret(token, route.token)) throw new RequestFault(401, 'wrong token')
  return route.handle({
    params: route.path.exec(path)?.slice(1) ?? [],
    body: route.method === 'POST' ? parseObject(await readBody(request)) : {},
    remoteAddress: request.socket.remoteAddress ?? '',
  })
}

function parseObject(bytes: Buffer): Record<string, unknown> {
  if (bytes.length === 0) return {}
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // falls through: the same message for invalid JSON and for JSON that is not an object
  }
  throw new RequestFault(400, 'the body must be a JSON object')
}

function send(response: ServerResponse, status: number, body: unknown, close = false): void {
  response.writeHead(status, { 'content-type': 'application/json', ...(close ? { connection: 'close' } : {}) })
  response.end(`${JSON.stringify(body ?? {})}\n`)
}

export function stringOf(body: Record<string, unknown>, name: string): string {
  const value = body[name]
  if (typeof value !== 'string' || value === '') throw new RequestFault(400, `${name} must be a non-empty string`)
  return value
}

export function stringsOf(body: Record<string, unknown>, name: string): string[] {
  const values = body[name]
  if (!Array.isArray(values) || !values.every((value) => typeof value === 'string'))
    throw new RequestFault(400, `${name} must be a list of strings`)
  return values
}

export function integerOf(body: Record<string, unknown>, name: string, min: number, max: number): number {
  const value = body[name]
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
    throw new RequestFault(400, `${name} must be an integer from ${min} to ${max}`)
  }
  return value as number
}

export function choiceOf<T extends string>(body: Record<string, unknown>, name: string, choices: readonly T[]): T {
  const value = choices.find((choice) => choice === body[name])
  if (value === undefined) throw new RequestFault(400, `${name} must be one of ${choices.join(', ')}`)
  return value
}
