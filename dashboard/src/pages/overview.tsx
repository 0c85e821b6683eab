import { IconCircle, IconCircleCheckFilled } from '@tabler/icons-react'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { meQuery, overviewQuery } from '../api/queries.ts'
import type { Me, Overview } from '../api/types.ts'
import { Count, MsatAmount } from '../components/amount.tsx'
import { ButtonLink, TextLink } from '../components/layout/links.tsx'
import { Page } from '../components/layout/page.tsx'
import { Loading } from '../components/loading.tsx'
import { Problem } from '../components/problem.tsx'
import { Received } from '../components/received.tsx'
import { percent } from '../text/format.ts'
import { creditLasts } from '../text/runway.ts'

export function OverviewPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const overview = useQuery(overviewQuery)
  return (
    <Page title="Overview">
      {overview.isPending && <Waiting />}
      {!overview.data && (
        <Problem error={overview.error} what="The overview could not be loaded." onRetry={() => void overview.refetch()} />
      )}
      {overview.data && <Loaded overview={overview.data} me={me} />}
    </Page>
  )
}

const Waiting = () => (
  <>
    <Loading height={230} />
    <div className="cards spaced">
      <Loading height={126} />
      <Loading height={126} />
    </div>
    <div className="two spaced">
      <Loading height={330} />
      <Loading height={230} />
    </div>
  </>
)

function Loaded({ overview, me }: { overview: Overview; me: Me }) {
  const { credit, nodes, received, funnel } = overview
  return (
    <>
      <Checklist checklist={overview.checklist} isSandbox={me.isSandbox} />
      <div className="cards spaced">
        <section className="card" aria-labelledby="credit">
          <h2 id="credit">Credit</h2>
          <div className="figure" data-testid="overview-credit">
            <MsatAmount msat={credit.balanceMsat} />
          </div>
          <p className="small dim figure-note">
            {creditLasts(credit)} <TextLink to="/credit">Credit and top-up</TextLink>
          </p>
        </section>
        <section className="card" aria-labelledby="nodes">
          <h2 id="nodes">Nodes</h2>
          <div className="figure" data-testid="overview-nodes">
            {nodes.total === 0 ? (
              'None yet'
            ) : (
              <>
                <Count of={nodes.ready} /> of <Count of={nodes.total} /> up
              </>
            )}
          </div>
          <p className="small dim figure-note">
            {nodesNote(nodes)} <TextLink to="/nodes">All nodes</TextLink>
          </p>
        </section>
      </div>
      <div className="two spaced">
        <Received received={received} />
        <Funnel funnel={funnel} />
      </div>
    </>
  )
}

function nodesNote({ ready, silent, total }: Overview['nodes']): string {
  if (total === 0) return 'A node receives your payments.'
  if (ready === total) return 'All ready.'
  const notes = []
  if (silent > 0) notes.push(silent === 1 ? '1 is not responding.' : `${silent} are not responding.`)
  const rest = total - ready - silent
  if (rest > 0) notes.push(rest === 1 ? '1 is stopped, starting or failed.' : `${rest} are stopped, starting or failed.`)
  return notes.join(' ')
}

function Funnel({ funnel }: { funnel: Overview['funnel'] }) {
  const steps: [name: string, count: number, explanation: string][] = [
    ['Issued', funnel.issued, 'challenges created'],
    ['Settled', funnel.settled, 'the node received the money'],
    ['Paid', funnel.paid, 'the credential was validated'],
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
                <Count of={count} /> <span className="dim">({percent(count, funnel.issued)})</span>
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
        <TextLink to="/gateway" search={{ state: 'undelivered' }}>
          Paid, not delivered
        </TextLink>
      </p>
    </section>
  )
}

function Checklist({ checklist, isSandbox }: { checklist: Overview['checklist']; isSandbox: boolean }) {
  const charge = isSandbox ? '/gateway/try-it' : '/developers'
  const steps: { isDone: boolean; text: string; action: ReactNode }[] = [
    {
      isDone: checklist.hasNode,
      text: 'Create a node to receive payments',
      action: (
        <ButtonLink to="/nodes" search={{ create: true }}>
          Create a node
        </ButtonLink>
      ),
    },
    {
      isDone: checklist.hasChallenge,
      text: 'Create your first challenge to ask for a payment',
      action: <ButtonLink to={charge}>{isSandbox ? 'Try it' : 'See how'}</ButtonLink>,
    },
    {
      isDone: checklist.hasPaidRequest,
      text: 'Have it paid, and validate or redeem the credential',
      action: <ButtonLink to={charge}>{isSandbox ? 'Try it' : 'See how'}</ButtonLink>,
    },
    {
      isDone: checklist.hasKey,
      text: 'Create an API key to do the same from your own program',
      action: <ButtonLink to="/developers">Create an API key</ButtonLink>,
    },
  ]
  const next = steps.find(({ isDone }) => !isDone)
  if (!next) return null
  return (
    <section className="card" aria-labelledby="next">
      <h2 id="next">What to do next</h2>
      <ol className="rows checklist">
        {steps.map((step) => (
          <li key={step.text} className="checklist-step">
            {step.isDone ? (
              <IconCircleCheckFilled size={22} className="done" role="img" aria-label="Done" />
            ) : (
              <IconCircle size={22} className="dim" role="img" aria-label="To do" />
            )}
            <span className={step.isDone ? 'row-main dim' : 'row-main'}>{step.text}</span>
            {step === next && step.action}
          </li>
        ))}
      </ol>
    </section>
  )
}
