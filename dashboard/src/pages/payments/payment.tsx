import { Button, Group } from '@mantine/core'
import { IconPrinter } from '@tabler/icons-react'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useLocation, useParams } from '@tanstack/react-router'
import { useMemo } from 'react'
import { subjectsQuery } from '../../api/activity.ts'
import { type GatewayPaymentDetails, isFiltered, type PaymentPlace, paymentQuery } from '../../api/payments.ts'
import { meQuery, nodesQuery } from '../../api/queries.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Id } from '../../components/id.tsx'
import { InvoiceCard } from '../../components/invoice-card.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Snippet } from '../../components/snippet.tsx'
import { PaymentStatus } from '../../components/status.tsx'
import { decodeChallenge, decodeReceipt } from '../../text/challenge.ts'
import { exact, PROTOCOL_NAMES, sats, shortened } from '../../text/format.ts'
import { PaymentHistory } from './history.tsx'
import { Timeline } from './timeline.tsx'

export function PaymentPage() {
  const { paymentId } = useParams({ from: '/app/gateway/payments/$paymentId' })
  const { data: payment, error, refetch } = useQuery(paymentQuery(paymentId))
  const { paymentList = {} } = useLocation({ select: ({ state }) => state })
  return (
    <Page
      title={payment ? `${sats(payment.amountSat)} · ${payment.description}` : 'Payment'}
      heading={
        payment ? (
          <>
            <span>
              {sats(payment.amountSat)} · <bdi>{payment.description}</bdi>
            </span>
            <PaymentStatus payment={payment} />
          </>
        ) : (
          'Payment'
        )
      }
      // Shown together with the final heading, which would move them if it came later.
      actions={
        (payment || error) && (
          <Group className="page-actions">
            {payment && payment.settledAt !== null && (
              <Button
                size="xs"
                variant="default"
                leftSection={<IconPrinter size={15} aria-hidden />}
                onClick={() => window.print()}
              >
                Print receipt
              </Button>
            )}
            <TextLink to="/gateway" search={paymentList}>
              {listName(paymentList)}
            </TextLink>
          </Group>
        )
      }
    >
      {!payment && error && <Problem error={error} what="This payment could not be loaded." onRetry={() => void refetch()} />}
      {!payment && !error && <Loading height={460} />}
      {payment && <Details payment={payment} onPaid={() => void refetch()} />}
    </Page>
  )
}

function Details({ payment, onPaid }: { payment: GatewayPaymentDetails; onPaid: () => void }) {
  const { data: me } = useSuspenseQuery(meQuery)
  const { protocol, challenge } = payment
  const decoded = useMemo(() => decodeChallenge(protocol, challenge), [protocol, challenge])
  const isOpen = payment.status === 'payment_required' && payment.settledAt === null
  return (
    <div className="payment-columns">
      <p className="print-only">
        {payment.settledAt === null
          ? 'The node has not received this payment: this is not a receipt.'
          : `Receipt: the node received the money on ${exact(payment.settledAt)}.`}
      </p>
      <div className="stack">
        <Timeline payment={payment} />
        {isOpen && decoded.invoice !== undefined && (
          <section className="card" aria-labelledby="invoice">
            <h2 id="invoice">Invoice</h2>
            <InvoiceCard
              invoice={decoded.invoice}
              paid={null}
              expiresAt={payment.expiresAt}
              isSandbox={me.isSandbox}
              onPaidHere={onPaid}
            />
          </section>
        )}
        <PaymentHistory payment={payment} />
      </div>
      <div className="stack">
        <Facts payment={payment} />
        <Challenge payment={payment} fields={decoded.fields} />
        {payment.receipt !== null && <Receipt receipt={payment.receipt} />}
      </div>
    </div>
  )
}

function Facts({ payment }: { payment: GatewayPaymentDetails }) {
  const { data: nodes } = useQuery(nodesQuery)
  const node = nodes?.find(({ id }) => id === payment.nodeId)
  return (
    <section className="card" aria-label="Details">
      <dl className="facts">
        <dt>Amount</dt>
        <dd>{sats(payment.amountSat)}</dd>
        <dt>Description</dt>
        <dd dir="auto">{payment.description}</dd>
        {payment.resource !== null && (
          <>
            <dt>Resource</dt>
            <dd className="mono" dir="auto">
              {payment.resource}
            </dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <Id id={payment.id} /> <CopyButton text={payment.id} label="Copy payment id" />
        </dd>
        <dt>Payment hash</dt>
        <dd>
          <span className="mono" title={payment.paymentHash}>
            {shortened(payment.paymentHash)}
          </span>{' '}
          <CopyButton text={payment.paymentHash} label="Copy payment hash" />
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
            <Id id={payment.nodeId} />
          )}
        </dd>
        <dt>Created by</dt>
        <dd>
          <Creator createdBy={payment.createdBy} />
        </dd>
      </dl>
    </section>
  )
}

function listName(place: PaymentPlace): string {
  if (isFiltered(place)) return 'Back to the filtered payments'
  return place.cursor === undefined && place.after === undefined ? 'All payments' : 'Back to the payments'
}

function Creator({ createdBy }: Pick<GatewayPaymentDetails, 'createdBy'>) {
  if (createdBy === null) return <>unknown: it was not recorded</>
  if (createdBy.kind === 'person') return <>{createdBy.name ?? 'a person'}, in this dashboard</>
  return <CreatorKey id={createdBy.id} name={createdBy.name} />
}

function CreatorKey({ id, name }: { id: string; name: string | null }) {
  const { data: subjects } = useQuery(subjectsQuery)
  const isRevoked = subjects?.keys.some((key) => key.id === id && key.isGone) ?? false
  return (
    <>
      API key{' '}
      <TextLink to="/gateway" search={{ keyId: id }}>
        <bdi>{name ?? id}</bdi>
      </TextLink>
      {isRevoked && (
        <>
          , revoked.{' '}
          <TextLink to="/activity" search={{ keyId: id }}>
            Who revoked it?
          </TextLink>
        </>
      )}
    </>
  )
}

function Challenge({ payment, fields }: { payment: GatewayPaymentDetails; fields: [string, string][] }) {
  const header = payment.protocol === 'x402' ? 'PAYMENT-REQUIRED' : 'WWW-Authenticate'
  return (
    <section className="card no-print" aria-labelledby="challenge">
      <h2 id="challenge">Challenge</h2>
      <p className="small dim">The content of the {header} header that your server sends with status 402.</p>
      <Fields fields={fields} />
      <details className="folded">
        <summary>Raw header</summary>
        <Snippet code={payment.challenge} label={header} wraps />
      </details>
    </section>
  )
}

function Receipt({ receipt }: { receipt: string }) {
  const fields = useMemo(() => decodeReceipt(receipt), [receipt])
  return (
    <section className="card" aria-labelledby="receipt">
      <h2 id="receipt">Receipt</h2>
      <p className="small dim">The Payment-Receipt header for the response that delivers.</p>
      {fields && <Fields fields={fields} />}
      <details className="folded">
        <summary>Raw header</summary>
        <Snippet code={receipt} label="Payment-Receipt" wraps />
      </details>
    </section>
  )
}

function Fields({ fields }: { fields: [name: string, value: string][] }) {
  return (
    <dl className="facts fields small">
      {fields.map(([name, value]) => (
        <div key={name} className="field">
          <dt className="mono">{name}</dt>
          <dd dir="auto">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
