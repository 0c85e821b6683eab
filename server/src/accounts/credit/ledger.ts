import { csvLineOf, csvTime } from '../../platform/csv.ts'
import { findNames } from '../../store/activity-search.ts'
import type { EntryRow } from '../../store/credit/credit.ts'
import { listCharges, listEntriesAfter, listUnposted, type UnpostedRow } from '../../store/credit/ledger.ts'
import type { Sql } from '../../store/db.ts'

const EXPORTED_AT_ONCE = 1_000
const QUARTER_HOUR_SECONDS = 900
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
 * Lines of CSV, read from the store while they are sent. The balance is added up here, so the file adds up by itself, whatever is entered
 * meanwhile.
 */
export async function* ledgerCsv(sql: Sql, accountId: string): AsyncGenerator<string> {
  yield csvLineOf(COLUMNS)
  let balanceMsat = 0
  for (let after = 0; ; ) {
    const entries = await listEntriesAfter(sql, accountId, after, EXPORTED_AT_ONCE)
    const lines = entries.map((entry) => {
      balanceMsat += entry.amountMsat
      const { id, createdAt, kind, amountMsat, reason, reference } = entry
      return csvLineOf([id, csvTime(createdAt), kind, amountMsat, balanceMsat, reason, nodeOf(entry), reference])
    })
    if (lines.length > 0) yield lines.join('')
    after = entries.at(-1)?.id ?? after
    if (entries.length < EXPORTED_AT_ONCE) return
  }
}

export type Usage = {
  nodes: { nodeId: string; nodeName: string | null; isDeleted: boolean; amountMsat: number; minutes: number }[]
  quarterHours: { at: number; amountMsat: number }[]
}
type Period = { from?: number | undefined; to?: number | undefined }

/** What nodes cost: the ledger's entries and what is not posted yet. Read in one snapshot, so that nothing is missing or counted twice. */
export async function usageOf(sql: Sql, accountId: string, { from, to }: Period, priceMsatPerDay: number): Promise<Usage> {
  const posted = await listCharges(sql, accountId, from, to)
  const unposted = priceMsatPerDay === 0 ? [] : await listUnposted(sql, accountId, priceMsatPerDay)
  const charges = [...posted, ...unposted.filter(({ since }) => isIn({ since }, { from, to })).map(chargeOf)]
  const names = await namesOf(sql, accountId, charges)
  const nodes = new Map<string, Usage['nodes'][number]>()
  const quarterHours = new Map<number, number>()
  for (const { nodeId, at, amountMsat, minutes } of charges) {
    const named = names.get(nodeId)
    const node = nodes.get(nodeId) ?? {
      nodeId,
      nodeName: named?.name ?? null,
      isDeleted: named?.isGone ?? true,
      amountMsat: 0,
      minutes: 0,
    }
    nodes.set(nodeId, { ...node, amountMsat: node.amountMsat + amountMsat, minutes: node.minutes + minutes })
    quarterHours.set(at, (quarterHours.get(at) ?? 0) + amountMsat)
  }
  return {
    nodes: [...nodes.values()].sort((one, other) => other.amountMsat - one.amountMsat),
    quarterHours: [...quarterHours].map(([at, amountMsat]) => ({ at, amountMsat })).sort((one, other) => one.at - other.at),
  }
}

const isIn = ({ since }: Pick<UnpostedRow, 'since'>, { from = 0, to = Number.POSITIVE_INFINITY }: Period): boolean =>
  since >= from && since < to

const chargeOf = ({ nodeId, since, amountMsat, minutes }: UnpostedRow) => ({
  nodeId,
  at: since - (since % QUARTER_HOUR_SECONDS),
  amountMsat,
  minutes,
})
