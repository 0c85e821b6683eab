import { Button, Group, NumberInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { CreditEntry, CreditSummary, Me, TopUp } from '../../api/types.ts'
import { Amount } from '../../components/amount.tsx'
import { InvoiceCard } from '../../components/invoice-card.tsx'
import { Problem } from '../../components/problem.tsx'
import { useNow } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { lastsUntil } from '../../text/runway.ts'
import { debtAndOneDay } from './debt.ts'

const PRESETS = [1_000, 10_000, 50_000, 100_000]
const USUAL = 10_000

type Props = { me: Me; credit: CreditSummary; entries: CreditEntry[] }

export function TopUpPanel({ me, credit, entries }: Props) {
  const debt = debtAndOneDay(credit, me.nodePriceSatPerDay)
  // Null: the debt and a day, which grow while the page is open.
  const [chosen, setChosen] = useState<number | string | null>(debt && debt.sat > USUAL ? null : USUAL)
  const amount = chosen ?? debt?.sat ?? USUAL
  const [topUp, setTopUp] = useState<TopUp | null>(null)
  const now = useNow(60)
  const create = useAction(async () => {
    setTopUp(await api.post<TopUp>('/credit/top-ups', { amountSat: Number(amount) }))
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void create.run()
  }
  const choose = (sat: number | null) => {
    setChosen(sat)
    create.onEdit()
  }
  const isPossible = Number(amount) > 0
  const untilWith = (sat: number) =>
    lastsUntil(credit.balanceMsat + sat * 1000, credit.nodesThatCost * me.nodePriceSatPerDay * 1000, now)
  return (
    <section className="card no-print" aria-labelledby="top-up">
      <h2 id="top-up">Top up</h2>
      <fieldset className="presets">
        <legend className="small dim">
          {credit.nodesThatCost === 0
            ? 'No node is being charged now, so the credit would not decrease.'
            : `With the credit you have now, and current usage: ${credit.nodesThatCost} running node${credit.nodesThatCost === 1 ? '' : 's'}.`}
        </legend>
        {debt && (
          <button type="button" className="preset" aria-pressed={Number(amount) === debt.sat} onClick={() => choose(null)}>
            <Amount sat={debt.sat} />
            <span className="small dim">{debt.label}</span>
          </button>
        )}
        {PRESETS.filter((sat) => sat !== debt?.sat).map((sat) => (
          <button key={sat} type="button" className="preset" aria-pressed={Number(amount) === sat} onClick={() => choose(sat)}>
            <Amount sat={sat} />
            {untilWith(sat) && <span className="small dim">{untilWith(sat)}</span>}
          </button>
        ))}
      </fieldset>
      <form onSubmit={submit} onChange={create.onEdit}>
        <Group align="flex-end">
          <NumberInput label="Amount in sat" min={1} value={amount} onChange={setChosen} w={180} thousandSeparator={' '} />
          <Button type="submit" loading={create.isPending} disabled={!isPossible}>
            Create invoice
          </Button>
        </Group>
      </form>
      {isPossible && ![debt?.sat, ...PRESETS].includes(Number(amount)) && untilWith(Number(amount)) && (
        <p className="small dim">
          With <Amount sat={Number(amount)} /> more, your credit {untilWith(Number(amount))}.
        </p>
      )}
      <Problem error={create.error} what="The invoice was not created." />
      {topUp && (
        <Waiting
          key={topUp.paymentHash}
          topUp={topUp}
          isSandbox={me.isSandbox}
          isPosted={entries.some(({ kind, reference }) => kind === 'top_up' && reference === topUp.paymentHash)}
        />
      )}
    </section>
  )
}

/** `isPosted`: the ledger on this page has the top-up. The query for the invoice may be older, and must not contradict the ledger. */
function Waiting({ topUp, isSandbox, isPosted }: { topUp: TopUp; isSandbox: boolean; isPosted: boolean }) {
  const { data, refetch } = useQuery({
    queryKey: ['top-up', topUp.paymentHash],
    queryFn: async ({ signal }) => {
      const now = await api.get<TopUp>(`/credit/top-ups/${topUp.paymentHash}`, { signal })
      if (now.settledAt !== null) {
        void queryClient.invalidateQueries({ queryKey: ['credit'] })
        void queryClient.invalidateQueries({ queryKey: ['overview'] })
      }
      return now
    },
    initialData: topUp,
    refetchInterval: (query) => (query.state.data?.settledAt == null && !isPosted ? 2000 : false),
  })
  const isPaid = isPosted || data.settledAt !== null
  return (
    <div className="spaced">
      <InvoiceCard
        invoice={topUp.invoice}
        expiresAt={topUp.expiresAt}
        isSandbox={isSandbox}
        paid={isPaid ? <Amount sat={data.amountSat} /> : null}
        onPaidHere={() => void refetch()}
      >
        {!isPaid && (
          <div>
            Pay <Amount sat={topUp.amountSat} /> with any Lightning wallet.
          </div>
        )}
      </InvoiceCard>
    </div>
  )
}
