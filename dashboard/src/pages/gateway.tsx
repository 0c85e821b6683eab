import { Group, NativeSelect, Table } from '@mantine/core'
import { useInfiniteQuery, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import type { MouseEvent } from 'react'
import { meQuery, nodesQuery, PAYMENT_STATES, type PaymentState, paymentsQuery } from '../api/queries.ts'
import type { GatewayPayment } from '../api/types.ts'
import { Amount } from '../components/amount.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import { ButtonLink, TextLink } from '../components/layout/links.tsx'
import { TabbedPage } from '../components/layout/tabbed-page.tsx'
import { LoadMore } from '../components/load-more.tsx'
import { Loading } from '../components/loading.tsx'
import { Problem } from '../components/problem.tsx'
import { PaymentStatus } from '../components/status.tsx'
import { Time } from '../components/time.tsx'
import { PROTOCOL_NAMES } from '../text/format.ts'
import { chargeCurl } from '../text/snippets.ts'

export function GatewayPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const filter = useSearch({ from: '/app/gateway' })
  const payments = useInfiniteQuery(paymentsQuery(filter))
  const { data: nodes } = useQuery(nodesQuery)
  const rows = payments.data?.pages.flatMap((page) => page.payments)
  const isFiltered = filter.state !== undefined || filter.nodeId !== undefined

  return (
    <TabbedPage section="Gateway" at="/gateway">
      {(isFiltered || rows?.length !== 0) && <Filters />}
      {!payments.data && (
        <Problem error={payments.error} what="The payments could not be loaded." onRetry={() => void payments.refetch()} />
      )}
      {payments.isPending && <Loading height={480} />}
      {rows?.length === 0 &&
        (isFiltered ? (
          <div className="card empty">
            <p>No payments match these filters.</p>
            <TextLink to="/gateway">Show all payments</TextLink>
          </div>
        ) : (
          <EmptyState
            sentence="No payments yet. A payment starts with a challenge, which your server sends with status 402."
            action={
              me.isSandbox ? (
                <ButtonLink to="/gateway/try-it">Try it</ButtonLink>
              ) : (
                <ButtonLink to="/developers">Create an API key</ButtonLink>
              )
            }
            curl={chargeCurl(me.publicUrl, nodes?.[0]?.id)}
          />
        ))}
      {rows && rows.length > 0 && (
        <>
          <PaymentTable rows={rows} nameOf={(id) => nodes?.find((node) => node.id === id)?.name ?? id} />
          <LoadMore query={payments} />
        </>
      )}
    </TabbedPage>
  )
}

const STATE_NAMES: Record<PaymentState, string> = {
  unpaid: 'Unpaid',
  undelivered: 'Paid, not delivered',
  delivering: 'Delivering',
  delivered: 'Delivered',
  expired: 'Expired',
}

function Filters() {
  const { state = '', nodeId = '' } = useSearch({ from: '/app/gateway' })
  const navigate = useNavigate({ from: '/gateway' })
  const { data: nodes } = useQuery(nodesQuery)
  const known = nodes ?? []
  return (
    <Group mb="md" gap="md">
      <NativeSelect
        label="Status"
        w={180}
        value={state}
        data={[{ value: '', label: 'Any' }, ...PAYMENT_STATES.map((one) => ({ value: one, label: STATE_NAMES[one] }))]}
        onChange={(event) => {
          const chosen = PAYMENT_STATES.find((one) => one === event.currentTarget.value)
          void navigate({ search: (before) => ({ ...before, state: chosen }), replace: true })
        }}
      />
      <NativeSelect
        label="Node"
        w={150}
        value={nodeId}
        data={[
          { value: '', label: 'Any' },
          // The URL may still name a deleted node.
          ...(nodeId !== '' && !known.some((node) => node.id === nodeId) ? [{ value: nodeId, label: nodeId }] : []),
          ...known.map((node) => ({ value: node.id, label: node.name })),
        ]}
        onChange={(event) => {
          const chosen = event.currentTarget.value || undefined
          void navigate({ search: (before) => ({ ...before, nodeId: chosen }), replace: true })
        }}
      />
    </Group>
  )
}

function PaymentTable({ rows, nameOf }: { rows: GatewayPayment[]; nameOf: (nodeId: string) => string }) {
  const navigate = useNavigate()
  // Not if the person selects text, or uses the link, which also works with the keyboard.
  const open = ({ target }: MouseEvent, paymentId: string) => {
    if ((target as Element).closest('a') || window.getSelection()?.type === 'Range') return
    void navigate({ to: '/gateway/payments/$paymentId', params: { paymentId } })
  }
  return (
    <div className="card list">
      <Table verticalSpacing="sm" highlightOnHover aria-label="Gateway payments">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Description</Table.Th>
            <Table.Th className="from-460">Status</Table.Th>
            <Table.Th className="number">Amount</Table.Th>
            <Table.Th className="from-800">Protocol</Table.Th>
            <Table.Th className="from-700">Node</Table.Th>
            <Table.Th className="from-540">Created</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((payment) => (
            <Table.Tr key={payment.id} className="whole-row" onClick={(event) => open(event, payment.id)}>
              <Table.Td className="long" dir="auto">
                <Link
                  to="/gateway/payments/$paymentId"
                  params={{ paymentId: payment.id }}
                  className="plain-link"
                  title={payment.description}
                >
                  {payment.description}
                </Link>
                <div className="to-460">
                  <PaymentStatus payment={payment} />
                </div>
              </Table.Td>
              <Table.Td className="from-460">
                <PaymentStatus payment={payment} />
              </Table.Td>
              <Table.Td className="number">
                <Amount sat={payment.amountSat} />
              </Table.Td>
              <Table.Td className="from-800">{PROTOCOL_NAMES[payment.protocol]}</Table.Td>
              <Table.Td className="name from-700" dir="auto" title={nameOf(payment.nodeId)}>
                {nameOf(payment.nodeId)}
              </Table.Td>
              <Table.Td className="from-540">
                <Time at={payment.createdAt} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}
