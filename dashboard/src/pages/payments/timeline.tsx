import {
  IconAlertTriangle,
  IconChecks,
  IconCircleCheck,
  IconCircleDashed,
  IconCircleX,
  IconClock,
  type TablerIcon,
} from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { type GatewayPaymentDetails, type PaymentEvent, paymentEventsQuery } from '../../api/payments.ts'
import { Time } from '../../components/time.tsx'
import { exact } from '../../text/format.ts'
import { undelivered, unpaid, unsettled } from '../../text/payments.ts'

type Look = 'done' | 'warning' | 'open'
type Step = { name: string; eventId?: string; at?: number; look: Look; icon?: TablerIcon; text?: ReactNode }

const ICONS: Record<Look, TablerIcon> = { done: IconCircleCheck, warning: IconAlertTriangle, open: IconCircleDashed }

/** What has happened to a payment, and what has not happened yet. */
export function Timeline({ payment }: { payment: GatewayPaymentDetails }) {
  const { data: events } = useQuery(paymentEventsQuery(payment.id))
  return (
    <section className="card" aria-label="Timeline">
      <h2>Timeline</h2>
      <ol className="timeline">
        {stepsOf(payment, events ?? []).map((step) => (
          <Entry key={step.eventId ?? step.name} step={step} />
        ))}
      </ol>
      {payment.settledAt !== null && payment.paidAt === null && (
        <p className="note">
          The node received the money, but no credential was accepted: the customer has not come back, or your server refused the
          credential, perhaps because the price had changed.{' '}
          {payment.protocol === 'x402'
            ? 'It can be used until one minute after the challenge has expired. After that, refund the customer.'
            : 'It stays valid even after the challenge has expired.'}
        </p>
      )}
    </section>
  )
}

function Entry({ step: { name, at, look, icon: Icon = ICONS[look], text } }: { step: Step }) {
  return (
    <li className={`is-${look}`}>
      <span className="timeline-icon">
        <Icon size={18} aria-hidden />
      </span>
      <strong>{name}</strong>
      {at !== undefined && (
        <span className="small dim">
          {' '}
          {exact(at)}
          <span className="also-exact">
            {' '}
            · <Time at={at} />
          </span>
        </span>
      )}
      {text && <div className="small">{text}</div>}
    </li>
  )
}

function stepsOf(payment: GatewayPaymentDetails, events: PaymentEvent[]): Step[] {
  const { createdAt, settledAt, paidAt, expiresAt, status } = payment
  const released = events.filter(({ type }) => type === 'payment.released')
  const isOver = status === 'expired'
  return [
    { name: 'Created', at: createdAt, look: 'done' },
    settledAt === null
      ? { name: 'Settled', look: 'open', ...(isOver ? { icon: IconCircleX } : {}), text: unsettled(payment) }
      : { name: 'Settled', at: settledAt, look: 'done', text: 'The node received the money.' },
    // Only if unpaid: "expires in 4 minutes" next to a paid payment would raise doubts.
    ...(settledAt === null && paidAt === null
      ? [{ name: isOver ? 'Expired' : 'Expires', at: expiresAt, look: 'open' as const, icon: IconClock }]
      : []),
    paidAt === null
      ? { name: 'Validated', look: settledAt === null ? 'open' : 'warning', text: unpaid(payment) }
      : { name: 'Validated', at: paidAt, look: 'done', text: 'A credential was accepted for the first time.' },
    ...released.map(
      ({ id: eventId, createdAt: at, reason }): Step => ({
        name: 'Released',
        eventId,
        at,
        look: 'warning',
        text: reason === null ? 'The delivery failed.' : <bdi>The delivery failed: {reason}</bdi>,
      }),
    ),
    deliveryOf(payment),
  ]
}

function deliveryOf(payment: GatewayPaymentDetails): Step {
  const { delivery, redeemedAt, heldUntil, settledAt } = payment
  if (delivery === 'none' || redeemedAt === null)
    return { name: 'Delivered', look: settledAt === null ? 'open' : 'warning', text: undelivered(payment) }
  if (delivery === 'done') return { name: 'Delivered', at: redeemedAt, look: 'done', icon: IconChecks }
  return {
    name: 'Delivering',
    at: redeemedAt,
    look: 'open',
    text: heldUntil !== null && <>in progress: the claim lapses at {exact(heldUntil)} unless the delivery is confirmed</>,
  }
}
