import type { Static, TObject, TSchema } from 'typebox'
import { ERRORS, type ErrorCode } from './errors.ts'

export type Tag = 'API keys' | 'Nodes' | 'Gateway' | 'Operator' | 'Sandbox' | 'Health' | 'Dashboard'

/** Who may call: an API key with that scope, the operator, a signed-in person, a page before anybody has signed in, or anyone. */
export type Caller = 'apiKey' | 'operator' | 'session' | 'page' | 'anyone'

export type Operation = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** As OpenAPI writes it: /v1/nodes/{nodeId} */
  path: `/${string}`
  operationId: string
  tag: Tag
  summary: string
  description?: string
  caller: Caller
  scope?: 'nodes:read' | 'nodes:write' | 'gateway:write'
  /** A repeat with the same key and body gets the first answer. */
  takesIdempotencyKey?: true
  params?: TObject
  /** As types; a query string is text, and is read by these without any other conversion. Absent: no parameter is accepted. */
  query?: TObject
  body?: TObject
  status: 200 | 201 | 202 | 204
  /** Absent with 204, and where the answer is not JSON. */
  response?: TSchema
  /** Besides those that every operation of its caller can answer with. */
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
  // Without an operator token, and its sandbox calls without a sandbox, there is nothing at these paths.
  operator: ['unauthorized', 'not_found', 'misdirected_request', 'rate_limited'],
  session: ['unauthorized', 'misdirected_request', 'rate_limited'],
  page: ['unauthorized', 'misdirected_request', 'rate_limited'],
  anyone: [],
}

/** Every code that an operation can answer with, by status. */
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
