import { Button, Group, NumberInput, Stack, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { invoiceExpiresAtSeconds, readInvoice } from '../../../../protocol/src/bolt11.ts'
import { api } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { DashboardNode, Me, NodeInvoice } from '../../api/types.ts'
import { Amount, MsatAmount } from '../../components/amount.tsx'
import { InvoiceCard } from '../../components/invoice-card.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'

type Props = { node: DashboardNode; me: Me }

export function NodeInvoicePanel({ node, me }: Props) {
  const [amount, setAmount] = useState<number | string>('')
  const [description, setDescription] = useState('')
  const [invoice, setInvoice] = useState<NodeInvoice | null>(null)
  const create = useAction(async () => {
    const body = { description: description.trim(), ...(Number(amount) > 0 ? { amountSat: Number(amount) } : {}) }
    setInvoice(await api.post<NodeInvoice>(`/nodes/${node.id}/invoices`, body))
    setAmount('')
    setDescription('')
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void create.run()
  }
  if (node.status !== 'ready') return <p className="note">You can create an invoice when the node is ready.</p>
  return (
    <div className="stack">
      <section className="card" aria-labelledby="new-invoice">
        <h2 id="new-invoice">Create an invoice</h2>
        <form onSubmit={submit} onChange={create.onEdit}>
          <Stack gap="md">
            <NumberInput
              className="number-field"
              label="Amount in sat"
              description="Leave empty to let the payer choose."
              min={1}
              value={amount}
              onChange={setAmount}
            />
            <TextInput
              label="Description"
              dir="auto"
              description="Shown to the payer."
              required
              maxLength={128}
              autoComplete="off"
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
            />
            <Problem error={create.error} what="The invoice was not created." />
            <Group>
              <Button type="submit" loading={create.isPending}>
                Create invoice
              </Button>
            </Group>
          </Stack>
        </form>
      </section>
      {invoice && <Waiting key={invoice.paymentHash} node={node} invoice={invoice} isSandbox={me.isSandbox} />}
    </div>
  )
}

function Waiting({ node, invoice, isSandbox }: { node: DashboardNode; invoice: NodeInvoice; isSandbox: boolean }) {
  const { data, refetch } = useQuery({
    queryKey: ['nodes', node.id, 'invoice', invoice.paymentHash],
    queryFn: ({ signal }) =>
      api.get<{ isPaid: boolean; receivedSat: number }>(`/nodes/${node.id}/invoices/${invoice.paymentHash}`, { signal }),
    // Only gateway payments cause events, so poll this invoice until it is paid.
    refetchInterval: (query) => (query.state.data?.isPaid ? false : 2000),
  })
  const read = readInvoice(invoice.invoice)
  const expiresAt = read && invoiceExpiresAtSeconds(read)
  return (
    <section className="card" aria-labelledby="invoice-title">
      <h2 id="invoice-title">Invoice</h2>
      <InvoiceCard
        invoice={invoice.invoice}
        expiresAt={expiresAt}
        isSandbox={isSandbox}
        paid={data?.isPaid ? <Amount sat={data.receivedSat} /> : null}
        onPaidHere={() => {
          void refetch()
          void queryClient.invalidateQueries({ queryKey: ['nodes', node.id] })
        }}
      >
        {read && (
          <dl className="facts">
            <dt>Amount</dt>
            <dd>{read.amountMsat === undefined ? 'chosen by the payer' : <MsatAmount msat={read.amountMsat} />}</dd>
            <dt>Description</dt>
            <dd dir="auto">{read.description ?? 'only its hash is in the invoice'}</dd>
          </dl>
        )}
      </InvoiceCard>
    </section>
  )
}
