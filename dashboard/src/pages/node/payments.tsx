import { Table } from '@mantine/core'
import { IconArrowDownLeft, IconArrowUpRight } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { nodePaymentsQuery } from '../../api/queries.ts'
import type { DashboardNode, NodePayment } from '../../api/types.ts'
import { Amount, MsatAmount } from '../../components/amount.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { ButtonLink, TextLink } from '../../components/layout/links.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { nodePaymentWord } from '../../text/payments.ts'
import { nodeCurl } from '../../text/snippets.ts'

export function NodePayments({ node }: { node: DashboardNode }) {
  const { data: payments, error, refetch } = useQuery({ ...nodePaymentsQuery(node.id), enabled: node.status === 'ready' })
  if (node.status !== 'ready' && !payments) {
    return (
      <p className="note">
        The node itself stores this list, so it is only available when the node is ready.{' '}
        <TextLink to="/gateway" search={{ nodeId: node.id }}>
          Its gateway payments
        </TextLink>{' '}
        are always available.
      </p>
    )
  }
  if (!payments && error) return <Problem error={error} what="The payments could not be loaded." onRetry={() => void refetch()} />
  if (!payments) return <Loading height={320} />
  if (payments.length === 0) {
    return (
      <EmptyState
        sentence="This node has not received or sent any payments yet."
        action={
          <ButtonLink to="." search={{ tab: 'invoice' }}>
            Create an invoice
          </ButtonLink>
        }
        curl={nodeCurl(node.endpointUrl)}
      />
    )
  }
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
  // The invoice lets the payer choose the amount; "0 sat" would look like a free one.
  const isOpen = isIncoming && !payment.isPaid && payment.amountSat === 0
  return (
    <Table.Tr>
      <Table.Td>
        <span className="icon-line">
          {isIncoming ? <IconArrowDownLeft size={16} aria-hidden /> : <IconArrowUpRight size={16} aria-hidden />}
          {nodePaymentWord(payment, now)}
        </span>
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
        {payment.description}
      </Table.Td>
      <Table.Td>
        <Time at={payment.completedAt ?? payment.createdAt} />
      </Table.Td>
    </Table.Tr>
  )
}
