import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { PaymentEvents, PaymentTotals } from '../../../contract/src/dashboard/payment-search.ts'
import type { GatewayPaymentDetails } from '../../../contract/src/dashboard/payments.ts'
import { PERIODS, type Period, rangeOf } from '../text/periods.ts'
import { API, api } from './client.ts'
import { paymentChangesAt, untilNext } from './deadlines.ts'
import type { GatewayPayment } from './types.ts'

export type { GatewayPaymentDetails, PaymentTotals }
export type PaymentEvent = PaymentEvents['events'][number]

export const PAYMENT_STATES = ['received', 'unfulfilled', 'undelivered', 'delivering', 'delivered', 'unpaid', 'expired'] as const
export type PaymentState = (typeof PAYMENT_STATES)[number]
const PROTOCOLS = ['l402', 'mpp', 'x402'] as const

/** The filters as they are in the URL. Undefined: not set. */
export type PaymentFilter = {
  q?: string | undefined
  state?: PaymentState | undefined
  period?: Period | undefined
  /** Local dates such as 2026-10-31, both included; only with the period `custom`. */
  from?: string | undefined
  to?: string | undefined
  nodeId?: string | undefined
  protocol?: (typeof PROTOCOLS)[number] | undefined
  keyId?: string | undefined
  min?: number | undefined
  max?: number | undefined
}
/** The filters and the page: the payments right before `cursor` in time (older), or right after `after` (newer). */
export type PaymentPlace = PaymentFilter & { cursor?: string | undefined; after?: string | undefined }

const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const amountIn = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined

export function paymentPlaceIn(search: Record<string, unknown>): PaymentPlace {
  return {
    // The router reads a text of digits as a number.
    q: typeof search.q === 'number' ? String(search.q) : textIn(search.q),
    state: PAYMENT_STATES.find((state) => state === search.state),
    period: PERIODS.find((period) => period === search.period),
    from: textIn(search.from),
    to: textIn(search.to),
    nodeId: textIn(search.nodeId),
    protocol: PROTOCOLS.find((protocol) => protocol === search.protocol),
    keyId: textIn(search.keyId),
    min: amountIn(search.min),
    max: amountIn(search.max),
    cursor: textIn(search.cursor),
    after: textIn(search.after),
  }
}

export const isFiltered = ({ cursor: _, after: __, ...filter }: PaymentPlace): boolean =>
  Object.values(filter).some((value) => value !== undefined)

function queryOf({ q, period, from, to, min, max, ...rest }: PaymentPlace, now = new Date()): string {
  const range = rangeOf(period, { from, to }, now)
  const values = { ...rest, search: q, ...range, minAmountSat: min, maxAmountSat: max }
  const set = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`
}

const filterOf = ({ cursor: _, after: __, ...filter }: PaymentPlace): PaymentFilter => filter

export type PaymentPage = { payments: GatewayPayment[]; nextCursor: string | null; previousCursor: string | null }

export const paymentsQuery = (place: PaymentPlace) =>
  queryOptions({
    queryKey: ['payments', 'list', place],
    queryFn: ({ signal }) => api.get<PaymentPage>(`/payments${queryOf(place)}`, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) => untilNext((data?.payments ?? []).map(paymentChangesAt)),
  })

/**
 * The key is not below `payments`, which every change invalidates: this query may read all payments of the account. It has no
 * placeholder data, because nobody could tell the sums of an earlier selection or day from the new ones.
 */
export function paymentTotalsQuery(place: PaymentPlace, now = new Date()) {
  const query = queryOf(filterOf(place), now)
  return queryOptions({
    queryKey: ['payment-totals', query],
    queryFn: ({ signal }) => api.get<PaymentTotals>(`/payment-totals${query}`, { signal }),
  })
}

/** Recent payments whose customers got nothing. The overview uses it for both the count and the link, so that they always agree. */
export const UNFULFILLED_LATELY: PaymentFilter = { state: 'unfulfilled', period: '7d' }

export const exportUrl = (place: PaymentPlace): string => `${API}/payments.csv${queryOf(filterOf(place))}`

export const paymentQuery = (id: string) =>
  queryOptions({
    queryKey: ['payments', 'one', id],
    queryFn: ({ signal }) => api.get<GatewayPaymentDetails>(`/payments/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state: { data } }) => (data ? untilNext([paymentChangesAt(data)]) : false),
  })

/** Attempts to deliver an event cause no event, so the list is read again when the next attempt is due. */
export const paymentEventsQuery = (id: string) =>
  queryOptions({
    queryKey: ['payments', 'one', id, 'events'],
    queryFn: async ({ signal }) =>
      (await api.get<PaymentEvents>(`/payments/${encodeURIComponent(id)}/events`, { signal })).events,
    refetchInterval: ({ state: { data } }) =>
      untilNext((data ?? []).flatMap(({ deliveries }) => deliveries.map(({ nextAttemptAt }) => nextAttemptAt))),
  })
