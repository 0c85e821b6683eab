import type { TObject, TSchema } from 'typebox'
import { ERRORS, type ErrorCode, errorSchema } from './errors.ts'
import { type Components, type Json, toOpenApi } from './openapi-schemas.ts'
import { type Caller, errorsOf, type Operation, type Tag } from './operation.ts'

const TAGS: Partial<Record<Tag, string>> = {
  Nodes: 'The account’s Lightning nodes.',
  Gateway: 'HTTP 402: charge a customer for a request, validate their credential, deliver once.',
  Events: 'What happened in the account: a feed that misses nothing, and a live stream.',
  Webhooks: 'Events, sent to a URL as they happen and signed as Standard Webhooks describes.',
  'API keys': 'The key a request is made with.',
  Operator: 'For the operator of the service. Requires the operator token.',
  Sandbox: 'Play money and simulated faults. Returns 404 on a deployment with real nodes.',
  Health: 'For load balancers and process supervisors.',
}
const SECURITY: Record<Caller, Json[]> = {
  apiKey: [{ apiKey: [] }],
  operator: [{ operator: [] }],
  session: [],
  page: [],
  anyone: [],
}
const DESCRIPTION = `Hosted Lightning nodes, and HTTP 402 for anyone.

Times are in Unix seconds, amounts in whole satoshis. Every error has the form \`{"error": {"code", "message"}}\`; act on \`code\`. Unknown fields
and query parameters are rejected. A path that is called with another method returns 405 and the header \`Allow\`. Within v1, fields and error codes may be added but are never removed.`

/** Builds the OpenAPI document. A schema with an `$id` is written once, as a component of that name. */
export function openApiDocument(operations: Operation[], servers: { url: string; description: string }[]): Json {
  const components: Components = { schemas: new Map(), responses: new Map() }
  const paths: Record<string, Json> = {}
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: describe(operation, components) }
  }
  const used = new Set(operations.map(({ tag }) => tag))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Boltyard',
      version: '1',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers,
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name as Tag))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key of the account.' },
        operator: { type: 'http', scheme: 'bearer', description: 'The value of OPERATOR_TOKEN.' },
      },
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      headers: HEADERS,
      responses: sorted(components.responses),
      schemas: sorted(components.schemas),
    },
  }
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A unique value of your choice. For 24 hours, repeating a request with the same key and body returns the first successful response; a different body returns 409 `idempotency_conflict`.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
  example: '5f0c7a52-6f0e-4f43-8a3c-0f4f8f3a9e55',
}

const HEADERS = {
  RequestId: { description: 'Identifies the request in the logs.', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait before retrying.', schema: { type: 'integer' } },
  RateLimitLimit: { description: 'Requests allowed in the window.', schema: { type: 'integer' } },
  RateLimitRemaining: { description: 'Requests left in the window.', schema: { type: 'integer' } },
  RateLimitReset: { description: 'Seconds until the window ends.', schema: { type: 'integer' } },
  Authenticate: { description: 'The scheme to authenticate with.', schema: { type: 'string' } },
}
const header = (name: keyof typeof HEADERS): Json => ({ $ref: `#/components/headers/${name}` })
const REQUEST_ID = { 'X-Request-Id': header('RequestId') }
/** Headers that every error response with this status or code has. */
const HEADERS_OF: Record<number | string, Json> = {
  401: { 'WWW-Authenticate': header('Authenticate') },
  429: {
    'Retry-After': header('RetryAfter'),
    'X-RateLimit-Limit': header('RateLimitLimit'),
    'X-RateLimit-Remaining': header('RateLimitRemaining'),
    'X-RateLimit-Reset': header('RateLimitReset'),
  },
  503: { 'Retry-After': header('RetryAfter') },
  delivery_in_progress: { 'Retry-After': header('RetryAfter') },
  operation_in_progress: { 'Retry-After': header('RetryAfter') },
}

const sorted = (named: Map<string, Json>): Json => Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1)))

function describe(operation: Operation, components: Components): Json {
  const { operationId, tag, summary, scope, params, query, body, status, response } = operation
  const scopeSentence = scope && `Requires the scope \`${scope}\`.`
  const parameters = [
    ...parametersOf('path', params, components),
    ...parametersOf('query', query, components),
    ...(operation.takesIdempotencyKey ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
  ]
  const responses: Record<string, Json> = {
    [status]: {
      description: response ? ((response as { description?: string }).description ?? 'Success.') : 'Success, with an empty body.',
      headers: REQUEST_ID,
      ...(response ? { content: jsonContent(response, components) } : {}),
    },
  }
  for (const [errorStatus, codes] of errorsOf(operation)) responses[errorStatus] = errorResponse(errorStatus, codes, components)
  return {
    operationId,
    tags: [tag],
    summary,
    description: [operation.description, scopeSentence].filter(Boolean).join(' ') || summary,
    security: SECURITY[operation.caller],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: { required: isRequired(body), content: jsonContent(body, components) } } : {}),
    responses,
  }
}

/** An error response with a single code is the same in every operation, so it becomes a component. */
function errorResponse(status: number, codes: ErrorCode[], components: Components): Json {
  const response = {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code][1]}`).join('\n\n'),
    headers: Object.assign({}, REQUEST_ID, HEADERS_OF[status], ...codes.map((code) => HEADERS_OF[code])),
    content: { 'application/json': { schema: toOpenApi(errorSchema(status), components), examples: examplesOf(status, codes) } },
  }
  const [code, ...others] = codes
  if (code === undefined || others.length > 0) return response
  const name = code.replace(/(?:^|_)(.)/g, (_match, letter: string) => letter.toUpperCase())
  components.responses.set(name, response)
  return { $ref: `#/components/responses/${name}` }
}

function examplesOf(status: number, codes: ErrorCode[]): Json {
  const [given] = (errorSchema(status) as { examples?: unknown[] }).examples ?? []
  const example = (code: ErrorCode): unknown => given ?? { error: { code, message: ERRORS[code][1].replaceAll('`', '') } }
  return Object.fromEntries(codes.map((code) => [code, { value: example(code) }]))
}

/** C6: if every field is optional, so is the body. */
export const isRequired = (body: TObject): boolean => (body.required?.length ?? 0) > 0

function parametersOf(place: 'path' | 'query', object: TObject | undefined, components: Components): Json[] {
  return Object.entries(object?.properties ?? {}).map(([name, property]) => {
    const { description, ...schema } = toOpenApi(property, components)
    return {
      name,
      in: place,
      required: object?.required?.includes(name) ?? false,
      ...(description === undefined ? {} : { description }),
      schema,
    }
  })
}

function jsonContent(schema: TSchema, components: Components): Json {
  const [example] = (schema as { examples?: unknown[] }).examples ?? []
  return { 'application/json': { schema: toOpenApi(schema, components), ...(example === undefined ? {} : { example }) } }
}
