import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Repeatable } from '../../idempotency.ts'
import type { Call } from '../../nodes/own-node.ts'
import { badCursor, Problem } from '../../problems.ts'

export const callOf = ({ person }: Pick<FastifyRequest, 'person'>): Call => ({
  accountId: person.accountId,
  actor: person.userId,
})

const ENOUGH_RANDOM = /^[A-Za-z0-9_-]{22,255}$/

/**
 * A stored response with credentials is sealed with a secret that only the caller has. For a program, this is its API key. For a
 * person, it cannot be the session, which may end before the request is repeated. So it is the Idempotency-Key itself, a random
 * value that only the page knows. The store keeps only its hash, so even with the master key the response cannot be opened.
 */
export function repeatableOf(request: Pick<FastifyRequest, 'headers' | 'person' | 'body'>, route: string): Repeatable {
  const secret = request.headers['idempotency-key']?.toString()
  if (secret === undefined || !ENOUGH_RANDOM.test(secret))
    throw new Problem('bad_request', 'The Idempotency-Key header must be a random value of at least 22 characters.')
  const key = createHash('sha256').update(secret).digest('hex')
  return { key, callerId: request.person.userId, secret, route, body: request.body }
}

/** Pages continue from the id of the last row: rows that are added meanwhile do not cause others to be repeated or skipped. */
export function numberIn(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  if (!/^[1-9]\d{0,14}$/.test(cursor)) throw badCursor()
  return Number(cursor)
}

/** One extra row shows whether there is a next page. */
export function paged<N extends string, R extends { id: number }>(
  name: N,
  rows: R[],
  limit: number,
): Record<N, R[]> & { nextCursor: string | null } {
  const page = rows.slice(0, limit)
  const nextCursor = rows.length > limit ? String(page.at(-1)?.id) : null
  return { [name]: page, nextCursor } as Record<N, R[]> & { nextCursor: string | null }
}
