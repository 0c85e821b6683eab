import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestAsyncHookHandler,
  preValidationHookHandler,
  RouteHandlerMethod,
} from 'fastify'
import type { TObject } from 'typebox'
import { errorSchema } from '../../../contract/src/errors.ts'
import {
  type AnswerOf,
  type BodyOf,
  errorsOf,
  type Operation,
  type ParamsOf,
  type QueryOf,
} from '../../../contract/src/operation.ts'
import { NoParams } from '../../../contract/src/schemas.ts'

type RequestOf<O extends Operation> = FastifyRequest<{ Params: ParamsOf<O>; Querystring: QueryOf<O>; Body: BodyOf<O> }>
type Handler<O extends Operation> = (request: RequestOf<O>, reply: FastifyReply) => Promise<AnswerOf<O>>
type RouteSettings = {
  onRequest?: onRequestAsyncHookHandler[]
  preValidation?: preValidationHookHandler[]
  config?: FastifyContextConfig
  exposeHeadRoute?: false
}

/** Registers an operation of the contract: its path, validation, success status and response schema. */
export function addRoute<O extends Operation>(
  app: FastifyInstance,
  operation: O,
  handler: Handler<O>,
  settings: RouteSettings = {},
): void {
  const { method, path, params, query = NoParams, body, status, response } = operation
  const errors = [...errorsOf(operation).keys()].map((code) => [code, errorSchema(code)])
  app.route({
    method,
    url: path.replace(/\{(\w+)\}/g, ':$1'),
    schema: {
      ...(params ? { params } : {}),
      querystring: query,
      ...(body ? { body } : {}),
      response: { ...(response ? { [status]: response } : {}), ...Object.fromEntries(errors) },
    },
    ...settings,
    preValidation: [...(settings.preValidation ?? []), ...(body ? [fillBody] : []), ...parseQuery(query)],
    // The status is set before the handler runs, because setting it afterwards would take another promise. An error sets its own status.
    handler: ((request: RequestOf<O>, reply) => handler(request, reply.code(status))) as RouteHandlerMethod,
  })
}

/** C6: a missing body counts as an empty object, so that the error names the missing field. JSON null is a body, and an invalid one. */
const fillBody: preValidationHookHandler = (request, _reply, done) => {
  if (request.body === undefined) request.body = {}
  done()
}

/**
 * Query values are text, and the validator converts nothing (C5). So the spellings of numbers and booleans that the contract allows are
 * converted here, and the validator refuses anything that is still text.
 */
function parseQuery({ properties }: TObject): preValidationHookHandler[] {
  const typed = Object.entries(properties).flatMap(([name, property]) => {
    const { type } = property as { type?: string }
    return type === 'integer' || type === 'boolean' ? [{ name, type }] : []
  })
  if (typed.length === 0) return []
  return [
    (request, _reply, done) => {
      const query = request.query as Record<string, unknown>
      for (const { name, type } of typed)
        if (name in query) query[name] = type === 'integer' ? integerIn(query[name]) : booleanIn(query[name])
      done()
    },
  ]
}

const integerIn = (value: unknown): unknown =>
  typeof value === 'string' && /^(0|[1-9]\d{0,14})$/.test(value) ? Number(value) : value
const booleanIn = (value: unknown): unknown => (value === 'true' ? true : value === 'false' ? false : value)
