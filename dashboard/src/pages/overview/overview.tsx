import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { meQuery, overviewQuery } from '../../api/queries.ts'
import type { Me, Overview } from '../../api/types.ts'
import { Count, MsatAmount } from '../../components/amount.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Received } from '../../components/received.tsx'
import { creditLasts } from '../../text/runway.ts'
import { Attention } from './attention.tsx'
import { Checklist } from './checklist.tsx'
import { Funnel } from './funnel.tsx'
import { Recent } from './recent.tsx'

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
    <div className="two">
      <Loading height={390} shape="chart" />
      <div className="stack">
        <Loading height={126} />
        <Loading height={126} />
      </div>
    </div>
    <div className="two spaced">
      <Loading height={330} shape="list" />
      <Loading height={330} />
    </div>
  </>
)

function Loaded({ overview, me }: { overview: Overview; me: Me }) {
  const { credit, nodes, funnel, recent } = overview
  return (
    <>
      <Checklist checklist={overview.checklist} isSandbox={me.isSandbox} />
      <Attention overview={overview} />
      <div className="two">
        <Received />
        <div className="stack side-cards">
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
      </div>
      <div className="two spaced">
        <Recent payments={recent} isSandbox={me.isSandbox} />
        <Funnel funnel={funnel} />
      </div>
    </>
  )
}

function nodesNote({ ready, silent, starting, stopped, failed, total }: Overview['nodes']): string {
  if (total === 0) return 'A node receives your payments.'
  if (ready === total) return 'All ready.'
  const others: [count: number, one: string, many: string][] = [
    [failed, 'has failed', 'have failed'],
    [silent, 'is not responding', 'are not responding'],
    [starting, 'is starting', 'are starting'],
    [stopped, 'is stopped', 'are stopped'],
  ]
  return others.flatMap(([count, one, many]) => (count > 0 ? `${count} ${count === 1 ? one : many}.` : [])).join(' ')
}
