import { Table } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { PaymentPlace } from '../../api/payments.ts'
import { nodesQuery } from '../../api/queries.ts'
import type { GatewayPayment } from '../../api/types.ts'
import { Amount } from '../../components/amount.tsx'
import { PaymentStatus } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { PROTOCOL_NAMES } from '../../text/format.ts'
import { distinctNames } from '../../text/node-names.ts'
import { noteOpened, ROW_LINK } from './keyboard.ts'

/** `isOld`: the rows are for the previous selection, until those for the new one arrive. `place`: where a payment leads back to. */
export function PaymentTable({ rows, isOld, place }: { rows: GatewayPayment[]; isOld: boolean; place: PaymentPlace }) {
  const { data: nodes } = useQuery(nodesQuery)
  const names = useMemo(() => distinctNames(nodes ?? []), [nodes])
  const nameOf = (id: string) => names.get(id) ?? id
  return (
    <div className={isOld ? 'card list old' : 'card list'} aria-busy={isOld}>
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
            <Table.Tr key={payment.id} className="payment-row">
              <Table.Td className="long" dir="auto">
                <Link
                  to="/gateway/payments/$paymentId"
                  params={{ paymentId: payment.id }}
                  state={{ paymentList: place }}
                  className={`plain-link ${ROW_LINK}`}
                  title={payment.description}
                  data-id={payment.id}
                  onClick={() => noteOpened(payment.id)}
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
                <div className="small dim to-540">
                  <Time at={payment.createdAt} />
                </div>
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
