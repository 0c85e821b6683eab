import type { NodeAddress } from '../../platform/node-agent.ts'
import { ask, fieldsOf, isAmount, isHash, isTimeMs, type NoAnswer, noAnswer, refused, valueIn } from './client.ts'

/** The preimage is left out on purpose, as in `IncomingAnswer` (client.ts). */
export type ReceivedPayment = { paymentHash: string; amountSat: number; completedAtMs: number }
export type ReceivedAnswer = { answer: 'received'; payments: ReceivedPayment[]; isLastPage: boolean } | NoAnswer

/** A page of this size stays well below the maximum response size. */
export const RECEIVED_PAGE = 400

/** A page: what was received since `fromMs` and until `toMs`, by the node's own clock and both included, newest first, without the first `offset`. */
export type ReceivedPlace = { fromMs: number; toMs?: number | undefined; offset: number }

/**
 * The page after these payments of `place`, which has the oldest of them once more: by time, because positions change when the node
 * receives a payment or, after a restore, has lost some. Only payments of one millisecond that fill a page are counted by position.
 */
export function placeAfter(place: ReceivedPlace, payments: ReceivedPayment[]): ReceivedPlace {
  const toMs = Math.min(place.toMs ?? Number.POSITIVE_INFINITY, ...payments.map(({ completedAtMs }) => completedAtMs))
  return toMs === place.toMs ? { ...place, offset: place.offset + RECEIVED_PAGE } : { ...place, toMs, offset: 0 }
}

export async function listReceived(
  address: NodeAddress,
  password: string,
  { fromMs, toMs, offset }: ReceivedPlace,
  timeoutMs: number,
): Promise<ReceivedAnswer> {
  const until = toMs === undefined ? '' : `&to=${toMs}`
  const path = `/payments/incoming?from=${fromMs}${until}&limit=${RECEIVED_PAGE}&offset=${offset}`
  const reply = await ask(address, password, { path }, timeoutMs)
  if (typeof reply === 'string') return noAnswer(reply)
  if (reply.status !== 200) return refused(reply.status)
  const list = valueIn(reply.text)
  if (!Array.isArray(list)) return { answer: 'refused', why: 'the answer is not a list' }
  const payments = list.map(receivedIn)
  return payments.every((payment) => payment !== undefined)
    ? { answer: 'received', payments, isLastPage: list.length < RECEIVED_PAGE }
    : { answer: 'refused', why: 'the list contains an entry that is not a received payment' }
}

function receivedIn(value: unknown): ReceivedPayment | undefined {
  const { paymentHash, isPaid, receivedSat, completedAt } = fieldsOf(value)
  return isHash(paymentHash) && isPaid === true && isAmount(receivedSat) && isTimeMs(completedAt)
    ? { paymentHash, amountSat: receivedSat, completedAtMs: completedAt }
    : undefined
}
