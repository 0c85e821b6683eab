import { SegmentedControl, VisuallyHidden } from '@mantine/core'
import { lazy, Suspense, useState } from 'react'
import type { Overview } from '../api-types.ts'
import { exact } from '../format.ts'
import { Amount } from './amount.tsx'
import { Loading } from './loading.tsx'

const HEIGHT = 220
const Chart = lazy(() => import('./chart.tsx'))

export function Received({ received }: { received: Overview['received'] }) {
  const [span, setSpan] = useState<'day' | 'week'>('day')
  const points = span === 'day' ? received.hourly : received.daily
  const total = span === 'day' ? received.last24hSat : received.last7dSat
  return (
    <section className="card" aria-labelledby="received">
      <div className="page-head received-head">
        <div>
          <h2 id="received" className="section-title">
            Received
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
      <div className="chart-space">
        {total === 0 ? (
          <p className="dim chart-empty">Nothing was received in this time.</p>
        ) : (
          <Suspense fallback={<Loading height={HEIGHT} />}>
            <Chart points={points} unit={span === 'day' ? 'hour' : 'day'} />
          </Suspense>
        )}
      </div>
      <VisuallyHidden>
        <table>
          <caption>Satoshis received per {span === 'day' ? 'hour' : 'day'}</caption>
          <thead>
            <tr>
              <th>From</th>
              <th>Received</th>
            </tr>
          </thead>
          <tbody>
            {points.map(({ at, sat }) => (
              <tr key={at}>
                <td>{exact(at)}</td>
                <td>{sat}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </VisuallyHidden>
    </section>
  )
}
