import { Link } from '@tanstack/react-router'
import type { GatewayPayment } from '../../api/types.ts'
import { Amount } from '../../components/amount.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { PaymentStatus } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'

/** The payments that were received last. */
export function Recent({ payments, isSandbox }: { payments: GatewayPayment[]; isSandbox: boolean }) {
  return (
    <section className="card list recent" aria-labelledby="recent">
      <div className="recent-head">
        <h2 id="recent" className="section-title">
          Recent payments
        </h2>
        {payments.length > 0 && <TextLink to="/gateway">All gateway payments</TextLink>}
      </div>
      {payments.length === 0 ? (
        <p className="dim recent-empty">
          No payments have been received yet.{' '}
          {isSandbox ? (
            <TextLink to="/gateway/try-it">Try a paid request</TextLink>
          ) : (
            <TextLink to="/developers">See how to ask for one</TextLink>
          )}
        </p>
      ) : (
        <ul className="rows">
          {payments.map((payment) => (
            <li key={payment.id}>
              <Link to="/gateway/payments/$paymentId" params={{ paymentId: payment.id }} className="row recent-row">
                <span className="recent-amount">
                  <Amount sat={payment.amountSat} />
                </span>
                <span className="row-main recent-text" dir="auto" title={payment.description}>
                  {payment.description}
                </span>
                <PaymentStatus payment={payment} />
                <span className="small dim recent-time">
                  <Time at={payment.settledAt ?? payment.createdAt} />
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
