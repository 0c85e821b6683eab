import { csvLineOf, csvTime } from '../../platform/csv.ts'
import { Problem } from '../../problems.ts'
import { findNames } from '../../store/activity-search.ts'
import type { EntryRow } from '../../store/credit/credit.ts'
import { type LedgerFilter, listEntriesAfter, listUnposted, type UnpostedRow } from '../../store/credit/ledger.ts'
import { type QuarterHourRow, usageByNode, usageByQuarterHour, usageTimes } from '../../store/credit/usage-sums.ts'
import type { Sql } from '../../store/db.ts'

const EXPORTED_AT_ONCE = 1_000
const QUARTER_HOUR_SECONDS = 900
/** Adding up a longer period takes too long. The exported ledger has no such limit. */
const MAX_USAGE_DAYS = 92
const USAGE_COLUMNS = ['node_id', 'node_name', 'deleted', 'charged_minutes', 'amount_msat']
const COLUMNS = ['id', 'created_at', 'kind', 'amount_msat', 'balance_after_msat', 'reason', 'node_id', 'reference']

/** The node of a usage entry: its reference is the node and the minute in which the interval began. */
export const nodeOf = ({ kind, reference }: Pick<EntryRow, 'kind' | 'reference'>): string | null =>
  kind === 'usage' ? (reference?.split(' ')[0] ?? null) : null

/** Each with the name of its node, or null. */
export async function withNodeNames<T extends { nodeId: string | null }>(
  sql: Sql,
  accountId: string,
  rows: T[],
): Promise<(T & { nodeName: string | null })[]> {
  const names = await namesOf(sql, accountId, rows)
  return rows.map((row) => ({ ...row, nodeName: (row.nodeId && names.get(row.nodeId)?.name) || null }))
}

async function namesOf(sql: Sql, accountId: string, rows: { nodeId: string | null }[]) {
  const ids = new Set(rows.flatMap(({ nodeId }) => (nodeId === null ? [] : [nodeId])))
  return new Map(ids.size === 0 ? [] : (await findNames(sql, accountId, [...ids])).map((named) => [named.id, named]))
}

/**
 * Lines of CSV, read from the store while they are sent. The balances are those of the whole ledger, added up from the oldest entry, so the
 * file is consistent even if entries are added meanwhile.
 */
export async function* ledgerCsv(sql: Sql, accountId: string, filter: LedgerFilter): AsyncGenerator<string> {
  let balanceMsat = 0
  // Sent together with the first lines, because a response that has begun can no longer report that the store failed.
  let header = csvLineOf(COLUMNS)
  for (let after = 0; ; ) {
    const entries = await listEntriesAfter(sql, accountId, filter, after, EXPORTED_AT_ONCE)
    const lines = entries.map((entry) => {
      balanceMsat += entry.changeMsat
      const { id, createdAt, kind, amountMsat, reason, reference } = entry
      return csvLineOf([id, csvTime(createdAt), kind, amountMsat, balanceMsat, reason, nodeOf(entry), reference])
    })
    yield header + lines.join('')
    header = ''
    after = entries.at(-1)?.id ?? after
    if (entries.length < EXPORTED_AT_ONCE) return
  }
}

export type Usage = {
  nodes: { nodeId: string; nodeName: string | null; isDeleted: boolean; amountMsat: number; minutes: number }[]
  quarterHours: QuarterHourRow[]
}

/**
 * What each node has cost since `from`: the usage in the ledger, and the unposted usage, which counts as posted now. `sql` must read from
 * one snapshot, or usage that is posted meanwhile would be missing or counted twice.
 */
export async function usageOf(sql: Sql, accountId: string, from: number, priceMsatPerDay: number): Promise<Usage> {
  const times = await usageTimes(sql)
  if (from < times.now - MAX_USAGE_DAYS * 86_400)
    throw new Problem('bad_request', `The parameter "from" must be within the last ${MAX_USAGE_DAYS} days.`)
  // Both sums must begin at the same time, or they would differ.
  const start = from - (from % QUARTER_HOUR_SECONDS)
  const posted = await usageByNode(sql, accountId, start, times)
  const quarterHours = await usageByQuarterHour(sql, accountId, start, times)
  const unposted = priceMsatPerDay === 0 ? [] : await listUnposted(sql, accountId, priceMsatPerDay)
  const names = await namesOf(sql, accountId, [...posted, ...unposted])
  const nodes = new Map<string, Usage['nodes'][number]>()
  for (const { nodeId, amountMsat, minutes } of [...posted, ...unposted]) {
    const { name = null, isGone = true } = names.get(nodeId) ?? {}
    const known = nodes.get(nodeId) ?? { nodeId, nodeName: name, isDeleted: isGone, amountMsat: 0, minutes: 0 }
    nodes.set(nodeId, { ...known, amountMsat: known.amountMsat + amountMsat, minutes: known.minutes + minutes })
  }
  return {
    nodes: [...nodes.values()].sort((one, other) => other.amountMsat - one.amountMsat),
    quarterHours: unposted.length === 0 ? quarterHours : withUnposted(quarterHours, unposted, times.now),
  }
}

export const csvOfUsage = ({ nodes }: Usage): string =>
  csvLineOf(USAGE_COLUMNS) +
  nodes
    .map(({ nodeId, nodeName, isDeleted, minutes, amountMsat }) =>
      csvLineOf([nodeId, nodeName, isDeleted ? 'yes' : 'no', minutes, amountMsat]),
    )
    .join('')

function withUnposted(quarterHours: QuarterHourRow[], unposted: UnpostedRow[], at: number): QuarterHourRow[] {
  const unpostedMsat = unposted.reduce((sum, { amountMsat }) => sum + amountMsat, 0)
  const postedMsat = quarterHours.find((one) => one.at === at)?.amountMsat ?? 0
  return [...quarterHours.filter((one) => one.at !== at), { at, amountMsat: postedMsat + unpostedMsat }].sort(
    (one, other) => one.at - other.at,
  )
}
