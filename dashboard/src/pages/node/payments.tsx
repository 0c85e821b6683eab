import { SegmentedControl, Table } from '@mantine/core'
import { IconArrowDownLeft, IconArrowUpRight } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { nodePaymentsQuery } from '../../api/queries.ts'
import type { DashboardNode, NodePayment } from '../../api/types.ts'
import { Amount, MsatAmount } from '../../components/amount.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { ButtonLink, TextLink } from '../../components/layout/links.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { nodeCurl } from '../../text/code/snippets.ts'
import { NODE_PAYMENT_FILTERS, type NodePaymentFilter, newestCount, nodePaymentWord, sumsOf } from '../../text/payments.ts'

export function NodePayments({ node }: { node: DashboardNode }) {
  const [filter, setFilter] = useState<NodePaymentFilter>('all')
  const { data: payments, error, refetch } = useQuery({ ...nodePaymentsQuery(node.id), enabled: node.status === 'ready' })
  if (node.status !== 'ready' && !payments) {
    return (
      <p className="note">
        The node itself stores this list, so it is only available when the node is ready. What it has received is always
        available: <TextLink to=".">by day and month</TextLink>, and{' '}
        <TextLink to="/gateway" search={{ nodeId: node.id, state: 'received' }}>
          each gateway payment
        </TextLink>
        .
      </p>
    )
  }
  if (!payments && error) return <Problem error={error} what="The payments could not be loaded." onRetry={() => void refetch()} />
  if (!payments) return <Loading height={320} shape="list" />
  if (payments.length === 0) {
    return (
      <EmptyState
        art="payments"
        title="This node has not received or sent any payments yet."
        sentence="Create an invoice and pay it from any Lightning wallet."
        action={
          <ButtonLink to="." search={{ tab: 'invoice' }}>
            Create an invoice
          </ButtonLink>
        }
        curl={nodeCurl(node.endpointUrl)}
      />
    )
  }
  const shown = payments.filter(NODE_PAYMENT_FILTERS[filter].matches)
  return (
    <>
      <div className="payment-filter">
        <SegmentedControl
          aria-label="Which payments"
          value={filter}
          onChange={setFilter}
          data={FILTERS.map((value) => ({ value, label: NODE_PAYMENT_FILTERS[value].name }))}
        />
        <span className="small dim" role="status">
          {newestCount(shown.length, payments.length, filter)}
          <Sums payments={shown} />
        </span>
        <TextLink to="." className="small">
          Received by day and month
        </TextLink>
      </div>
      {shown.length === 0 ? (
        <EmptyState art="search" title="None of the newest payments matches." sentence="Choose another kind of payment above." />
      ) : (
        <PaymentTable payments={shown} />
      )}
    </>
  )
}

function Sums({ payments }: { payments: NodePayment[] }) {
  const { receivedSat, sentSat, feesMsat } = sumsOf(payments)
  return (
    <>
      {receivedSat > 0 && (
        <>
          {' '}
          · received <Amount sat={receivedSat} />
        </>
      )}
      {sentSat > 0 && (
        <>
          {' '}
          · sent <Amount sat={sentSat} />
          {feesMsat > 0 && (
            <>
              , and fees of <MsatAmount msat={feesMsat} />
            </>
          )}
        </>
      )}
    </>
  )
}

const FILTERS = Object.keys(NODE_PAYMENT_FILTERS) as NodePaymentFilter[]

function PaymentTable({ payments }: { payments: NodePayment[] }) {
  return (
    <div className="card list">
      <Table verticalSpacing="sm" aria-label="Payments of this node">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Direction</Table.Th>
            <Table.Th className="number">Amount</Table.Th>
            <Table.Th className="number from-600">Fee</Table.Th>
            <Table.Th className="from-540">Description</Table.Th>
            <Table.Th>When</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {payments.map((payment, place) => (
            <Row key={`${payment.paymentHash ?? place}-${payment.createdAt}-${payment.direction}`} payment={payment} />
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}

function Row({ payment }: { payment: NodePayment }) {
  const now = useNow()
  const isIncoming = payment.direction === 'in'
  // The invoice lets the payer choose the amount; "0 sat" would look as if it were free.
  const isOpen = isIncoming && !payment.isPaid && payment.amountSat === 0
  return (
    <Table.Tr>
      <Table.Td>
        <span className="icon-line">
          {isIncoming ? <IconArrowDownLeft size={16} aria-hidden /> : <IconArrowUpRight size={16} aria-hidden />}
          {nodePaymentWord(payment, now)}
        </span>
        <div className="to-540 small breakable" dir="auto">
          <Description payment={payment} />
        </div>
      </Table.Td>
      <Table.Td className="number">
        {isOpen ? (
          'any'
        ) : (
          <>
            {isIncoming ? '' : '\u2212'}
            <Amount sat={payment.amountSat} />
          </>
        )}
      </Table.Td>
      <Table.Td className="number from-600">{payment.feeMsat > 0 && <MsatAmount msat={payment.feeMsat} />}</Table.Td>
      <Table.Td className="long from-540" dir="auto" title={payment.description ?? undefined}>
        <Description payment={payment} />
      </Table.Td>
      <Table.Td>
        <Time at={payment.completedAt ?? payment.createdAt} />
      </Table.Td>
    </Table.Tr>
  )
}

/** Links to the page of the gateway payment, if this is a gateway payment. */
function Description({ payment: { description, gatewayPaymentId } }: { payment: NodePayment }) {
  if (gatewayPaymentId === null) return <bdi>{description}</bdi>
  return (
    <Link to="/gateway/payments/$paymentId" params={{ paymentId: gatewayPaymentId }}>
      <bdi>{description ?? 'Gateway payment'}</bdi>
    </Link>
  )
}
