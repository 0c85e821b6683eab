import {
  type ActivityFilter,
  type FoundActivity,
  findNames,
  listSubjects,
  type Named,
  searchActivity,
} from '../store/activity-search.ts'
import type { Sql } from '../store/db.ts'

const PAGE = 50
const READ_AT_ONCE = 500
/** Limits how many entries are read for one page. With folding, the page of a busy shop may therefore end early. */
const MOST_READ = 5_000
const MOST_SUBJECTS = 500
const FOLD_SECONDS = 3_600
const FOLDED = ['payment.settled', 'payment.paid']

export type Fold = { payments: number; entries: number; received: number; validated: number; from: number; to: number }
export type ActivityEntry = FoundActivity & {
  actorName: string | null
  targetName: string | null
  isTargetGone: boolean
  nodeName: string | null
  fold: Fold | null
}
export type ActivityPage = { activity: ActivityEntry[]; nextCursor: string | null }

/**
 * `hourStartSeconds`: the offset of the reader's hours from those of UTC, in time zones such as UTC+5:30. Without it, an hour
 * that spans the reader's midnight would belong to two days.
 */
export type PageOptions = { before: number | undefined; isFolded: boolean; hourStartSeconds: number }

/** Either an entry of the log, or several about payments of one node within one hour. */
type Group = [FoundActivity, ...FoundActivity[]]

/** A page of entries, or of groups of them. A group has the place of its newest entry. */
export async function activityPage(
  sql: Sql,
  accountId: string,
  filter: ActivityFilter,
  { before, isFolded, hourStartSeconds }: PageOptions,
): Promise<ActivityPage> {
  const groups: Group[] = []
  const folds = new Map<string, Group>()
  const readAtOnce = isFolded ? READ_AT_ONCE : PAGE + 1
  let last = before
  for (let read = 0; read < MOST_READ; ) {
    const rows = await searchActivity(sql, accountId, filter, last, readAtOnce)
    for (const row of rows) {
      const place = isFolded ? placeOf(row, hourStartSeconds) : undefined
      const fold = place === undefined ? undefined : folds.get(place)
      if (fold) fold.push(row)
      else if (groups.length === PAGE) return page(sql, accountId, groups, last)
      else {
        const group: Group = [row]
        groups.push(group)
        if (place !== undefined) folds.set(place, group)
      }
      last = row.id
    }
    read += rows.length
    if (rows.length < readAtOnce) return page(sql, accountId, groups, undefined)
  }
  return page(sql, accountId, groups, last)
}

const placeOf = ({ action, nodeId, at }: FoundActivity, hourStartSeconds: number): string | undefined =>
  FOLDED.includes(action) && nodeId !== null ? `${nodeId} ${Math.floor((at - hourStartSeconds) / FOLD_SECONDS)}` : undefined

async function page(sql: Sql, accountId: string, groups: Group[], last: number | undefined): Promise<ActivityPage> {
  const entries = groups.map(entryOf)
  const ids = new Set(entries.flatMap(({ actor, target, nodeId }) => [actor, target, nodeId].filter((id) => id !== null)))
  const names = new Map((await findNames(sql, accountId, [...ids])).map((named) => [named.id, named]))
  return { activity: entries.map((entry) => withNames(entry, names)), nextCursor: last === undefined ? null : String(last) }
}

function entryOf(group: Group): FoundActivity & { fold: Fold | null } {
  const [newest] = group
  if (group.length === 1) return { ...newest, fold: null }
  const times = group.map(({ at }) => at)
  const ids = new Set(group.map(({ target }) => target))
  const countOf = (action: string) => group.filter((row) => row.action === action).length
  const fold = {
    payments: ids.size,
    entries: group.length,
    received: countOf('payment.settled'),
    validated: countOf('payment.paid'),
    from: Math.min(...times),
    to: Math.max(...times),
  }
  const actors = new Set(group.map(({ actor }) => actor).filter((actor) => actor !== newest.nodeId))
  // If one key validated all of these payments, it is the actor.
  const actor = actors.size === 1 ? ([...actors][0] ?? newest.actor) : (newest.nodeId ?? newest.actor)
  return { ...newest, actor, action: 'payments', target: ids.size === 1 ? newest.target : null, detail: {}, fold }
}

function withNames(entry: FoundActivity & { fold: Fold | null }, names: Map<string, Named>): ActivityEntry {
  const nameOf = (id: string | null) => (id === null ? undefined : names.get(id))
  const target = nameOf(entry.target)
  return {
    ...entry,
    actorName: nameOf(entry.actor)?.name ?? null,
    targetName: target?.name ?? null,
    isTargetGone: target?.isGone ?? false,
    nodeName: nameOf(entry.nodeId)?.name ?? null,
  }
}

export const activitySubjects = (sql: Sql, accountId: string) => listSubjects(sql, accountId, MOST_SUBJECTS)
