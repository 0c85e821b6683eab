import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { nodesQuery, paymentQuery } from '../api/queries.ts'
import type { GatewayPayment } from '../api/types.ts'
import { Amount } from '../components/amount.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { TextLink } from '../components/layout/links.tsx'
import { Page } from '../components/layout/page.tsx'
import { Loading } from '../components/loading.tsx'
import { Problem } from '../components/problem.tsx'
import { Snippet } from '../components/snippet.tsx'
import { PaymentStatus } from '../components/status.tsx'
import { Time } from '../components/time.tsx'
import { PROTOCOL_NAMES } from '../text/format.ts'
import { undelivered, unpaid, unsettled } from '../text/payments.ts'

export function PaymentPage() {
  const { paymentId } = useParams({ from: '/app/gateway/payments/$paymentId' })
  const { data: payment, error, refetch } = useQuery(paymentQuery(paymentId))
  return (
    <Page
      title="Payment"
      heading={<>Payment {payment && <PaymentStatus payment={payment} />}</>}
      actions={<TextLink to="/gateway">All payments</TextLink>}
    >
      {!payment && error && <Problem error={error} what="This payment could not be loaded." onRetry={() => void refetch()} />}
      {!payment && !error && <Loading height={460} />}
      {payment && <Details payment={payment} />}
    </Page>
  )
}

function Delivery({ payment }: { payment: GatewayPayment }) {
  const { delivery, redeemedAt } = payment
  if (delivery === 'none' || redeemedAt === null) return undelivered(payment)
  return (
    <>
      {delivery === 'held' && 'in progress: claimed '}
      <Time at={redeemedAt} />
    </>
  )
}

function Details({ payment }: { payment: GatewayPayment & { challenge: string } }) {
  const { data: nodes } = useQuery(nodesQuery)
  const node = nodes?.find(({ id }) => id === payment.nodeId)
  const header = payment.protocol === 'x402' ? 'PAYMENT-REQUIRED' : 'WWW-Authenticate'
  return (
    <div className="stack">
      <section className="card" aria-label="Details">
        <dl className="facts">
          <dt>Amount</dt>
          <dd>
            <Amount sat={payment.amountSat} />
          </dd>
          <dt>Description</dt>
          <dd dir="auto">{payment.description}</dd>
          {payment.resource !== null && (
            <>
              <dt>Resource</dt>
              <dd className="mono">{payment.resource}</dd>
            </>
          )}
          <dt>Id</dt>
          <dd>
            <span className="mono">{payment.id}</span> <CopyButton text={payment.id} label="Copy payment id" />
          </dd>
          <dt>Protocol</dt>
          <dd>{PROTOCOL_NAMES[payment.protocol]}</dd>
          <dt>Node</dt>
          <dd>
            {node ? (
              <TextLink to="/nodes/$nodeId" params={{ nodeId: node.id }}>
                <bdi>{node.name}</bdi>
              </TextLink>
            ) : (
              <span className="mono">{payment.nodeId}</span>
            )}
          </dd>
          <dt>Created</dt>
          <dd>
            <Time at={payment.createdAt} />
          </dd>
          {/* Only if unpaid: "expires in 4 minutes" next to a paid payment would raise doubts. */}
          {payment.settledAt === null && payment.paidAt === null && (
            <>
              <dt>{payment.status === 'expired' ? 'Expired' : 'Expires'}</dt>
              <dd>
                <Time at={payment.expiresAt} />
              </dd>
            </>
          )}
          <dt>Settled</dt>
          <dd>{payment.settledAt === null ? unsettled(payment) : <Time at={payment.settledAt} />}</dd>
          <dt>Paid</dt>
          <dd>{payment.paidAt === null ? unpaid(payment) : <Time at={payment.paidAt} />}</dd>
          <dt>Delivered</dt>
          <dd>
            <Delivery payment={payment} />
          </dd>
        </dl>
        {payment.settledAt !== null && payment.paidAt === null && (
          <p className="note">
            The node received the money, but no credential was accepted: the customer has not come back, or your server refused
            the credential, perhaps because the price had changed.{' '}
            {payment.protocol === 'x402'
              ? 'It can be used until one minute after the challenge has expired. After that, refund the customer.'
              : 'It stays valid even after the challenge has expired.'}
          </p>
        )}
      </section>
      <section className="card" aria-labelledby="challenge">
        <h2 id="challenge">Challenge</h2>
        <p className="small dim">The {header} header that your server sends with status 402.</p>
        <Snippet code={payment.challenge} label={header} wraps />
      </section>
    </div>
  )
}
