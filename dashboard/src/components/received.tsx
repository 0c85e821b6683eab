import { NativeSelect, SegmentedControl, VisuallyHidden } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { IconArrowDownRight, IconArrowUpRight } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react'
import { nodesQuery } from '../api/queries.ts'
import { receivedInMonthQuery, receivedQuery } from '../api/received.ts'
import type { Received as ReceivedData } from '../api/types.ts'
import { bucketName } from '../text/format.ts'
import { lastMonths, type Month, monthName, monthStart } from '../text/months.ts'
import { periodOfMonth } from '../text/periods.ts'
import {
  comparison,
  isMonthOver,
  type Point,
  pointsOf,
  pointsOfMonth,
  SPANS,
  type Span,
  totalBefore,
  totalOf,
  totalOfMonthBefore,
} from '../text/received.ts'
import { Amount } from './amount.tsx'
import { TextLink } from './layout/links.tsx'
import { Loading } from './loading.tsx'
import { Problem } from './problem.tsx'
import { useNow } from './time.tsx'

const HEIGHT = 220
const Chart = lazy(() => import('./chart.tsx'))
const NAMES: Record<Span, string> = { day: '24 hours', week: '7 days', month: '30 days' }

/** What the account or one node received, recently or in a calendar month since it was created. */
export function Received({ nodeId, since = 0 }: { nodeId?: string; since?: number }) {
  const [stored, setSpan] = useLocalStorage<Span>({ key: 'boltyard-span', defaultValue: 'day', getInitialValueInEffect: false })
  const [month, setMonth] = useState<Month>()
  const span = SPANS.find((one) => one === stored) ?? 'day'
  const comparedSince = useComparedSince(nodeId, since)
  const { data, error, refetch } = useQuery(month ? receivedInMonthQuery(month, nodeId) : receivedQuery(span, nodeId))
  return (
    <section className="card" aria-labelledby="received">
      <div className="page-head received-head">
        <h2 id="received" className="section-title">
          Received
        </h2>
        <div className="received-periods">
          <SegmentedControl
            aria-label="Time span"
            value={month ? '' : span}
            onChange={(value) => {
              setMonth(undefined)
              setSpan(SPANS.find((one) => one === value) ?? span)
            }}
            data={SPANS.map((value) => ({ value, label: NAMES[value] }))}
          />
          <MonthSelect month={month} since={since} onChange={setMonth} />
        </div>
      </div>
      <div className="received-body">
        {!data && error && <Problem error={error} what="What was received could not be loaded." onRetry={() => void refetch()} />}
        {!data && !error && <Loading height={HEIGHT} shape="chart" />}
        {data &&
          (month ? (
            <InMonth received={data} month={month} nodeId={nodeId} comparedSince={comparedSince} />
          ) : (
            <Lately received={data} span={span} nodeId={nodeId} comparedSince={comparedSince} />
          ))}
      </div>
    </section>
  )
}

/** A period is not used for comparison if it began before the node, or the account's first node, was created. */
function useComparedSince(nodeId: string | undefined, since: number): number {
  const { data: nodes = [] } = useQuery({ ...nodesQuery, enabled: nodeId === undefined })
  return nodeId === undefined ? Math.min(...nodes.map(({ createdAt }) => createdAt)) : since
}

type MonthProps = { month: Month | undefined; since: number; onChange: (month: Month | undefined) => void }

function MonthSelect({ month, since, onChange }: MonthProps) {
  const months = lastMonths(useNow(900)).filter((one) => monthStart(one, 1) > since)
  return (
    <NativeSelect
      aria-label="Month"
      value={month ?? ''}
      data={[{ value: '', label: 'Month…' }, ...months.map((one) => ({ value: one, label: monthName(one) }))]}
      onChange={({ currentTarget: { value } }) => onChange(value || undefined)}
    />
  )
}

type Of = { received: ReceivedData; nodeId: string | undefined; comparedSince: number }

function Lately({ received, span, nodeId, comparedSince }: Of & { span: Span }) {
  const unit = span === 'day' ? 'hour' : 'day'
  const points = useMemo(() => pointsOf(received, span), [received, span])
  return (
    <Figures points={points} unit={unit} before={totalBefore(received, span, comparedSince)}>
      {span === 'day' ? 'Since' : 'From'} {bucketName(points[0]?.at ?? received.now, unit)}, in your time zone.{' '}
      {whatCounts(received, nodeId)}
    </Figures>
  )
}

function InMonth({ received, month, nodeId, comparedSince }: Of & { month: Month }) {
  const now = useNow(900)
  const points = useMemo(() => pointsOfMonth(received, month), [received, month])
  return (
    <Figures
      points={points}
      unit="day"
      before={totalOfMonthBefore(received, month, comparedSince)}
      isSoFar={!isMonthOver(received, month)}
    >
      In {monthName(month)}, in your time zone. {whatCounts(received, nodeId)}{' '}
      <TextLink to="/gateway" search={{ nodeId, state: 'received', ...periodOfMonth(month, now) }}>
        Gateway payments of {monthName(month)}
      </TextLink>
    </Figures>
  )
}

function whatCounts({ unlistedNodes }: ReceivedData, nodeId: string | undefined): string {
  const all = 'Gateway payments count at once, other payments of a node usually within ten minutes.'
  if (unlistedNodes === 0) return all
  const who = nodeId ? 'This node has' : unlistedNodes === 1 ? 'One node has' : `${unlistedNodes} nodes have`
  return `${all} ${who} not answered lately: payments received outside the gateway may be missing.`
}

type FiguresProps = {
  points: Point[]
  unit: 'hour' | 'day'
  /** Undefined: there is nothing to compare with. */
  before: number | undefined
  isSoFar?: boolean
  children: ReactNode
}

function Figures({ points, unit, before, isSoFar = false, children }: FiguresProps) {
  // The sum of the bars, so that the total always matches the chart.
  const total = totalOf(points)
  return (
    <>
      <div className="received-total">
        <span className="figure" data-testid="received-total">
          <Amount sat={total} />
        </span>
        {isSoFar && <span className="small compared">so far</span>}
        {before !== undefined && <Compared total={total} before={before} />}
      </div>
      <p className="small dim">{children}</p>
      <div className="chart-space">
        {total === 0 ? (
          <p className="dim chart-empty">Nothing was received in this period.</p>
        ) : (
          <Suspense fallback={<Loading height={HEIGHT} shape="chart" />}>
            <Chart points={points} unit={unit} label={`Received per ${unit}`} />
          </Suspense>
        )}
      </div>
      <VisuallyHidden>
        <table>
          <caption>Satoshis received per {unit}</caption>
          <thead>
            <tr>
              <th>{unit === 'hour' ? 'Hour from' : 'Day'}</th>
              <th>Received</th>
            </tr>
          </thead>
          <tbody>
            {points.map(({ at, sat }) => (
              <tr key={at}>
                <td>{bucketName(at, unit)}</td>
                <td>{sat}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </VisuallyHidden>
    </>
  )
}

function Compared({ total, before }: { total: number; before: number }) {
  const { words, direction } = comparison(total, before)
  return (
    <span className={`small compared compared-${direction}`} data-testid="received-compared">
      {direction === 'up' && <IconArrowUpRight size={16} aria-hidden />}
      {direction === 'down' && <IconArrowDownRight size={16} aria-hidden />}
      <span>
        {words}
        {before > 0 && (
          <>
            {' '}
            (<Amount sat={before} />)
          </>
        )}
      </span>
    </span>
  )
}
