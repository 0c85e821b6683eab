import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { CreditUsage, LEDGER_KINDS as KINDS } from '../../../contract/src/dashboard/credit.ts'
import { type DatePeriod, dateIn, timesOf } from '../text/days.ts'
import { API, api } from './client.ts'
import { creditChangesAt, untilNext } from './deadlines.ts'
import { parameters } from './queries.ts'
import type { Credit } from './types.ts'

export type { CreditUsage }
export type LedgerKind = (typeof KINDS)[number]
/** Not imported from the contract, because that would also load its schemas. */
export const LEDGER_KINDS: LedgerKind[] = ['usage', 'top_up', 'operator', 'signup']
/** The filter as it is in the URL. The dates are local, and both are included. */
export type LedgerFilter = DatePeriod & { kind?: LedgerKind | undefined }

export const ledgerFilterIn = (search: Record<string, unknown>): LedgerFilter => ({
  kind: LEDGER_KINDS.find((kind) => kind === search.kind),
  from: dateIn(search.from),
  to: dateIn(search.to),
})

export const isLedgerFiltered = (filter: LedgerFilter): boolean => Object.values(filter).some((value) => value !== undefined)

const parametersOf = (filter: LedgerFilter) => ({ kind: filter.kind, ...timesOf(filter) })

export const ledgerQuery = (filter: LedgerFilter) =>
  infiniteQueryOptions({
    queryKey: ['credit', 'ledger', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<Credit>(`/credit${parameters({ cursor: pageParam, ...parametersOf(filter) })}`, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
    refetchInterval: ({ state }) => {
      const pages = state.data?.pages ?? []
      return pages[0] ? untilNext([creditChangesAt(pages[0])], pages.length) : false
    },
    placeholderData: keepPreviousData,
  })

/** The key is not below "credit", which many events invalidate: this query adds up thousands of entries. */
export const usageQuery = (from: number) =>
  queryOptions({
    queryKey: ['credit-usage', from],
    queryFn: ({ signal }) => api.get<CreditUsage>(`/credit/usage?from=${from}`, { signal }),
    refetchInterval: 300_000,
  })

export const ledgerCsv = (filter: LedgerFilter): string => `${API}/credit/ledger.csv${parameters(parametersOf(filter))}`
export const usageCsv = (from: number): string => `${API}/credit/usage.csv?from=${from}`
