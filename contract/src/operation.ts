import type { Static, TObject, TSchema } from 'typebox'
import { ERRORS, type ErrorCode } from './errors.ts'

export type Tag = 'API keys' | 'Nodes' | 'Gateway' | 'Events' | 'Webhooks' | 'Operator' | 'Sandbox' | 'Health' | 'Dashboard'

/** Who may call: an API key with the scope, the operator, a signed-in person, the sign-in page, or anyone. */
export type Caller = 'apiKey' | 'operator' | 'session' | 'page' | 'anyone'

export type Operation = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** In OpenAPI notation: /v1/nodes/{nodeId} */
  path: `/${string}`
  operationId: string
  tag: Tag
  summary: string
  description?: string
  caller: Caller
  scope?: 'nodes:read' | 'nodes:write' | 'gateway:write' | 'events:read' | 'webhooks:write'
  takesIdempotencyKey?: true
  params?: TObject
  /** Values in the query string are converted to these types. If absent, no parameter is accepted. */
  query?: TObject
  body?: TObject
  status: 200 | 201 | 202 | 204
  /** Absent if the status is 204 or the response is not JSON. */
  response?: TSchema
  /** In addition to the codes that every operation with this caller can return. */
  errors: readonly ErrorCode[]
}

export const operation = <const O extends Operation>(described: O): O => described

type StaticOr<S, Otherwise> = S extends TSchema ? Static<S> : Otherwise
export type ParamsOf<O extends Operation> = StaticOr<O['params'], unknown>
export type QueryOf<O extends Operation> = StaticOr<O['query'], unknown>
export type BodyOf<O extends Operation> = StaticOr<O['body'], unknown>
export type AnswerOf<O extends Operation> = StaticOr<O['response'], O['status'] extends 204 ? void : unknown>

const ALWAYS: ErrorCode[] = ['bad_request', 'internal_error', 'service_unavailable']
const OF_CALLER: Record<Caller, ErrorCode[]> = {
  apiKey: ['unauthorized', 'misdirected_request', 'rate_limited'],
  // These paths do not exist without an operator token; the sandbox ones do not exist without a sandbox.
  operator: ['unauthorized', 'not_found', 'misdirected_request', 'rate_limited'],
  session: ['unauthorized', 'misdirected_request', 'rate_limited'],
  page: ['unauthorized', 'misdirected_request', 'rate_limited'],
  anyone: [],
}

/** Every code an operation can return, by status. */
export function errorsOf({ method, caller, errors }: Operation): Map<number, ErrorCode[]> {
  const ofBody: ErrorCode[] = method === 'GET' ? [] : ['payload_too_large', 'unsupported_media_type']
  const codes = new Set([...ALWAYS, ...OF_CALLER[caller], ...ofBody, ...errors])
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    if (!codes.has(code)) continue
    const [status] = ERRORS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return byStatus
}
