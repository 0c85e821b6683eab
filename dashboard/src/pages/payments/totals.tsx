import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect } from 'react'
import { exportUrl, type PaymentPlace, type PaymentTotals, paymentTotalsQuery } from '../../api/payments.ts'
import { Amount, Count } from '../../components/amount.tsx'
import { Problem } from '../../components/problem.tsx'
import { rangeName, rangeOf } from '../../text/periods.ts'

/** Adding up may read all payments, so it is not repeated with every change of a busy list. */
const PAUSE_MS = 5_000

export function Totals({ place, listUpdatedAt }: { place: PaymentPlace; listUpdatedAt: number }) {
  const { data, error, dataUpdatedAt, refetch } = useQuery(paymentTotalsQuery(place))
  useEffect(() => {
    // The first list and the first totals are read at the same time, so the totals need no refresh.
    if (dataUpdatedAt === 0 || listUpdatedAt < dataUpdatedAt + 200) return
    const timer = setTimeout(() => void refetch(), Math.max(0, dataUpdatedAt + PAUSE_MS - Date.now()))
    return () => clearTimeout(timer)
  }, [listUpdatedAt, dataUpdatedAt, refetch])

  if (!data && error) return <Problem error={error} what="The totals could not be loaded." onRetry={() => void refetch()} />
  return (
    <section className="totals" aria-label="Totals" aria-busy={!data}>
      <Figures place={place} totals={data} />
      <div className="totals-foot">
        <WhatCounts place={place} />
        <Button
          component="a"
          href={exportUrl(place)}
          download="payments.csv"
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} aria-hidden />}
        >
          Export CSV
        </Button>
      </div>
    </section>
  )
}

function Figures({ place, totals }: { place: PaymentPlace; totals: PaymentTotals | undefined }) {
  const all = totals && Object.values(totals)
  const received = totals && [totals.undelivered, totals.delivering, totals.delivered]
  const sum = (list: { count: number; sat: number }[], of: 'count' | 'sat') => list.reduce((total, one) => total + one[of], 0)
  const figure = (value: number | undefined) => (value === undefined ? '…' : <Count of={value} />)
  return (
    <dl className="figures">
      <div>
        <dt>Payments</dt>
        <dd>{figure(all && sum(all, 'count'))}</dd>
      </div>
      <div>
        <dt>Paid by customers</dt>
        <dd>{figure(received && sum(received, 'count'))}</dd>
      </div>
      <div>
        <dt>Received</dt>
        <dd>{received ? <Amount sat={sum(received, 'sat')} /> : '…'}</dd>
      </div>
      <div>
        <dt>{place.state === 'unfulfilled' ? 'Paid, got nothing' : 'Paid, not delivered'}</dt>
        <dd>
          {totals && totals.undelivered.count > 0 && place.state !== 'undelivered' && place.state !== 'unfulfilled' ? (
            <Link to="/gateway" search={{ ...place, state: 'undelivered', cursor: undefined, after: undefined }}>
              <Count of={totals.undelivered.count} /> <span className="small">show them</span>
            </Link>
          ) : (
            figure(totals?.undelivered.count)
          )}
        </dd>
      </div>
    </dl>
  )
}

function WhatCounts({ place: { period, from, to } }: { place: PaymentPlace }) {
  const name = rangeName(rangeOf(period, { from, to }, new Date()))
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  return (
    <details className="small dim">
      <summary>{name === '' ? 'All times' : `Created ${name}`} · what is counted?</summary>
      <p>
        <strong>Received</strong> is the sum of the prices of all payments in this selection whose money has reached your node,
        delivered or not. It is before fees, and invoices that you create by hand are not in it.
      </p>
      <p>
        <strong>Paid, not delivered</strong> means that your server has not redeemed the payment, or has released it. If your
        server only validates payments, the gateway never learns about deliveries. <strong>Paid, got nothing</strong>, a status to
        filter by, leaves out what was validated: it means that nobody came back with the credential within ten minutes, or that a
        delivery failed or was never confirmed.
      </p>
      <p>
        Periods go by the time a payment was created, in your time zone ({zone}). A challenge that nobody paid is removed about a
        day after it expires, and is no longer counted.
      </p>
    </details>
  )
}
