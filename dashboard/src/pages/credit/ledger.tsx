import { Button, NativeSelect, Table } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { ComponentProps } from 'react'
import { LEDGER_KINDS, type LedgerFilter, type LedgerKind, ledgerCsv } from '../../api/credit.ts'
import type { Credit, CreditEntry } from '../../api/types.ts'
import { Count, MsatAmount } from '../../components/amount.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { ANY, DateFields } from '../../components/filter-fields.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { LoadMore } from '../../components/load-more.tsx'
import { Time } from '../../components/time.tsx'
import { clockTime } from '../../text/days.ts'
import { grouped } from '../../text/format.ts'

const KINDS: Record<LedgerKind, string> = {
  usage: 'Usage',
  top_up: 'Top-up',
  operator: 'By the operator',
  signup: 'Welcome credit',
}

type Props = {
  query: ComponentProps<typeof LoadMore>['query'] & { dataUpdatedAt: number }
  credit: Credit
  entries: CreditEntry[]
  isFiltered: boolean
  /** Until the entries for the new filter arrive, those for the previous filter are shown. */
  isOld: boolean
}

/** The lines add up to the balance, exact to the millisatoshi, because unposted usage has its own line. */
export function Ledger({ query, credit, entries, isFiltered, isOld }: Props) {
  const filter = useSearch({ from: '/app/credit' })
  const hasUnposted = !isFiltered && !isOld && credit.unposted.length > 0
  return (
    <section className="ledger" aria-labelledby="ledger">
      <div className="page-head">
        <h2 id="ledger" className="section-title">
          Ledger
        </h2>
        <Button
          component="a"
          href={ledgerCsv(filter)}
          download="ledger.csv"
          variant="default"
          leftSection={<IconDownload size={16} aria-hidden />}
        >
          {isFiltered ? 'Export these as CSV' : 'Export all as CSV'}
        </Button>
      </div>
      <Filters />
      <p className="small dim" role="status">
        {isOld ? (
          'Loading…'
        ) : credit.matching ? (
          <>
            <Count of={credit.matching.count} /> {credit.matching.count === 1 ? 'entry' : 'entries'}, together{' '}
            <MsatAmount msat={credit.matching.amountMsat} />. The balance next to an entry is that of the whole ledger.
          </>
        ) : (
          'Each line shows the balance after it. The lines add up to the balance above.'
        )}
      </p>
      {entries.length === 0 && !hasUnposted && !isOld ? (
        <EmptyState
          art={isFiltered ? 'search' : 'ledger'}
          title={isFiltered ? 'No entries match these filters.' : 'No entries yet.'}
          sentence={isFiltered ? undefined : 'Top up above, or create a node.'}
          action={isFiltered && <TextLink to="/credit">Show all entries</TextLink>}
        />
      ) : (
        <div className={isOld ? 'card list old' : 'card list'} aria-busy={isOld}>
          <Table verticalSpacing="sm" aria-label="Ledger">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>What</Table.Th>
                <Table.Th className="number">Amount</Table.Th>
                <Table.Th className="number from-460">Balance</Table.Th>
                <Table.Th className="from-460">When</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {hasUnposted && <Unposted credit={credit} at={query.dataUpdatedAt / 1000} />}
              {entries.map((entry) => (
                <Entry key={entry.id} entry={entry} />
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
      {!isOld && <LoadMore query={query} />}
    </section>
  )
}

function Filters() {
  const filter = useSearch({ from: '/app/credit' })
  const navigate = useNavigate({ from: '/credit' })
  const set = (change: LedgerFilter) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  return (
    <search className="filters" aria-label="Filter the ledger">
      <NativeSelect
        label="Kind"
        value={filter.kind ?? ''}
        data={[ANY, ...LEDGER_KINDS.map((kind) => ({ value: kind, label: KINDS[kind] }))]}
        onChange={({ currentTarget: { value } }) => set({ kind: LEDGER_KINDS.find((kind) => kind === value) })}
      />
      <DateFields period={filter} onChange={set} />
    </search>
  )
}

/** Without this limit, 200 nodes would push the rest of the ledger far down. */
const NAMED_NODES = 10

function Unposted({ credit, at }: { credit: Credit; at: number }) {
  const others = credit.unposted.length - NAMED_NODES
  return (
    <Table.Tr data-testid="unposted">
      <Table.Td className="breakable">
        Used, not charged yet
        <ul className="plain-list small dim">
          {credit.unposted.slice(0, NAMED_NODES).map(({ nodeId, nodeName, since, minutes, amountMsat, isRunning }) => (
            <li key={nodeId}>
              <bdi>{nodeName ?? nodeId}</bdi>: {grouped(minutes)} minute{minutes === 1 ? '' : 's'} since {clockTime(since)}
              {isRunning ? '' : ', stopped'}, <MsatAmount msat={-amountMsat} />
            </li>
          ))}
          {others > 0 && (
            <li>
              and {grouped(others)} other node{others === 1 ? '' : 's'}
            </li>
          )}
        </ul>
      </Table.Td>
      <Amounts amountMsat={-credit.unpostedMsat} balanceMsat={credit.balanceMsat} />
      <Table.Td className="from-460">
        <Time at={at} />
      </Table.Td>
    </Table.Tr>
  )
}

function Entry({ entry }: { entry: CreditEntry }) {
  const kind = LEDGER_KINDS.find((one) => one === entry.kind)
  return (
    <Table.Tr>
      <Table.Td className="breakable">
        {kind ? KINDS[kind] : entry.kind}: <bdi>{entry.reason}</bdi>
        {entry.nodeId !== null && (
          <>
            {' '}
            (<bdi>{entry.nodeName ?? entry.nodeId}</bdi>)
          </>
        )}
        <div className="to-460 small dim">
          <Time at={entry.createdAt} />
        </div>
      </Table.Td>
      <Amounts amountMsat={entry.amountMsat} balanceMsat={entry.balanceAfterMsat} />
      <Table.Td className="from-460">
        <Time at={entry.createdAt} />
      </Table.Td>
    </Table.Tr>
  )
}

/** On a phone the balance is below the amount. */
const Amounts = ({ amountMsat, balanceMsat }: { amountMsat: number; balanceMsat: number }) => (
  <>
    <Table.Td className="number">
      {amountMsat > 0 ? '+' : ''}
      <MsatAmount msat={amountMsat} />
      <div className="to-460 small dim">
        balance <MsatAmount msat={balanceMsat} />
      </div>
    </Table.Td>
    <Table.Td className="number from-460">
      <MsatAmount msat={balanceMsat} />
    </Table.Td>
  </>
)
