import { Button, Group } from '@mantine/core'
import { IconWallet } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { api } from '../api/client.ts'
import { countdown } from '../text/format.ts'
import { CopyButton } from './copy-button.tsx'
import { Problem } from './problem.tsx'
import { QrCode } from './qr-code.tsx'
import { Snippet } from './snippet.tsx'
import { Success } from './status.tsx'
import { useNow } from './time.tsx'
import { useAction } from './use-action.ts'

type Props = {
  invoice: string
  paid: ReactNode | null
  expiresAt: number | undefined
  isSandbox: boolean
  onPaidHere: () => void
  children?: ReactNode
}

/** An invoice, and whether it is paid or has expired. The caller finds out when it is paid, and passes `paid`. */
export function InvoiceCard({ invoice, paid, expiresAt, isSandbox, onPaidHere, children }: Props) {
  const payHere = useAction(async () => {
    await api.post('/sandbox/pay', { invoice })
    onPaidHere()
  })
  const now = useNow()
  const isOver = expiresAt !== undefined && now >= expiresAt && !paid
  const isOpen = !paid && !isOver
  return (
    // A paid or expired invoice is not offered for payment.
    <div className={isOpen ? 'invoice' : undefined}>
      {isOpen && <QrCode text={invoice} label="QR code of the invoice" />}
      <div className="stack">
        <div role="status" aria-live="polite">
          {paid ? (
            <Success word="Paid">{paid}</Success>
          ) : (
            <span className="dim">{isOver ? 'This invoice has expired. Create a new one.' : 'Waiting for the payment…'}</span>
          )}
        </div>
        {expiresAt !== undefined && isOpen && <div className="small dim">Expires in {countdown(expiresAt - now)}</div>}
        {children}
        {isOpen && (
          <>
            <Snippet code={invoice} label="Invoice text" wraps canCopy={false} />
            <Group gap="xs">
              <CopyButton text={invoice} label="Copy invoice" withText />
              <Button
                component="a"
                href={`lightning:${invoice}`}
                variant="default"
                leftSection={<IconWallet size={16} aria-hidden />}
              >
                Open in wallet
              </Button>
            </Group>
          </>
        )}
        {isSandbox && isOpen && (
          <div>
            <Button loading={payHere.isPending} onClick={() => void payHere.run()}>
              Pay as a customer
            </Button>
            <p className="small dim">The sandbox has a test customer with play money.</p>
          </div>
        )}
        <Problem error={payHere.error} what="The invoice was not paid." />
      </div>
    </div>
  )
}
