import { useQuery } from '@tanstack/react-query'
import { type GatewayPaymentDetails, type PaymentEvent, paymentEventsQuery } from '../../api/payments.ts'
import { Id } from '../../components/id.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { DeliveryBadge } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { Attempts } from '../webhooks/attempts.tsx'

/** The payment's events, and what became of them at each webhook. */
export function PaymentHistory({ payment }: { payment: GatewayPaymentDetails }) {
  const { data: events, error, refetch } = useQuery(paymentEventsQuery(payment.id))
  return (
    <section className="card no-print" aria-labelledby="payment-events">
      <h2 id="payment-events">Events and webhooks</h2>
      {!events && error && <Problem error={error} what="The events could not be loaded." onRetry={() => void refetch()} />}
      {!events && !error && <Loading height={60} />}
      {events?.length === 0 && (
        <p className="dim">
          {payment.settledAt === null
            ? 'No events yet. The first one is sent when the node has received the money.'
            : 'No events are kept for this payment: old events are removed, and new ones appear here within seconds.'}
        </p>
      )}
      {events && events.length > 0 && (
        <ul className="payment-events">
          {events.map((event) => (
            <li key={event.id}>
              <strong className="mono">{event.type}</strong>{' '}
              <span className="small dim">
                <Time at={event.createdAt} /> · <Id id={event.id} />
              </span>
              <Deliveries event={event} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** More attempts begin folded. */
const FEW = 3

function Deliveries({ event: { deliveries } }: { event: PaymentEvent }) {
  if (deliveries.length === 0) return <div className="small dim">No delivery to a webhook is recorded.</div>
  return deliveries.map((delivery) => {
    const last = delivery.attempts.at(-1)
    return (
      <div key={delivery.webhookId} className="small">
        <DeliveryBadge delivery={delivery} />{' '}
        <TextLink to="/developers/webhooks/$webhookId" params={{ webhookId: delivery.webhookId }}>
          {delivery.url}
        </TextLink>
        {last && delivery.attempts.length > FEW && (
          <span className="dim">
            {' '}
            · the last attempt <Time at={last.at} />: {last.error ?? `status ${last.status}`}
          </span>
        )}
        {last && <Attempts of={delivery.attempts} isUnfolded={delivery.attempts.length <= FEW} />}
      </div>
    )
  })
}
