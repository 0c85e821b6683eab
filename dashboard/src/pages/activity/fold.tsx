import { Button, VisuallyHidden } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { useId, useState } from 'react'
import { type ActivityEntry, foldQuery } from '../../api/activity.ts'
import { Count } from '../../components/amount.tsx'
import { Id } from '../../components/id.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { LoadMore } from '../../components/load-more.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { clockTime, spanName } from '../../text/days.ts'
import { foldCounts } from '../../text/sentences.ts'
import { groupsOf } from './groups.ts'

type Fold = NonNullable<ActivityEntry['fold']>
type Props = { row: ActivityEntry; fold: Fold }

/** Payments of one node within an hour, as one line that can be opened. */
export function FoldRow({ row, fold }: Props) {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const filter = useSearch({ from: '/app/activity' })
  const { nodeId, nodeName, target } = row
  return (
    <>
      <span>
        {target === null ? (
          <>
            <Count of={fold.payments} /> payments
          </>
        ) : (
          <TextLink to="/gateway/payments/$paymentId" params={{ paymentId: target }}>
            1 payment
          </TextLink>
        )}{' '}
        on <bdi>{nodeName ?? nodeId}</bdi> {spanName(fold.from, fold.to)}
        <span className="dim">
          : {foldCounts(fold, filter)}
          {row.actorName !== null && row.actor.startsWith('key_') && (
            <>
              {' '}
              with API key <bdi>{row.actorName}</bdi>
            </>
          )}
        </span>{' '}
        <Button size="compact-xs" variant="subtle" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide' : 'Show'}
          <VisuallyHidden component="span">
            &nbsp;the payments on <bdi>{nodeName ?? nodeId}</bdi>
          </VisuallyHidden>
        </Button>
      </span>
      <div id={id}>{isOpen && <Payments row={row} />}</div>
    </>
  )
}

function Payments({ row }: { row: ActivityEntry }) {
  const entries = useInfiniteQuery(foldQuery(useSearch({ from: '/app/activity' }), row))
  const rows = entries.data?.pages.flatMap((page) => page.activity)
  return (
    <>
      {!entries.data && (
        <Problem error={entries.error} what="The payments could not be loaded." onRetry={() => void entries.refetch()} />
      )}
      {entries.isPending && <Loading height={80} shape="list" />}
      <ul className="plain-list small">
        {groupsOf(rows ?? [], ({ target }) => target).map(([paymentId, ofPayment]) => (
          <li key={paymentId}>
            {paymentId && (
              <TextLink to="/gateway/payments/$paymentId" params={{ paymentId }}>
                <Id id={paymentId} />
              </TextLink>
            )}{' '}
            {[...ofPayment].reverse().map(({ id, at, action, actor, actorName }, place) => (
              <span key={id}>
                {place > 0 && ', '}
                {WORDS[action] ?? action} {clockTime(at)}
                {actorName !== null && actor.startsWith('key_') && (
                  <span className="dim">
                    {' '}
                    with API key <bdi>{actorName}</bdi>
                  </span>
                )}
              </span>
            ))}
          </li>
        ))}
      </ul>
      <LoadMore query={entries} />
    </>
  )
}

const WORDS: Record<string, string> = {
  'payment.settled': 'received',
  'payment.paid': 'validated',
  'payment.released': 'delivery failed and was released',
}
