import type { FastifyRequest } from 'fastify'
import type { Caller, Keys, Scope } from '../../accounts/keys/keys.ts'
import type { OperatorSessions } from '../../accounts/operator/sessions.ts'
import { unauthorized } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import type { Limits } from './rate-limit.ts'
import { requireSameOrigin, signedOut } from './session.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by requireKey before a handler runs. */
    caller: Caller
    /** The key itself, for data that only its holder may open. Never logged: the log serializers do not include it. */
    presentedKey: string
  }
}

/**
 * Undefined if there is no Bearer token, or if the header is repeated: Node.js keeps only the first line, and a proxy may have read
 * another.
 */
function bearerToken(request: FastifyRequest): string | undefined {
  const { rawHeaders } = request.raw
  let lines = 0
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 13 && rawHeaders[index]?.toLowerCase() === 'authorization') lines++
  if (lines !== 1) return undefined
  return /^Bearer ([\x21-\x7e]+)$/i.exec(request.headers.authorization ?? '')?.[1]
}

/** Missing, malformed, unknown, disabled, expired, revoked or without the scope: the response is the same. */
export function requireKey(keys: Keys, limits: Limits, scope?: Scope) {
  return async (request: FastifyRequest): Promise<void> => {
    const token = bearerToken(request)
    const key = token === undefined ? undefined : await keys.authenticate(token)
    if (!key) {
      await limits.failures(request)
      throw unauthorized()
    }
    // Set even if the scope is missing, for the log of requests.
    request.caller = key
    // A valid key without the scope is not a guess, so it is not counted as a failure.
    if (scope && !key.scopes.includes(scope)) throw unauthorized()
    request.presentedKey = token ?? ''
  }
}

/**
 * The operator token as Bearer, or the session of the operator's pages. If the Authorization header is present, the session is
 * ignored. With a session, changes are only accepted from our own pages: another site's page can make the browser send the
 * cookie.
 */
export function requireOperator({ operatorSessions: sessions, limits, config }: OperatorDeps) {
  const sameOrigin = requireSameOrigin(config)
  return async (request: FastifyRequest): Promise<void> => {
    const { cookie, authorization } = request.headers
    if (authorization === undefined && sessions.hasCookie(cookie)) {
      await sameOrigin(request)
      if (await sessions.find(cookie)) return
      await limits.failures(request)
      throw signedOut()
    }
    const given = bearerToken(request)
    if (given !== undefined && sessions.isToken(given)) return
    await limits.failures(request)
    throw unauthorized()
  }
}

/** What the operator's routes need: they only exist if there is an operator token. */
export type OperatorDeps = RouteDeps & { operatorSessions: OperatorSessions }
