import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'

/** One payment in transit from a payer (a node or the hub's wallet) to the node that created the invoice. */
export type Delivery = {
  paymentId: string
  recipient: string
  paymentHash: string
  paymentSecret: string
  amountMsat: number
  /**
   * True if the payer is retrying because the outcome of an earlier attempt is unknown. The recipient must then record a refusal before it
   * returns one: an earlier copy of the same delivery may still arrive, and must be refused too.
   */
  again: boolean
}

export type DeliveryAnswer =
  | { outcome: 'paid'; preimage: string }
  | { outcome: 'refused'; reason: string }
  | { outcome: 'unreachable' }
  | { outcome: 'unknown' }

export type Settlement = { preimage: string } | { reason: string }

export const RECIPIENT_OFFLINE = 'recipient node is offline or unreachable'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 1_000

/** final: the other side has decided. unreachable: this attempt certainly did not arrive. unknown: it may have arrived. */
export type Attempt<T> = { final: T } | 'unreachable' | 'unknown'

/**
 * Retries until the outcome is final, however long that takes. A delivery that may still arrive must not be reported as failed.
 * It has failed only if the very first attempt was never sent, or if the other side refuses it.
 */
export async function askUntilFinal<T>(
  attempt: (again: boolean) => Promise<Attempt<T>>,
  askedBefore: boolean,
  whenNeverSent: T,
  stop: AbortSignal,
  onUnknown?: () => void,
): Promise<T> {
  let again = askedBefore
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const answer = await attempt(again)
    if (typeof answer === 'object') return answer.final
    if (answer === 'unreachable' && !again) return whenNeverSent
    again = true
    onUnknown?.()
    await pause(pauseMs, undefined, { signal: stop, ref: false })
  }
}

export function settle(
  delivery: Omit<Delivery, 'again'>,
  askedBefore: boolean,
  deliver: (delivery: Delivery) => Promise<DeliveryAnswer>,
  stop: AbortSignal,
): Promise<Settlement> {
  const attempt = async (again: boolean): Promise<Attempt<Settlement>> => {
    const answer = await deliver({ ...delivery, again })
    if (answer.outcome === 'refused') return { final: { reason: answer.reason } }
    if (answer.outcome !== 'paid') return answer.outcome
    return proves(answer.preimage, delivery.paymentHash) ? { final: { preimage: answer.preimage } } : 'unknown'
  }
  return askUntilFinal(attempt, askedBefore, { reason: RECIPIENT_OFFLINE }, stop)
}

function proves(preimage: string, paymentHash: string): boolean {
  return createHash('sha256').update(Buffer.from(preimage, 'hex')).digest('hex') === paymentHash
}
