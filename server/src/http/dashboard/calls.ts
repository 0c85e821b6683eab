import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Repeatable } from '../../idempotency.ts'
import type { Call } from '../../nodes/own-node.ts'
import { Problem } from '../../problems.ts'

export const callOf = ({ person }: Pick<FastifyRequest, 'person'>): Call => ({
  accountId: person.accountId,
  actor: person.userId,
})

const ENOUGH_RANDOM = /^[A-Za-z0-9_-]{22,255}$/

/**
 * An answer with credentials is sealed with a secret that only the caller has. For a program, that is its API key. A person has a session,
 * which can end: after signing in again, they could not open a lost answer. So the secret is the Idempotency-Key itself, which must be a
 * random value that only the page knows. The store keeps only its hash, so even with the master key the answer cannot be opened.
 */
export function repeatableOf(request: Pick<FastifyRequest, 'headers' | 'person' | 'body'>, route: string): Repeatable {
  const secret = request.headers['idempotency-key']?.toString()
  if (secret === undefined || !ENOUGH_RANDOM.test(secret))
    throw new Problem('bad_request', 'The Idempotency-Key header must be a random value of at least 22 characters.')
  const key = createHash('sha256').update(secret).digest('hex')
  return { key, callerId: request.person.userId, secret, route, body: request.body }
}
