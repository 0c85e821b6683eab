import type { NodeAddress } from '../../platform/node-agent.ts'
import { ask, fieldsOf, isAmount, isHash, isTimeMs, type NoAnswer, noAnswer, refused, valueIn } from './client.ts'

/** The preimage is left out on purpose, as in `IncomingAnswer` (client.ts). */
export type ReceivedPayment = { paymentHash: string; amountSat: number; completedAtMs: number }
export type ReceivedAnswer = { answer: 'received'; payments: ReceivedPayment[]; isLastPage: boolean } | NoAnswer

/** A page of this size stays well below the maximum response size. */
export const RECEIVED_PAGE = 400

/**
 * Payments received since `fromMs` by the node's own clock, newest first. A payment that arrives between two pages only moves the
 * others to later positions, so none is skipped.
 */
export async function listReceived(
  address: NodeAddress,
  password: string,
  { fromMs, offset }: { fromMs: number; offset: number },
  timeoutMs: number,
): Promise<ReceivedAnswer> {
  const path = `/payments/incoming?from=${fromMs}&limit=${RECEIVED_PAGE}&offset=${offset}`
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
