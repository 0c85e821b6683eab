import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RULES } from '../../../../contract/src/readable-text.ts'
import { newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import { isStoreDown } from '../../platform/store-down.ts'
import { Problem, storeDown } from '../../problems.ts'
import { isMissingPage, sendMissingPage } from './missing-page.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Matches every path that no other route does, so it says nothing about which methods a path supports. */
    isFallback?: boolean
  }
}

export const JSON_TYPE = 'application/json; charset=utf-8'

/** Gives every error of every route the same shape. The functions below do so for requests that never reach a route. */
export function renderProblems(app: FastifyInstance): void {
  const routes: { method: string; pattern: RegExp }[] = []
  app.addHook('onRoute', ({ method, url, config }) => {
    if (config?.isFallback) return
    const pattern = new RegExp(
      `^${url
        .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
        .replace(/:[^/]+/g, '[^/]+')
        .replace(/\*/g, '.*')}$`,
    )
    for (const one of [method].flat()) routes.push({ method: one, pattern })
  })
  const sendUnknown = (request: FastifyRequest, reply: FastifyReply, problem: Problem): FastifyReply =>
    isMissingPage(request, problem) ? sendMissingPage(reply) : send(reply, problem)
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = problemOf(error, request)
    return request.is404 ? sendUnknown(request, reply, problem) : send(reply, problem)
  })
  const unknownPath = (request: FastifyRequest): Problem => {
    const path = request.url.split('?')[0] ?? ''
    const allowed = [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))]
    if (allowed.length === 0) return new Problem('not_found', 'This path does not exist.')
    const allow = allowed.sort().join(', ')
    return new Problem('method_not_allowed', `This path only supports ${allow}.`, { headers: { allow } })
  }
  // Runs before the body is parsed, because errors in the body of a request to an unknown path do not matter. Asynchronous, because the
  // rest of the same packet must be parsed first, or malformed input would get two responses.
  app.addHook('preParsing', async (request) => {
    if (request.is404) throw unknownPath(request)
  })
  app.setNotFoundHandler((request, reply) => sendUnknown(request, reply, unknownPath(request)))
}

/** For paths that the router cannot parse: no hook runs for them. */
export function renderRouterError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const problem =
    error.code === 'FST_ERR_BAD_URL'
      ? new Problem('bad_request', 'The path cannot be decoded.')
      : new Problem('not_found', 'This path does not exist.')
  send(reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff'), problem)
}

const CLIENT_ERRORS: Record<string, string> = {
  HPE_HEADER_OVERFLOW: 'The headers are too large.',
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not arrive in time.',
}

/** Input that is not HTTP still gets a response, if the connection can be written to. */
export function renderClientError({ code }: Error & { code?: string }, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const problem = new Problem('bad_request', (code && CLIENT_ERRORS[code]) ?? 'The request is not valid HTTP.')
  const body = JSON.stringify(problem.body())
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Connection: close',
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${newId('req')}`,
    'X-Content-Type-Options: nosniff',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** For requests that never reach Fastify. */
export function writeProblem(response: ServerResponse, problem: Problem, headers: Record<string, string>): void {
  const body = JSON.stringify(problem.body())
  const own = { 'content-type': JSON_TYPE, 'content-length': String(Buffer.byteLength(body)) }
  response.writeHead(problem.status, { ...headers, ...problem.headers, ...own }).end(body)
}

function send(reply: FastifyReply, problem: Problem): FastifyReply {
  reply.request.errorCode = problem.code
  return reply.code(problem.status).headers(problem.headers).type(JSON_TYPE).send(problem.body())
}

/** What the caller sees of an error; the rest goes to the log. */
export function problemOf(thrown: unknown, request: { id: string; log: Logger; method?: string }): Problem {
  const error = thrown as FastifyError
  if (error instanceof Problem) {
    if (error.cause) request.log.warn({ err: error.cause }, error.message)
    return error
  }
  if (error.validation) return new Problem('bad_request', sentence(error))
  if (isStoreDown(error)) {
    request.log.warn({ err: error }, 'the store is down')
    return storeDown(error, request.method === 'GET' || request.method === 'HEAD')
  }
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new Problem('payload_too_large', 'The body is larger than 64 KiB.', { headers: { connection: 'close' } })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new Problem('unsupported_media_type', 'The body must be JSON, with Content-Type: application/json.')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new Problem('bad_request', 'Content-Length does not match the length of the body.')
  }
  request.log.error({ err: error }, 'internal error')
  return new Problem('internal_error', 'An internal error occurred. Quote error.requestId when you report it.', {
    details: { requestId: request.id },
  })
}

/** Describes which field is invalid, and why. */
function sentence({ validation, validationContext }: FastifyError): string {
  const [first] = validation ?? []
  const where = validationContext === 'querystring' ? 'query parameter' : 'field'
  if (!first) return 'The request is not valid.'
  const field = first.instancePath.slice(1).replaceAll('/', '.')
  if (first.keyword === 'additionalProperties') return `Unknown ${where} "${String(first.params.additionalProperty)}".`
  if (first.keyword === 'required') return `The ${where} "${String(first.params.missingProperty)}" is missing.`
  if (first.keyword === 'enum')
    return `The ${where} "${field}" must be one of ${(first.params.allowedValues as string[]).join(', ')}.`
  const rule = RULES[String(first.params.pattern)]
  if (rule) return `The ${where} "${field}" ${rule}.`
  return field === '' ? `The body ${first.message}.` : `The ${where} "${field}" ${first.message}.`
}
