import type { Sql } from '../db.ts'
import { markPaidByProof, type PaidRow, type Proof } from './payments.ts'

/** Statements under way at the same time. More of them would mean smaller batches, and each statement has a fixed cost. */
const AT_ONCE = 3
const MOST_PER_STATEMENT = 100

type Caller = { accountId: string; actor: string }
type Waiting = {
  caller: Caller
  id: string
  proof: Proof
  resolve: (paid: PaidRow | undefined) => void
  reject: (error: unknown) => void
}

/**
 * `markPaidByProof` for many callers. With few callers, each gets a separate statement at once. Callers that arrive while `AT_ONCE`
 * statements are under way share the next one. If a statement fails, it fails for all of its callers; everything in it was checked before,
 * so no client can make it fail for others.
 */
export class PaidBatches {
  readonly #sql: Sql
  #waiting: Waiting[] = []
  #running = 0

  constructor(sql: Sql) {
    this.#sql = sql
  }

  mark(caller: Caller, id: string, proof: Proof): Promise<PaidRow | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ caller, id, proof, resolve, reject })
      this.#next()
    })
  }

  #next(): void {
    if (this.#running >= AT_ONCE || this.#waiting.length === 0) return
    const batch = this.#take()
    this.#running++
    this.#send(batch)
      .catch((error: unknown) => {
        for (const { reject } of batch) reject(error)
      })
      .finally(() => {
        this.#running--
        this.#next()
      })
  }

  /** Callers of the same payment do not share a statement: only one of them may be told that it marked the payment. */
  #take(): Waiting[] {
    const batch = new Map<string, Waiting>()
    const left: Waiting[] = []
    for (const one of this.#waiting) {
      if (batch.size < MOST_PER_STATEMENT && !batch.has(one.id)) batch.set(one.id, one)
      else left.push(one)
    }
    this.#waiting = left
    return [...batch.values()]
  }

  async #send(batch: Waiting[]): Promise<void> {
    const [first] = batch
    if (first && batch.length === 1) {
      first.resolve(await markPaidByProof(this.#sql, first.caller, first.id, first.proof))
      return
    }
    const receipts = await markAllPaid(this.#sql, batch)
    for (const { id, resolve } of batch) {
      const receipt = receipts.get(id)
      resolve(receipt === undefined ? undefined : { id, protocol: 'mpp', receipt })
    }
  }
}

/**
 * The same conditions as `markPaidByProof`. Rows are inserted in the order of their ids, so that of two statements with the same
 * payments, one waits for the other instead of both deadlocking. OFFSET 0 makes sure that each payment is looked up by its key.
 */
async function markAllPaid(sql: Sql, batch: Waiting[]): Promise<Map<string, string>> {
  const rows = await sql<{ id: string; receipt: string }[]>`
    INSERT INTO paid_payments (account_id, id, actor)
    SELECT p.account_id, p.id, asked.actor
    FROM unnest(${batch.map(({ id }) => id)}::text[], ${batch.map(({ caller }) => caller.accountId)}::text[],
                ${batch.map(({ caller }) => caller.actor)}::text[], ${batch.map(({ proof }) => proof.challengeBeginning)}::text[],
                ${batch.map(({ proof }) => Buffer.from(proof.paymentHash))}::bytea[])
      AS asked (id, account_id, actor, challenge_beginning, payment_hash),
    LATERAL (SELECT * FROM gateway_payments WHERE id = asked.id OFFSET 0) p
    WHERE p.account_id = asked.account_id AND p.protocol = 'mpp' AND starts_with(p.challenge, asked.challenge_beginning)
      AND p.payment_hash = asked.payment_hash AND p.settled_at IS NOT NULL
    ORDER BY p.id
    ON CONFLICT DO NOTHING
    RETURNING id, (SELECT receipt FROM gateway_payments p WHERE p.id = paid_payments.id)`
  return new Map(rows.map(({ id, receipt }) => [id, receipt]))
}
