import {
  IconBolt,
  IconCoins,
  IconInfoCircle,
  IconKey,
  IconTopologyStar3,
  IconUser,
  IconWebhook,
  type TablerIcon,
} from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { ActivityEntry } from '../../api/activity.ts'
import { TextLink } from '../../components/layout/links.tsx'
import { Time } from '../../components/time.tsx'
import { clockTime } from '../../text/days.ts'
import { sats, satsOfMsat } from '../../text/format.ts'
import { actorOf, sentenceOf } from '../../text/sentences.ts'
import { FoldRow } from './fold.tsx'

const ICONS: Record<string, TablerIcon> = {
  node: IconTopologyStar3,
  payment: IconBolt,
  payments: IconBolt,
  key: IconKey,
  credit: IconCoins,
  person: IconUser,
  link: IconUser,
  account: IconUser,
  webhook: IconWebhook,
}

type Props = { row: ActivityEntry; userId: string | null }

export function Row({ row, userId }: Props) {
  const Icon = ICONS[row.action.split('.')[0] ?? ''] ?? IconInfoCircle
  return (
    <li className="row activity-row">
      <Icon size={18} aria-hidden className="activity-icon" />
      <div className="row-main">{row.fold ? <FoldRow row={row} fold={row.fold} /> : <Sentence row={row} userId={userId} />}</div>
      <span className="small dim activity-time">
        {clockTime(row.at)} · <Time at={row.at} />
      </span>
    </li>
  )
}

export function Sentence({ row, userId }: Props) {
  const { before, after, namesTarget } = sentenceOf(row)
  // A warning concerns the account; no one caused it.
  const actor = row.action === 'credit.warning' || row.action === 'credit.exhausted' ? null : doneBy(row, userId)
  return (
    <>
      {before}
      {row.target && namesTarget && <Target row={row} target={row.target} />}
      {after}
      {row.nodeName !== null && (
        <>
          {' '}
          on <bdi>{row.nodeName}</bdi>
        </>
      )}
      {amountOf(row.detail)}
      {reasonOf(row.detail)} {actor && <span className="dim">by {actor}</span>}
    </>
  )
}

function doneBy({ actor, actorName }: ActivityEntry, userId: string | null): ReactNode {
  const known = actorName === null ? [] : [{ id: actor, name: actorName }]
  const who = actor !== userId && actorName !== null && !/^(key|node)_/.test(actor) ? actorName : actorOf(actor, userId, known)
  return who && <bdi>{who}</bdi>
}

/** What the entry is about, by its present name; with a link, if there is something to open. */
function Target({ row: { action, targetName, isTargetGone }, target }: { row: ActivityEntry; target: string }) {
  const name = targetName === null ? <span className="mono">{target}</span> : <bdi>{targetName}</bdi>
  if (target.startsWith('pay_')) {
    return (
      <TextLink to="/gateway/payments/$paymentId" params={{ paymentId: target }}>
        {name}
      </TextLink>
    )
  }
  if (targetName === null || isTargetGone) return <strong>{name}</strong>
  if (action.startsWith('node.')) {
    return (
      <TextLink to="/nodes/$nodeId" params={{ nodeId: target }}>
        {name}
      </TextLink>
    )
  }
  if (action.startsWith('webhook.')) {
    return (
      <TextLink to="/developers/webhooks/$webhookId" params={{ webhookId: target }}>
        {name}
      </TextLink>
    )
  }
  return action.startsWith('key.') ? <TextLink to="/developers">{name}</TextLink> : <strong>{name}</strong>
}

function amountOf({ amountSat, amountMsat }: ActivityEntry['detail']): string {
  // The sentence already says whether it was added or deducted.
  if (typeof amountSat === 'number') return `: ${sats(Math.abs(amountSat))}`
  return typeof amountMsat === 'number' ? `: ${satsOfMsat(Math.abs(amountMsat))}` : ''
}

const reasonOf = ({ reason, amountMsat }: ActivityEntry['detail']): ReactNode =>
  typeof reason === 'string' && typeof amountMsat === 'number' ? (
    <>
      {' '}
      (<bdi>{reason}</bdi>)
    </>
  ) : null
