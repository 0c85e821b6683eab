import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useRef } from 'react'
import { ApiError, api } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { Credit } from '../../api/types.ts'
import { Amount } from '../amount.tsx'
import { InvoiceCard } from '../invoice-card.tsx'
import { useNow } from '../time.tsx'

type Offer = { amountSat: number; invoice: string; expiresAt: number }

/** The invoice in an `insufficient_credit` error, if the service can receive payments. */
export function offerOf(error: unknown): Offer | null {
  if (!(error instanceof ApiError) || error.code !== 'insufficient_credit') return null
  const offer = error.details.topUp as Offer | undefined
  return offer?.invoice ? offer : null
}

/**
 * Shows the refusal until it is out of date, and lets the person pay the missing credit on the spot. The offer has no payment hash to poll,
 * so watch the ledger for the payment.
 */
export function MissingCredit({ offer, refusal, isSandbox }: { offer: Offer; refusal: ReactNode; isSandbox: boolean }) {
  const newest = useRef<number | null>(null)
  const { data: isPaid = false, refetch } = useQuery({
    queryKey: ['credit-arrival', offer.invoice],
    queryFn: async ({ signal }) => {
      const { entries } = await api.get<Credit>('/credit', { signal })
      newest.current ??= entries[0]?.id ?? 0
      const known = newest.current
      const hasCome = entries.some(({ id, kind }) => id > known && kind === 'top_up')
      if (hasCome) for (const key of ['credit', 'overview']) void queryClient.invalidateQueries({ queryKey: [key] })
      return hasCome
    },
    refetchInterval: (query) => (query.state.data ? false : 2000),
  })
  // After the expiry, the refusal and the card must no longer ask the person to pay.
  const isOver = useNow() >= offer.expiresAt
  return (
    <>
      {!isPaid && !isOver && refusal}
      <InvoiceCard
        invoice={offer.invoice}
        expiresAt={offer.expiresAt}
        isSandbox={isSandbox}
        paid={isPaid ? <Amount sat={offer.amountSat} /> : null}
        onPaidHere={() => void refetch()}
      >
        <div>
          {isPaid ? (
            'Your credit was topped up. Press Create again.'
          ) : isOver ? (
            'Press Create again for a new invoice.'
          ) : (
            <>
              You need <Amount sat={offer.amountSat} /> more credit. Pay here to continue.
            </>
          )}
        </div>
      </InvoiceCard>
    </>
  )
}
