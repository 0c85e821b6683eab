import { useInfiniteQuery, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { activityQuery, keysQuery, meQuery, nodesQuery, webhooksQuery } from '../api/queries.ts'
import type { Activity } from '../api/types.ts'
import { EmptyState } from '../components/empty-state.tsx'
import { ButtonLink, TextLink } from '../components/layout/links.tsx'
import { Page } from '../components/layout/page.tsx'
import { LoadMore } from '../components/load-more.tsx'
import { Loading } from '../components/loading.tsx'
import { Problem } from '../components/problem.tsx'
import { Time } from '../components/time.tsx'
import { sats, satsOfMsat } from '../text/format.ts'
import { actorOf, sentenceOf } from '../text/sentences.ts'
import { createNodeCurl } from '../text/snippets.ts'

export function ActivityPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const activity = useInfiniteQuery(activityQuery)
  // Load names first: replacing ids with names later would shift the lines.
  const keys = useQuery(keysQuery)
  const isPending = [activity, useQuery(nodesQuery), keys, useQuery(webhooksQuery)].some((query) => query.isPending)
  const rows = isPending ? undefined : activity.data?.pages.flatMap((page) => page.activity)
  const knownKeys = [...(keys.data ?? []), ...keysIn(rows ?? [])]
  return (
    <Page title="Activity">
      {!activity.data && (
        <Problem error={activity.error} what="The activity log could not be loaded." onRetry={() => void activity.refetch()} />
      )}
      {isPending && <Loading height={480} />}
      {rows?.length === 0 && (
        <EmptyState
          sentence="Nothing has happened yet."
          action={
            <ButtonLink to="/nodes" search={{ create: true }}>
              Create a node
            </ButtonLink>
          }
          curl={createNodeCurl(me.publicUrl)}
        />
      )}
      {rows && rows.length > 0 && (
        <ul className="card list rows" aria-label="Activity">
          {rows.map((row) => (
            <Row key={row.id} row={row} userId={me.user?.id ?? null} keys={knownKeys} />
          ))}
        </ul>
      )}
      <LoadMore query={activity} />
    </Page>
  )
}

type NamedKey = { id: string; name: string }

/** Revoked keys are no longer listed, but the log has their names. */
const keysIn = (rows: Activity[]): NamedKey[] =>
  rows.flatMap(({ target, detail: { name } }) =>
    target?.startsWith('key_') && typeof name === 'string' ? [{ id: target, name }] : [],
  )

function Row({ row, userId, keys }: { row: Activity; userId: string | null; keys: NamedKey[] }) {
  const { before, after, namesTarget } = sentenceOf(row)
  // A warning concerns the account; no one caused it.
  const actor = row.action === 'credit.warning' || row.action === 'credit.exhausted' ? null : actorOf(row.actor, userId, keys)
  return (
    <li className="row">
      <span className="row-main">
        {before}
        {row.target && namesTarget && <Target row={row} target={row.target} />}
        {after}
        {amountOf(row.detail)}{' '}
        {actor && (
          <span className="dim">
            by <bdi>{actor}</bdi>
          </span>
        )}
      </span>
      <span className="small dim">
        <Time at={row.at} />
      </span>
    </li>
  )
}

/** The target's name if known, because an id means nothing to people. */
function Target({ row, target }: { row: Activity; target: string }) {
  const { data: nodes } = useQuery(nodesQuery)
  const { data: keys } = useQuery(keysQuery)
  const { data: webhooks } = useQuery(webhooksQuery)
  const node = nodes?.find(({ id }) => id === target)
  if (node) {
    return (
      <TextLink to="/nodes/$nodeId" params={{ nodeId: target }}>
        <bdi>{node.name}</bdi>
      </TextLink>
    )
  }
  const webhook = webhooks?.find(({ id }) => id === target)
  if (webhook) {
    return (
      <TextLink to="/developers/webhooks/$webhookId" params={{ webhookId: target }}>
        <span className="mono">{webhook.url}</span>
      </TextLink>
    )
  }
  if (target.startsWith('pay_')) {
    return (
      <TextLink to="/gateway/payments/$paymentId" params={{ paymentId: target }}>
        <span className="mono">{target}</span>
      </TextLink>
    )
  }
  const given = typeof row.detail.name === 'string' ? row.detail.name : keys?.find(({ id }) => id === target)?.name
  return given ? (
    <strong>
      <bdi>{given}</bdi>
    </strong>
  ) : (
    <span className="mono">{target}</span>
  )
}

function amountOf({ amountSat, amountMsat }: Activity['detail']): string {
  // The sentence already says whether it was added or deducted.
  if (typeof amountSat === 'number') return `: ${sats(Math.abs(amountSat))}`
  return typeof amountMsat === 'number' ? `: ${satsOfMsat(Math.abs(amountMsat))}` : ''
}
