import { Button, Group, NumberInput, Stack, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { invoiceExpiresAtSeconds } from '../../../../protocol/src/bolt11.ts'
import { ApiError, api } from '../../api/client.ts'
import { liveQuery, queryClient } from '../../api/queries.ts'
import type { DashboardNode, Me, NodeSent } from '../../api/types.ts'
import { Amount, MsatAmount } from '../../components/amount.tsx'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Problem } from '../../components/problem.tsx'
import { Success } from '../../components/status.tsx'
import { useNow } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { destinationIn } from '../../text/destination.ts'
import { shortened } from '../../text/format.ts'
import { msatToSend } from '../../text/payments.ts'
import { InvoicePreview } from './invoice-preview.tsx'
import { OtherDestination } from './other-destination.tsx'
import { usePayee } from './use-payee.ts'

type Props = { node: DashboardNode; me: Me }

export function NodeSend({ node, me }: Props) {
  if (node.accessMode === 'limited') {
    return (
      <p className="note" data-testid="cannot-send">
        This dashboard cannot send from this node, because the node was created with limited access. You can send through the
        node’s own API with the full password you stored; see{' '}
        <TextLink to="." search={{ tab: 'connect' }}>
          Connect
        </TextLink>
        .
      </p>
    )
  }
  if (node.status !== 'ready') return <p className="note">You can send payments when the node is ready.</p>
  return <SendForm node={node} me={me} />
}

function SendForm({ node }: Props) {
  const [text, setText] = useState('')
  const [amount, setAmount] = useState<number | string>('')
  const [isAsking, setAsking] = useState(false)
  const [sent, setSent] = useState<NodeSent | null>(null)
  const { data: live } = useQuery(liveQuery(node.id))
  const now = useNow()
  const to = destinationIn(text)
  const invoice = to.kind === 'invoice' ? to.invoice : undefined
  const payee = usePayee(to.kind === 'invoice' ? to.text : undefined)
  const isExpired = invoice !== undefined && invoiceExpiresAtSeconds(invoice) <= now
  const isAmountOpen = invoice !== undefined && invoice.amountMsat === undefined
  const amountMsat = invoice ? msatToSend(invoice, Number(amount)) : 0

  const send = useAction(async () => {
    setSent(null)
    const body = { invoice: to.kind === 'invoice' ? to.text : '', ...(isAmountOpen ? { amountSat: Number(amount) } : {}) }
    try {
      const result = await api.post<NodeSent>(`/nodes/${node.id}/pay`, body)
      setSent(result)
      // There is nothing left to do with a paid invoice.
      if (result.outcome === 'sent' || result.outcome === 'already_sent') {
        setText('')
        setAmount('')
      }
    } catch (error) {
      // The payment may still go through. Calling it failed would invite a second payment.
      if (!(error instanceof ApiError) || !error.isUncertain) throw error
      setSent({ outcome: 'unknown', reason: null, amountSat: null, feeSat: null })
    } finally {
      setAsking(false)
      void queryClient.invalidateQueries({ queryKey: ['nodes', node.id] })
    }
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setAsking(true)
  }
  return (
    <section className="card" aria-labelledby="send">
      <h2 id="send">Send a payment</h2>
      <p className="small dim" data-testid="can-send">
        {live?.balanceSat == null ? (
          'The balance of the node is unknown at the moment.'
        ) : (
          <>
            The node has <Amount sat={live.balanceSat} />, from which the fee is paid too.
          </>
        )}
      </p>
      <form onSubmit={submit} onChange={send.onEdit}>
        <Stack gap="md">
          <Textarea
            label="Invoice"
            description="Starts with ln…"
            autosize={false}
            rows={4}
            required
            withAsterisk={false}
            spellCheck={false}
            autoComplete="off"
            value={text}
            error={text.trim() !== '' && !invoice && 'This is not a Lightning invoice.'}
            onChange={(event) => {
              setText(event.currentTarget.value)
              setSent(null)
            }}
          />
          {invoice && <InvoicePreview invoice={invoice} payee={payee} balanceSat={live?.balanceSat ?? null} />}
          {text.trim() !== '' && <OtherDestination to={to} />}
          {isAmountOpen && (
            <NumberInput
              className="number-field"
              label="Amount in sat"
              description="This invoice lets you choose the amount."
              min={1}
              value={amount}
              onChange={setAmount}
            />
          )}
          <Problem error={send.error} what="Nothing was sent." />
          <Outcome sent={sent} />
          <Group>
            <Button type="submit" disabled={!invoice || isExpired || !(amountMsat > 0)}>
              Send…
            </Button>
          </Group>
        </Stack>
      </form>
      {isAsking && (
        <ConfirmDialog
          title="Send this payment?"
          verb="Send now"
          isPending={send.isPending}
          onCancel={() => setAsking(false)}
          onConfirm={() => void send.run()}
        >
          <p>
            You send <MsatAmount msat={amountMsat} /> from <bdi>{node.name}</bdi>
            {typeof payee === 'object' && (
              <>
                {' '}
                to the node{' '}
                <span className="mono" title={payee.key}>
                  {shortened(payee.key)}
                </span>
              </>
            )}
            , plus a fee of about 4 sat and 0.4%. A payment cannot be undone.
          </p>
        </ConfirmDialog>
      )}
    </section>
  )
}

function Outcome({ sent }: { sent: NodeSent | null }) {
  return (
    <div role="status" aria-live="polite">
      {sent?.outcome === 'sent' && (
        <Success word="Sent">
          {sent.amountSat !== null && <Amount sat={sent.amountSat} />}
          {sent.feeSat !== null && (
            <span className="small dim">
              fee <Amount sat={sent.feeSat} />
            </span>
          )}
        </Success>
      )}
      {sent?.outcome === 'already_sent' && (
        <p className="note">
          <strong>This invoice was already paid</strong> from this node
          {sent.amountSat !== null && (
            <>
              : <Amount sat={sent.amountSat} />
            </>
          )}
          . Nothing was sent now.
        </p>
      )}
      {sent?.outcome === 'failed' && (
        <p className="problem">
          <strong>Not sent.</strong> Reason: <bdi>{(sent.reason ?? 'none given').replace(/\.$/, '')}</bdi>. No money left the
          node.
        </p>
      )}
      {sent?.outcome === 'unknown' && (
        <p className="note">
          This payment may or may not have been sent<bdi>{sent.reason ? `: ${sent.reason.replace(/\.$/, '')}` : ''}</bdi>. Check{' '}
          <TextLink to="." search={{ tab: 'payments' }}>
            Payments
          </TextLink>{' '}
          before you try again. The node never pays the same invoice twice.
        </p>
      )}
    </div>
  )
}
