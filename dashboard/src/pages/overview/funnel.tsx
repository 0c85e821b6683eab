import { UNFULFILLED_LATELY } from '../../api/payments.ts'
import type { Overview } from '../../api/types.ts'
import { Count } from '../../components/amount.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { percent } from '../../text/format.ts'

export function Funnel({ funnel }: { funnel: Overview['funnel'] }) {
  const steps: [name: string, count: number, explanation: string][] = [
    ['Issued', funnel.issued, 'challenges created'],
    // The words are those of a payment's timeline. "Paid" could mean either settled or validated.
    ['Settled', funnel.settled, 'the customer has paid: your node has received the money'],
    ['Validated', funnel.paid, 'the customer has come back with proof of payment'],
  ]
  return (
    <section className="card" aria-labelledby="funnel">
      <h2 id="funnel">Challenges in the last 7 days</h2>
      <ol className="rows">
        {steps.map(([name, count, explanation]) => (
          <li key={name} className="funnel-step" data-testid={`funnel-${name.toLowerCase()}`}>
            <div className="funnel-line">
              <strong>{name}</strong>
              <span>
                <Count of={count} />
                {funnel.issued > 0 && <span className="dim"> ({percent(count, funnel.issued)})</span>}
              </span>
            </div>
            <div className="bar" aria-hidden="true">
              {count > 0 && <span style={{ width: `${(count / Math.max(count, funnel.issued)) * 100}%` }} />}
            </div>
            <div className="small dim">{explanation}</div>
          </li>
        ))}
      </ol>
      <p className="small figure-note">
        <TextLink to="/gateway">All gateway payments</TextLink> ·{' '}
        <TextLink to="/gateway" search={UNFULFILLED_LATELY}>
          Paid, got nothing
        </TextLink>
      </p>
    </section>
  )
}
