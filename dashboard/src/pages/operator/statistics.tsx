import { Table } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo } from 'react'
import { type DailyStats, daysQuery, statsQuery } from '../../api/operator.ts'
import { Amount, Count } from '../../components/amount.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { localDayOf } from '../../text/days.ts'
import { ENGLISH } from '../../text/locales.ts'

const Chart = lazy(() => import('../../components/chart.tsx'))
const DAYS = 30
const dayFormat = new Intl.DateTimeFormat(ENGLISH, { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' })

export function StatisticsPage() {
  const stats = useQuery(statsQuery)
  const days = useQuery(daysQuery(DAYS))
  return (
    <Page title="Statistics">
      {!stats.data && <Problem error={stats.error} what="The totals could not be loaded." onRetry={() => void stats.refetch()} />}
      {(stats.data || stats.isPending) && (
        <dl className="operator-figures" aria-busy={stats.isPending}>
          <Figure name="Accounts" count={stats.data?.accounts} />
          <Figure
            name="Nodes"
            count={stats.data?.nodes}
            note={stats.data ? `${stats.data.nodesReady} ready, ${stats.data.nodesFailed} failed` : '…'}
          />
          <Figure name="API keys" count={stats.data?.keys} />
          <Figure name="Payments validated" count={stats.data?.paymentsPaid} />
        </dl>
      )}
      {!days.data && <Problem error={days.error} what="The days could not be loaded." onRetry={() => void days.refetch()} />}
      {days.isPending && <Loading height={420} />}
      {days.data && <Days days={days.data} />}
    </Page>
  )
}

function Figure({ name, count, note }: { name: string; count: number | undefined; note?: string }) {
  return (
    <div className="card">
      <dt className="small dim">{name}</dt>
      <dd className="figure">{count === undefined ? '…' : <Count of={count} />}</dd>
      {note && <dd className="small dim">{note}</dd>}
    </div>
  )
}

function Days({ days }: { days: DailyStats[] }) {
  // The chart names local days.
  const points = useMemo(() => days.map(({ at, receivedSat }) => ({ at: localDayOf(at), sat: receivedSat })), [days])
  const busy = [...days].reverse().filter(({ at, ...counts }) => Object.values(counts).some((count) => count > 0))
  const total = days.reduce((sum, { receivedSat }) => sum + receivedSat, 0)
  return (
    <div className="stack">
      <section className="card" aria-labelledby="received">
        <h2 id="received">Received through the gateway, all accounts</h2>
        <div className="figure">
          <Amount sat={total} />
        </div>
        <p className="small dim">The last {DAYS} days, in UTC. Today is not over yet.</p>
        <div className="chart-space">
          {total === 0 ? (
            <p className="dim chart-empty">Nothing was received in this period.</p>
          ) : (
            <Suspense fallback={<Loading height={220} shape="chart" />}>
              <Chart points={points} unit="day" label="Received per day" />
            </Suspense>
          )}
        </div>
      </section>
      {busy.length > 0 && (
        <div className="card list operator-days">
          <Table aria-label="By day">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Day (UTC)</Table.Th>
                <Table.Th className="number">Received</Table.Th>
                <Table.Th className="number">Payments</Table.Th>
                <Table.Th className="number from-540">Validated</Table.Th>
                <Table.Th className="number from-540">New accounts</Table.Th>
                <Table.Th className="number from-540">New nodes</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {busy.map((day) => (
                <Table.Tr key={day.at}>
                  <Table.Td>{dayFormat.format(day.at * 1000)}</Table.Td>
                  <Table.Td className="number">
                    <Amount sat={day.receivedSat} />
                  </Table.Td>
                  <Table.Td className="number">
                    <Count of={day.paymentsReceived} />
                  </Table.Td>
                  <Table.Td className="number from-540">
                    <Count of={day.paymentsPaid} />
                  </Table.Td>
                  <Table.Td className="number from-540">
                    <Count of={day.accounts} />
                  </Table.Td>
                  <Table.Td className="number from-540">
                    <Count of={day.nodes} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
      <p className="small dim">Days on which nothing happened are left out of the table.</p>
    </div>
  )
}
