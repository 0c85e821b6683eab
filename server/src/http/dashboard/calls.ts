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
 * An answer with credentials is sealed under what only the caller has. A program has its API key. A person has a session, and it ends:
 * who signs in again to ask for a lost answer could not open it any more. So it is the Idempotency-Key itself, which has to be a random
 * value that only the page knows. The store gets its hash: neither it nor the master key, nor both, open what is kept there.
 */
export function repeatableOf(request: Pick<FastifyRequest, 'headers' | 'person' | 'body'>, route: string): Repeatable {
  const secret = request.headers['idempotency-key']?.toString()
  if (secret === undefined || !ENOUGH_RANDOM.test(secret))
    throw new Problem('bad_request', 'The Idempotency-Key header must be a random value of at least 22 characters.')
  const key = createHash('sha256').update(secret).digest('hex')
  return { key, callerId: request.person.userId, secret, route, body: request.body }
}
