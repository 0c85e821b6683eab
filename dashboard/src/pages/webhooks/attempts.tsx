import type { Delivery } from '../../api/types.ts'
import { Time } from '../../components/time.tsx'
import { Outcome } from './outcome.tsx'

/** Newest first, because the newest attempt explains the status. */
export function Attempts({ of, isUnfolded = false }: { of: Delivery['attempts']; isUnfolded?: boolean }) {
  const newestFirst = of.map((attempt, index) => ({ ...attempt, nth: index + 1 })).reverse()
  return (
    <details className="attempts" open={isUnfolded}>
      <summary className="small">{of.length === 1 ? '1 attempt' : `${of.length} attempts`}</summary>
      <ol reversed>
        {newestFirst.map((attempt) => (
          <li key={attempt.nth}>
            <Time at={attempt.at} /> <Outcome attempt={attempt} />
          </li>
        ))}
      </ol>
    </details>
  )
}
