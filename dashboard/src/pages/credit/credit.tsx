import '../../styles/credit.css'
import '../../styles/filters.css'
import { useInfiniteQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { isLedgerFiltered, ledgerQuery } from '../../api/credit.ts'
import { meQuery } from '../../api/queries.ts'
import type { Credit, Me } from '../../api/types.ts'
import { Amount, MsatAmount } from '../../components/amount.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { StopNotice } from '../../components/stop-notice.tsx'
import { creditEnds, creditLasts } from '../../text/runway.ts'
import { Ledger } from './ledger.tsx'
import { TopUpPanel } from './top-up.tsx'
import { UsagePanel } from './usage.tsx'

export function CreditPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const filter = useSearch({ from: '/app/credit' })
  const credit = useInfiniteQuery(ledgerQuery(filter))
  const summary = credit.data?.pages[0]
  const entries = credit.data?.pages.flatMap((page) => page.entries) ?? []
  return (
    <Page title="Credit">
      {!credit.data && (
        <Problem error={credit.error} what="Your credit could not be loaded." onRetry={() => void credit.refetch()} />
      )}
      {credit.isPending && <Loading height={520} />}
      {summary && (
        <div className="stack">
          <Balance credit={summary} me={me} />
          {summary.canTopUp ? (
            <TopUpPanel me={me} credit={summary} entries={entries} />
          ) : (
            <p className="note">This service does not sell credit. Ask the operator to add credit.</p>
          )}
          <UsagePanel me={me} />
          <Ledger
            query={credit}
            credit={summary}
            entries={entries}
            isFiltered={isLedgerFiltered(filter)}
            isOld={credit.isPlaceholderData}
          />
        </div>
      )}
    </Page>
  )
}

function Balance({ credit, me }: { credit: Credit; me: Me }) {
  return (
    <section className="card" aria-labelledby="balance">
      <h2 id="balance">Balance</h2>
      <div className="figure" data-testid="credit-balance">
        <MsatAmount msat={credit.balanceMsat} />
      </div>
      <p>
        {creditLasts(credit)} {credit.stopsAt !== null && <StopNotice at={credit.stopsAt} />}
      </p>
      <p className="small dim">
        {me.nodePriceSatPerDay === 0 ? (
          'Nodes are free on this service.'
        ) : (
          <>
            A running node costs <Amount sat={me.nodePriceSatPerDay} /> a day, billed by the minute. Stopped, failed and deleted
            nodes cost nothing. {credit.stopsAt === null && creditEnds(credit.graceHours)}
          </>
        )}
      </p>
    </section>
  )
}
