import { Button, Checkbox, Group, Modal, NumberInput, SegmentedControl, Stack, TextInput } from '@mantine/core'
import { useState } from 'react'
import { type CreditAttempt, isSameCredit, openAttempts } from '../../api/credit-attempts.ts'
import { giveCredit, type LedgerEntry, type OperatorAccountDetail } from '../../api/operator.ts'
import { Amount } from '../../components/amount.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'
import { sats } from '../../text/format.ts'

/** If the outcome of an earlier change is unknown, the dialog begins with that change: sending it again cannot apply it twice. */
export function CreditDialog({ account, onClose }: { account: OperatorAccountDetail; onClose: () => void }) {
  const open = openAttempts(account.id)
  const [first] = useState(open[0])
  const [way, setWay] = useState<'add' | 'deduct'>(first && first.amountSat < 0 ? 'deduct' : 'add')
  const [amount, setAmount] = useState<number | string>(first ? Math.abs(first.amountSat) : '')
  const [reason, setReason] = useState(first?.reason ?? '')
  const [isChecking, setChecking] = useState(false)
  const [isAnother, setAnother] = useState(false)
  const [entry, setEntry] = useState<LedgerEntry | null>(null)
  const amountSat = (way === 'add' ? 1 : -1) * Number(amount)
  const text = reason.trim()
  const save = useAction(async () => setEntry(await giveCredit(account.id, amountSat, text)))
  const isThis = (attempt: CreditAttempt): boolean => isSameCredit(attempt, { accountId: account.id, amountSat, reason: text })
  const others = save.isPending ? [] : open.filter((attempt) => !isThis(attempt))
  const isUnknown = open.some(isThis)
  const back = () => {
    setChecking(false)
    setAnother(false)
  }
  const verb = way === 'add' ? 'Add' : 'Deduct'
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
            {entry.amountSat < 0 ? 'Deducted' : 'Added'}: <Amount sat={Math.abs(entry.amountSat)} />. The balance in the ledger is
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
                {verb} <strong className="amount">{sats(Math.abs(amountSat))}</strong> {way === 'add' ? 'to' : 'from'}{' '}
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
              {others.map((attempt) => (
                <p className="note small" key={attempt.key}>
                  You {attempt.amountSat < 0 ? 'deducted' : 'added'} <Amount sat={Math.abs(attempt.amountSat)} /> before (“
                  <bdi>{attempt.reason}</bdi>”). That may or may not have worked: look at the balance and the activity of the
                  account.
                </p>
              ))}
              {others.length > 0 && (
                <Checkbox
                  label="This is another change, in addition to that one"
                  checked={isAnother}
                  onChange={(event) => setAnother(event.currentTarget.checked)}
                />
              )}
              <Problem
                error={save.error}
                what={isUnknown ? 'An earlier try may or may not have worked.' : 'The credit was not changed.'}
                again="Try again: if it worked the first time, nothing happens twice."
              />
            </>
          ) : (
            <>
              {isUnknown && (
                <p className="note small">
                  You sent this before, and it may or may not have worked. Send it again unchanged: if it worked the first time,
                  nothing happens twice.
                </p>
              )}
              <SegmentedControl
                aria-label="Add or deduct"
                value={way}
                onChange={(value) => setWay(value === 'deduct' ? 'deduct' : 'add')}
                data={[
                  { value: 'add', label: 'Add credit' },
                  { value: 'deduct', label: 'Deduct credit' },
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
            <Button variant="default" disabled={save.isPending} onClick={isChecking ? back : onClose}>
              {isChecking ? 'Back' : 'Cancel'}
            </Button>
            <Button
              type="submit"
              loading={save.isPending}
              disabled={!(Number(amount) >= 1) || text === '' || (isChecking && others.length > 0 && !isAnother)}
            >
              {isChecking ? `${verb} ${sats(Math.abs(amountSat))}` : 'Continue'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
