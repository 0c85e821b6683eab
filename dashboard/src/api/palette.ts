import { queryOptions } from '@tanstack/react-query'
import { api } from './client.ts'
import type { PaymentPage } from './payments.ts'

const MOST = 5

/**
 * The newest payments with this id, hash, invoice or words. The request is aborted when the text changes. Nothing is sent for
 * `undefined`.
 */
export const paymentFinderQuery = (text: string | undefined) =>
  queryOptions({
    queryKey: ['payments', 'found', text ?? null],
    queryFn: ({ signal }) =>
      api.get<PaymentPage>(`/payments?${new URLSearchParams({ search: text ?? '', limit: String(MOST) })}`, { signal }),
    enabled: text !== undefined,
    // The person sees the error, and sends a new request by typing more.
    retry: false,
  })
