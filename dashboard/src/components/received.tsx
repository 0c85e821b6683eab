import { SegmentedControl, VisuallyHidden } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { lazy, Suspense, useMemo } from 'react'
import type { Overview } from '../api/types.ts'
import { pointsOf, type Span, totalOf } from '../received.ts'
import { bucketName } from '../text/format.ts'
import { Amount } from './amount.tsx'
import { Loading } from './loading.tsx'

const HEIGHT = 220
const Chart = lazy(() => import('./chart.tsx'))

export function Received({ received }: { received: Overview['received'] }) {
  const [span, setSpan] = useLocalStorage<Span>({ key: 'boltyard-span', defaultValue: 'day', getInitialValueInEffect: false })
  const unit = span === 'day' ? 'hour' : 'day'
  const points = useMemo(() => pointsOf(received, span), [received, span])
  // The sum of the bars, so that the total always matches the chart.
  const total = totalOf(points)
  return (
    <section className="card" aria-labelledby="received">
      <div className="page-head received-head">
        <div>
          <h2 id="received" className="section-title">
            Received through the gateway
          </h2>
          <div className="figure" data-testid="received-total">
            <Amount sat={total} />
          </div>
        </div>
        <SegmentedControl
          aria-label="Time span"
          value={span}
          onChange={(value) => setSpan(value === 'week' ? 'week' : 'day')}
          data={[
            { value: 'day', label: '24 hours' },
            { value: 'week', label: '7 days' },
          ]}
        />
      </div>
      <p className="small dim">
        {span === 'day' ? 'Since' : 'From'} {bucketName(points[0]?.at ?? received.now, unit)}, in your time zone. Invoices that
        you create on a node yourself are not counted.
      </p>
      <div className="chart-space">
        {total === 0 ? (
          <p className="dim chart-empty">Nothing was received in this period.</p>
        ) : (
          <Suspense fallback={<Loading height={HEIGHT} />}>
            <Chart points={points} unit={unit} />
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
    </section>
  )
}
