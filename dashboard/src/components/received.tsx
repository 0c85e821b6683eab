import { SegmentedControl, VisuallyHidden } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { IconArrowDownRight, IconArrowUpRight } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo } from 'react'
import { receivedQuery } from '../api/received.ts'
import type { Received as ReceivedData } from '../api/types.ts'
import { bucketName } from '../text/format.ts'
import { comparison, pointsOf, SPANS, type Span, totalBefore, totalOf } from '../text/received.ts'
import { Amount } from './amount.tsx'
import { Loading } from './loading.tsx'
import { Problem } from './problem.tsx'

const HEIGHT = 220
const Chart = lazy(() => import('./chart.tsx'))
const NAMES: Record<Span, string> = { day: '24 hours', week: '7 days', month: '30 days' }

/** Of the account, or of one node. */
export function Received({ nodeId }: { nodeId?: string }) {
  const [stored, setSpan] = useLocalStorage<Span>({ key: 'boltyard-span', defaultValue: 'day', getInitialValueInEffect: false })
  const span = SPANS.find((one) => one === stored) ?? 'day'
  const { data, error, refetch } = useQuery(receivedQuery(span, nodeId))
  return (
    <section className="card" aria-labelledby="received">
      <div className="page-head received-head">
        <h2 id="received" className="section-title">
          Received
        </h2>
        <SegmentedControl
          aria-label="Time span"
          value={span}
          onChange={setSpan}
          data={SPANS.map((value) => ({ value, label: NAMES[value] }))}
        />
      </div>
      <div className="received-body">
        {!data && error && <Problem error={error} what="What was received could not be loaded." onRetry={() => void refetch()} />}
        {!data && !error && <Loading height={HEIGHT} />}
        {data && <Loaded received={data} span={span} />}
      </div>
    </section>
  )
}

function Loaded({ received, span }: { received: ReceivedData; span: Span }) {
  const unit = span === 'day' ? 'hour' : 'day'
  const points = useMemo(() => pointsOf(received, span), [received, span])
  // The sum of the bars, so that the total always matches the chart.
  const total = totalOf(points)
  const before = totalBefore(received, span, total)
  const { words, direction } = comparison(total, before)
  return (
    <>
      <div className="received-total">
        <span className="figure" data-testid="received-total">
          <Amount sat={total} />
        </span>
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
      </div>
      <p className="small dim">
        {span === 'day' ? 'Since' : 'From'} {bucketName(points[0]?.at ?? received.now, unit)}, in your time zone. Gateway payments
        count at once, other payments of a node within about five minutes.
        {received.unlistedNodes > 0 &&
          ` Of ${received.unlistedNodes === 1 ? 'one node' : `${received.unlistedNodes} nodes`}, only gateway payments are known at the moment.`}
      </p>
      <div className="chart-space">
        {total === 0 ? (
          <p className="dim chart-empty">Nothing was received in this period.</p>
        ) : (
          <Suspense fallback={<Loading height={HEIGHT} />}>
            <Chart points={points} unit={unit} label={`Received per ${unit}`} />
          </Suspense>
        )}
      </div>
      <VisuallyHidden>
        <table>
          <caption>Satoshis received per {unit}</caption>
          <thead>
            <tr>
              <th>{span === 'day' ? 'Hour from' : 'Day'}</th>
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
