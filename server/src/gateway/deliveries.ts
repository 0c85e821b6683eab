import { crashpoint } from '../platform/crashpoint.ts'
import { isId } from '../platform/ids.ts'
import { Problem } from '../problems.ts'
import type { NoteChange } from '../store/changes.ts'
import type { Sql } from '../store/db.ts'
import { confirmDeliveries, type DeliveryName, MOST_RELEASES, releaseDelivery } from '../store/payments/deliveries.ts'
import { findPayment } from '../store/payments/payments.ts'
import { releaseOutcome } from './outcomes.ts'
import { type Call, notFound } from './payments.ts'

export type DeliveryResult = DeliveryName & { result: 'delivered' | 'not_claimed' }
export type ReleasedPayment = { id: string; status: 'paid'; redeemable: true }

/** Ends deliveries that redemptions have claimed: confirms or releases them. */
export class Deliveries {
  readonly #sql: Sql
  readonly #noteChange: NoteChange

  constructor({ sql, noteChange }: { sql: Sql; noteChange: NoteChange }) {
    this.#sql = sql
    this.#noteChange = noteChange
  }

  /** Results are in the order given. A delivery that is unclaimed, or claimed by another request, is reported as not claimed. */
  async confirm(call: Call, deliveries: DeliveryName[]): Promise<DeliveryResult[]> {
    // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
    const named = deliveries.filter(({ id }) => isId('pay', id))
    const confirmed = named.length === 0 ? [] : await confirmDeliveries(this.#sql, call.accountId, named)
    crashpoint('delivered: confirmed')
    if (confirmed.length > 0) this.#noteChange(call.accountId, 'payments')
    const names = new Set(confirmed.map(({ id, requestId }) => `${id} ${requestId}`))
    return deliveries.map(({ id, requestId }) => {
      const isDelivered = names.has(`${id} ${requestId}`)
      return { id, requestId, result: isDelivered ? 'delivered' : 'not_claimed' }
    })
  }

  /**
   * A repeated release gets the same response, unless the delivery has been claimed again since: then the payment is not
   * redeemable.
   */
  async release(call: Call, { id, requestId }: DeliveryName, reason?: string): Promise<ReleasedPayment> {
    if (!isId('pay', id)) throw notFound()
    const isReleased = await releaseDelivery(this.#sql, call, { id, requestId }, reason)
    crashpoint('release: released')
    if (isReleased) this.#noteChange(call.accountId, 'payments', 'activity')
    else await this.#requireReleased(call, { id, requestId })
    return { id, status: 'paid', redeemable: true }
  }

  async #requireReleased(call: Call, { id, requestId }: DeliveryName): Promise<void> {
    const payment = await findPayment(this.#sql, call.accountId, id)
    if (!payment) throw notFound()
    const { redeemRequestId, releasedRequestIds, isClaimed } = payment
    const outcome = releaseOutcome({
      holder: redeemRequestId === requestId ? 'this request' : isClaimed ? 'another' : 'nobody',
      lastReleasedBy: releasedRequestIds.at(-1) === requestId ? 'this request' : 'another',
      hasReleasesLeft: releasedRequestIds.length < MOST_RELEASES,
    })
    if (outcome === 'released_too_often')
      throw new Problem('limit_reached', `This payment was already released ${MOST_RELEASES} times and cannot be released again.`)
    if (outcome === 'not_claimed') throw new Problem('not_claimed', 'This requestId does not hold the delivery of this payment.')
  }
}
