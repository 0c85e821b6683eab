import type { Invoice } from '../../../protocol/src/bolt11.ts'
import { MSAT_PER_SAT } from '../../../protocol/src/units.ts'
import type { GatewayPayment, NodePayment } from '../api/types.ts'

type Payment = Pick<GatewayPayment, 'status' | 'heldUntil' | 'releases'>

const isOver = ({ status }: Payment): boolean => status === 'expired'

export const unsettled = (payment: Payment): string =>
  isOver(payment) ? 'no: it has expired, and the node has not reported a payment' : 'not yet: the node has not received the money'

export const unpaid = (payment: Payment): string => (isOver(payment) ? 'no' : 'not yet: no credential was validated')

/** For a payment whose delivery is not claimed at the moment. */
export function undelivered(payment: Payment): string {
  if (isOver(payment)) return 'no'
  if (payment.heldUntil !== null)
    return 'not yet: it was redeemed, but the claim lapsed before the delivery was confirmed. It can be redeemed again.'
  if (payment.releases > 0) return 'not yet: it was redeemed, but the delivery failed and was released. It can be redeemed again.'
  return 'not yet: it has not been redeemed'
}

/** Exactly what the invoice asks for, or what the person chose. */
export const msatToSend = ({ amountMsat }: Pick<Invoice, 'amountMsat'>, chosenSat: number): number =>
  amountMsat ?? chosenSat * MSAT_PER_SAT

export const NODE_PAYMENT_FILTERS = {
  all: { name: 'All', matches: () => true },
  received: { name: 'Received', matches: ({ direction, isPaid }) => direction === 'in' && isPaid },
  sent: { name: 'Sent', matches: ({ direction }) => direction === 'out' },
  unpaid: { name: 'Unpaid invoices', matches: ({ direction, isPaid }) => direction === 'in' && !isPaid },
} satisfies Record<string, { name: string; matches: (payment: NodePayment) => boolean }>
export type NodePaymentFilter = keyof typeof NODE_PAYMENT_FILTERS

/** How many of a node's newest payments are shown. */
export function newestCount(shown: number, all: number, filter: NodePaymentFilter): string {
  if (filter === 'all') return all === 1 ? '1 payment' : `The newest ${all}`
  return `${shown} of ${all === 1 ? '1 payment' : `the newest ${all}`}`
}

type Paid = Pick<NodePayment, 'direction' | 'isPaid' | 'amountSat' | 'feeMsat'>

/** What these payments add up to. Failed payments and invoices that nobody paid moved no money. */
export function sumsOf(payments: Paid[]): { receivedSat: number; sentSat: number; feesMsat: number } {
  const paid = payments.filter(({ isPaid }) => isPaid)
  const sum = (wanted: Paid['direction'], of: 'amountSat' | 'feeMsat') =>
    paid.filter(({ direction }) => direction === wanted).reduce((total, payment) => total + payment[of], 0)
  return { receivedSat: sum('in', 'amountSat'), sentSat: sum('out', 'amountSat'), feesMsat: sum('out', 'feeMsat') }
}

/** An outgoing payment that completed unpaid has failed. One that has not completed may still succeed. */
export function nodePaymentWord({ direction, isPaid, expiresAt, completedAt }: NodePayment, now: number): string {
  if (direction === 'in') {
    if (isPaid) return 'Received'
    return expiresAt !== null && expiresAt <= now ? 'Incoming, expired' : 'Incoming, not paid yet'
  }
  if (isPaid) return 'Sent'
  return completedAt === null ? 'Outgoing, in progress' : 'Outgoing, failed'
}
