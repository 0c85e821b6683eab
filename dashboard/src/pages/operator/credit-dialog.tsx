import { Button, Group, Modal, NumberInput, SegmentedControl, Stack, TextInput } from '@mantine/core'
import { useRef, useState } from 'react'
import { freshKey } from '../../api/client.ts'
import { giveCredit, type LedgerEntry, type OperatorAccountDetail } from '../../api/operator.ts'
import { Amount } from '../../components/amount.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'
import { sats } from '../../text/format.ts'

/** Enter, check, done. The key makes a repeat after a lost response safe, and changes with what was entered. */
export function CreditDialog({ account, onClose }: { account: OperatorAccountDetail; onClose: () => void }) {
  const [way, setWay] = useState<'give' | 'take'>('give')
  const [amount, setAmount] = useState<number | string>('')
  const [reason, setReason] = useState('')
  const [isChecking, setChecking] = useState(false)
  const [entry, setEntry] = useState<LedgerEntry | null>(null)
  const repeat = useRef({ of: '', key: '' })
  const amountSat = (way === 'give' ? 1 : -1) * Number(amount)
  const text = reason.trim()
  const save = useAction(async () => {
    const of = JSON.stringify([amountSat, text])
    if (repeat.current.of !== of) repeat.current = { of, key: freshKey() }
    setEntry(await giveCredit(account.id, amountSat, text, repeat.current.key))
  })
  const verb = way === 'give' ? 'Give' : 'Take'
  const title = (
    <>
      Credit of <bdi>{account.name}</bdi>
    </>
  )
  if (entry)
    return (
      <Modal opened onClose={onClose} title={title}>
        <Stack gap="md">
          <p role="status">
            {entry.amountSat < 0 ? 'Taken' : 'Given'}: <Amount sat={Math.abs(entry.amountSat)} />. The balance in the ledger is
            now{' '}
            <span className="operator-after">
              <Amount sat={entry.creditSat} />
            </span>
            . The owner sees the entry with its reason.
          </p>
          <Group justify="flex-end">
            <Button onClick={onClose}>Done</Button>
          </Group>
        </Stack>
      </Modal>
    )
  return (
    <Modal opened onClose={onClose} title={title} closeOnClickOutside={!save.isPending} closeOnEscape={!save.isPending}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (isChecking) void save.run()
          else setChecking(true)
        }}
      >
        <Stack gap="md">
          {isChecking ? (
            <>
              <p>
                {verb} <strong className="amount">{sats(Math.abs(amountSat))}</strong> {way === 'give' ? 'to' : 'from'}{' '}
                <bdi>{account.name}</bdi>
                {account.emails[0] && ` (${account.emails[0]})`}?
              </p>
              <p className="small">
                Reason, which the owner sees: “<bdi>{text}</bdi>”
              </p>
              <p className="note small">
                The balance in the ledger is <Amount sat={account.creditSat} /> now, and{' '}
                <Amount sat={account.creditSat + amountSat} /> afterwards.
              </p>
              <Problem
                error={save.error}
                what="The credit was not changed."
                again="Try again: if it worked the first time, nothing happens twice."
              />
            </>
          ) : (
            <>
              <SegmentedControl
                aria-label="Give or take"
                value={way}
                onChange={(value) => setWay(value === 'take' ? 'take' : 'give')}
                data={[
                  { value: 'give', label: 'Give credit' },
                  { value: 'take', label: 'Take credit' },
                ]}
              />
              <NumberInput
                label="Amount in sat"
                required
                withAsterisk={false}
                min={1}
                max={9_007_199_254}
                value={amount}
                onChange={setAmount}
              />
              <TextInput
                label="Reason"
                description="The owner sees it in the ledger."
                required
                withAsterisk={false}
                maxLength={100}
                dir="auto"
                value={reason}
                onChange={(event) => setReason(event.currentTarget.value)}
              />
            </>
          )}
          <Group justify="flex-end">
            <Button variant="default" disabled={save.isPending} onClick={isChecking ? () => setChecking(false) : onClose}>
              {isChecking ? 'Back' : 'Cancel'}
            </Button>
            <Button type="submit" loading={save.isPending} disabled={!(Number(amount) >= 1) || text === ''}>
              {isChecking ? `${verb} ${sats(Math.abs(amountSat))}` : 'Continue'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
