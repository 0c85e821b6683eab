import { Button, Group, NumberInput, Table } from '@mantine/core'
import { useInfiniteQuery, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api } from '../api/client.ts'
import { creditQuery, meQuery, nodesQuery, queryClient } from '../api/queries.ts'
import type { Credit, CreditEntry, Me, TopUp } from '../api/types.ts'
import { Amount, MsatAmount } from '../components/amount.tsx'
import { InvoiceCard } from '../components/invoice-card.tsx'
import { Page } from '../components/layout/page.tsx'
import { LoadMore } from '../components/load-more.tsx'
import { Loading } from '../components/loading.tsx'
import { Problem } from '../components/problem.tsx'
import { StopNotice } from '../components/stop-notice.tsx'
import { Time } from '../components/time.tsx'
import { useAction } from '../components/use-action.ts'
import { creditLasts } from '../text/runway.ts'

export function CreditPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const credit = useInfiniteQuery(creditQuery)
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
            <TopUpPanel me={me} />
          ) : (
            <p className="note">This service does not sell credit. Ask the operator for some.</p>
          )}
          {entries.length > 0 ? <Ledger entries={entries} credit={summary} /> : <p className="note">No entries yet.</p>}
          <LoadMore query={credit} />
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
            nodes cost nothing.
          </>
        )}
      </p>
    </section>
  )
}

function TopUpPanel({ me }: { me: Me }) {
  const [amount, setAmount] = useState<number | string>(10_000)
  const [topUp, setTopUp] = useState<TopUp | null>(null)
  const create = useAction(async () => {
    setTopUp(await api.post<TopUp>('/credit/top-ups', { amountSat: Number(amount) }))
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void create.run()
  }
  return (
    <section className="card" aria-labelledby="top-up">
      <h2 id="top-up">Top up</h2>
      <form onSubmit={submit} onChange={create.onEdit}>
        <Group align="flex-end">
          <NumberInput label="Amount in sat" min={1} value={amount} onChange={setAmount} w={180} />
          <Button type="submit" loading={create.isPending} disabled={!(Number(amount) > 0)}>
            Create invoice
          </Button>
        </Group>
      </form>
      <Problem error={create.error} what="The invoice was not created." />
      {topUp && <Waiting key={topUp.paymentHash} topUp={topUp} isSandbox={me.isSandbox} />}
    </section>
  )
}

function Waiting({ topUp, isSandbox }: { topUp: TopUp; isSandbox: boolean }) {
  const { data, refetch } = useQuery({
    queryKey: ['top-up', topUp.paymentHash],
    queryFn: async ({ signal }) => {
      const now = await api.get<TopUp>(`/credit/top-ups/${topUp.paymentHash}`, { signal })
      if (now.settledAt !== null) {
        void queryClient.invalidateQueries({ queryKey: ['credit'] })
        void queryClient.invalidateQueries({ queryKey: ['overview'] })
      }
      return now
    },
    initialData: topUp,
    refetchInterval: (query) => (query.state.data?.settledAt == null ? 2000 : false),
  })
  return (
    <div className="spaced">
      <InvoiceCard
        invoice={topUp.invoice}
        expiresAt={topUp.expiresAt}
        isSandbox={isSandbox}
        paid={data.settledAt === null ? null : <Amount sat={data.amountSat} />}
        onPaidHere={() => void refetch()}
      >
        {data.settledAt === null && (
          <div>
            Pay <Amount sat={topUp.amountSat} /> with any Lightning wallet.
          </div>
        )}
      </InvoiceCard>
    </div>
  )
}

/** Shown in addition to the reason. */
const KINDS: Record<string, string> = { signup: 'Welcome credit', operator: 'By the operator', usage: 'Usage', top_up: 'Top-up' }

/** Adds up to the balance above to the millisatoshi, because unposted usage has its own line. */
function Ledger({ entries, credit }: { entries: CreditEntry[]; credit: Credit }) {
  const { data: nodes } = useQuery(nodesQuery)
  const nameOf = ({ reference }: CreditEntry) => nodes?.find((node) => reference?.startsWith(node.id))?.name
  return (
    <div className="card list">
      <Table verticalSpacing="sm" aria-label="Ledger">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>What</Table.Th>
            <Table.Th className="number">Amount</Table.Th>
            <Table.Th className="number from-460">Balance</Table.Th>
            <Table.Th>When</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {credit.unpostedMsat !== 0 && (
            <Table.Tr data-testid="unposted">
              <Table.Td>Usage not posted yet</Table.Td>
              <Table.Td className="number">
                <MsatAmount msat={-credit.unpostedMsat} />
              </Table.Td>
              <Table.Td className="number from-460">
                <MsatAmount msat={credit.balanceMsat} />
              </Table.Td>
              <Table.Td>now</Table.Td>
            </Table.Tr>
          )}
          {entries.map((entry) => (
            <Table.Tr key={entry.id}>
              <Table.Td className="breakable">
                {KINDS[entry.kind] ?? entry.kind}: <bdi>{entry.reason}</bdi>
                {nameOf(entry) && (
                  <>
                    {' '}
                    (<bdi>{nameOf(entry)}</bdi>)
                  </>
                )}
              </Table.Td>
              <Table.Td className="number">
                {entry.amountMsat > 0 ? '+' : ''}
                <MsatAmount msat={entry.amountMsat} />
              </Table.Td>
              <Table.Td className="number from-460">
                <MsatAmount msat={entry.balanceAfterMsat} />
              </Table.Td>
              <Table.Td>
                <Time at={entry.createdAt} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}
