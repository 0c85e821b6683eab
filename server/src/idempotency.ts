import { createHash, hkdfSync, randomUUID } from 'node:crypto'
import { jcs } from '../../protocol/src/jcs.ts'
import { derivedKey, type MasterKey, open, seal } from './platform/secrets.ts'
import { Problem } from './problems.ts'
import type { Database, Sql } from './store/db.ts'
import { claimKey, giveBack, type IdempotencyName, keepAnswer } from './store/idempotency.ts'

export type Repeatable = {
  /** The value of the Idempotency-Key header, if present. */
  key: string | undefined
  /** The key's owner: two callers may choose the same key. */
  callerId: string
  /** A secret that only the caller has and the store does not. Answers that contain credentials can only be opened with it. */
  secret: string
  route: string
  body: unknown
}

/**
 * Does the work at most once per key. The work and its answer are committed in one transaction, so a crash leaves both or neither. Slow
 * work, and calls to other services, belong in `prepare`, which holds no database connection. The answer is sealed under the caller's
 * secret and idempotency key: the database and the master key together cannot open it.
 */
export async function runOnce<P, T>(
  database: Database,
  masterKeys: MasterKey[],
  request: Repeatable,
  status: number,
  { prepare, work }: { prepare: () => Promise<P>; work: (sql: Sql, prepared: P) => Promise<T> },
): Promise<T> {
  const { key } = request
  if (key === undefined) {
    const prepared = await prepare()
    return database.begin((sql) => work(sql, prepared))
  }
  if (!/^[\x20-\x7e]{1,255}$/.test(key))
    throw new Problem('bad_request', 'Idempotency-Key must be 1 to 255 printable ASCII characters.')
  const name: IdempotencyName = { callerId: request.callerId, route: request.route, key }
  // Canonical JSON: the same fields in a different order are the same body.
  const bodyHash = createHash('sha256').update(jcs(request.body)).digest()
  const attempt = randomUUID()
  const [sealingKey, ...previousKeys] = masterKeys.map((master) =>
    Buffer.from(hkdfSync('sha256', `${request.secret}${key}`, derivedKey(master, 'idempotent answers'), 'boltyard answer', 32)),
  )
  if (!sealingKey) throw new Error('there is no master key')
  const context = `${name.callerId} ${name.route} ${key}`
  const claim = await claimKey(database, name, bodyHash, attempt)
  if (claim === 'other body')
    throw new Problem('idempotency_conflict', 'This Idempotency-Key was already used with a different body.')
  if (claim === 'running')
    throw new Problem(
      'operation_in_progress',
      'The first request with this Idempotency-Key is still running. Try again shortly.',
      {
        headers: { 'retry-after': '1' },
      },
    )
  if (claim !== 'mine') return JSON.parse(openAnswer([sealingKey, ...previousKeys], context, claim.answer)) as T
  try {
    const prepared = await prepare()
    return await database.begin(async (sql) => {
      const answer = await work(sql, prepared)
      const sealed = seal(sealingKey, context, Buffer.from(JSON.stringify(answer)))
      if (!(await keepAnswer(sql, name, attempt, status, sealed))) {
        throw new Problem(
          'operation_in_progress',
          'Another request with this Idempotency-Key took over. Repeat this request to get the response.',
          {
            headers: { 'retry-after': '1' },
          },
        )
      }
      return answer
    })
  } catch (error) {
    await giveBack(database, name, attempt)
    throw error
  }
}

/**
 * An answer that was sealed before the master key changed opens with the previous key, and is lost without it. After an API key
 * is rotated, earlier answers open only with the earlier secret. Repeating the work instead would, for example, create a second
 * node.
 */
function openAnswer(keys: Buffer[], context: string, answer: Buffer): string {
  for (const key of keys) {
    try {
      return open(key, context, answer).toString('utf8')
    } catch {
      // wrong key: GCM authentication failed
    }
  }
  throw new Problem(
    'service_unavailable',
    'The stored response for this Idempotency-Key cannot be decrypted. If the API key was rotated, repeat the request with the earlier secret, or check whether the first request succeeded.',
    {
      headers: { 'retry-after': '5' },
    },
  )
}
