import { Button, NativeSelect, TextInput } from '@mantine/core'
import { IconFilter, IconSearch, IconX } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type ComponentProps, useEffect, useRef, useState } from 'react'
import { subjectsQuery } from '../../api/activity.ts'
import { isFiltered, PAYMENT_STATES, type PaymentFilter, type PaymentState } from '../../api/payments.ts'
import { nodesQuery } from '../../api/queries.ts'
import { ANY, choicesOf, withChosen } from '../../components/filter-fields.tsx'
import { amountError, periodError, rangeError, wholeSat } from '../../text/filter-errors.ts'
import { PROTOCOL_NAMES } from '../../text/format.ts'
import { distinctNames } from '../../text/node-names.ts'
import { PERIODS, periodName } from '../../text/periods.ts'
import { NamedNodes } from './named-nodes.tsx'

const STATE_NAMES: Record<PaymentState, string> = {
  received: 'Received (all paid)',
  unfulfilled: 'Paid, got nothing',
  undelivered: 'Paid, not delivered',
  delivering: 'Delivering',
  delivered: 'Delivered',
  unpaid: 'Unpaid',
  expired: 'Expired',
}

export function Filters() {
  const place = useSearch({ from: '/app/gateway' })
  const navigate = useNavigate({ from: '/gateway' })
  const { data: nodes = [] } = useQuery(nodesQuery)
  const { data: subjects = { keys: [] } } = useQuery(subjectsQuery)
  const { q, state, period, from, to, nodeId, protocol, keyId, min, max } = place
  const hasMore = [protocol, keyId, min, max].some((value) => value !== undefined)
  const [isOpen, setOpen] = useState(hasMore)
  /** Another selection begins at its first page. */
  const set = (change: PaymentFilter) =>
    void navigate({ search: (before) => ({ ...before, cursor: undefined, after: undefined, ...change }), replace: true })

  return (
    <search className="payment-filters" aria-label="Filter payments">
      <TypedInput
        className="wide"
        label="Search"
        type="search"
        placeholder="Description, id, payment hash, invoice"
        leftSection={<IconSearch size={16} aria-hidden />}
        rightSection={<kbd aria-hidden>/</kbd>}
        aria-keyshortcuts="/"
        maxLength={2_000}
        dir="auto"
        typed={q ?? ''}
        onTyped={(text) => set({ q: text.trim() === '' ? undefined : text })}
      />
      <NativeSelect
        label="Status"
        value={state ?? ''}
        data={[ANY, ...PAYMENT_STATES.map((one) => ({ value: one, label: STATE_NAMES[one] }))]}
        onChange={({ currentTarget: { value } }) => set({ state: PAYMENT_STATES.find((one) => one === value) })}
      />
      <NativeSelect
        label="Period"
        value={period ?? ''}
        data={[{ value: '', label: 'Any time' }, ...PERIODS.map((one) => ({ value: one, label: periodName(one, new Date()) }))]}
        onChange={({ currentTarget: { value } }) => {
          const chosen = PERIODS.find((one) => one === value)
          set({ period: chosen, ...(chosen === 'custom' ? {} : { from: undefined, to: undefined }) })
        }}
      />
      {period === 'custom' && (
        <>
          <TypedInput label="From" type="date" typed={from ?? ''} onTyped={(date) => set({ from: date || undefined })} />
          <TypedInput
            label="To"
            type="date"
            error={periodError({ from, to })}
            typed={to ?? ''}
            onTyped={(date) => set({ to: date || undefined })}
          />
        </>
      )}
      <NativeSelect
        label="Node"
        value={nodeId ?? ''}
        data={withChosen([ANY, ...Array.from(distinctNames(nodes), ([value, label]) => ({ value, label }))], nodeId)}
        onChange={({ currentTarget: { value } }) => set({ nodeId: value || undefined })}
      />
      {isOpen && (
        <>
          <NativeSelect
            label="Protocol"
            value={protocol ?? ''}
            data={[ANY, ...Object.entries(PROTOCOL_NAMES).map(([value, label]) => ({ value, label }))]}
            onChange={({ currentTarget: { value } }) =>
              set({ protocol: value === 'l402' || value === 'mpp' || value === 'x402' ? value : undefined })
            }
          />
          <NativeSelect
            label="Created by API key"
            value={keyId ?? ''}
            data={withChosen([ANY, ...choicesOf(subjects.keys, 'revoked')], keyId)}
            onChange={({ currentTarget: { value } }) => set({ keyId: value || undefined })}
          />
          <TypedInput
            label="At least (sat)"
            inputMode="numeric"
            typed={min?.toString() ?? ''}
            errorOf={amountError}
            isCleared={!isFiltered(place)}
            onTyped={(text) => set({ min: wholeSat(text) })}
          />
          <TypedInput
            label="At most (sat)"
            inputMode="numeric"
            typed={max?.toString() ?? ''}
            error={rangeError(min, max)}
            errorOf={amountError}
            isCleared={!isFiltered(place)}
            onTyped={(text) => set({ max: wholeSat(text) })}
          />
        </>
      )}
      <div className="filter-actions">
        {!hasMore && (
          <Button
            variant="default"
            leftSection={<IconFilter size={16} aria-hidden />}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? 'Fewer filters' : 'More filters'}
          </Button>
        )}
        {isFiltered(place) && (
          <Button
            variant="subtle"
            leftSection={<IconX size={16} aria-hidden />}
            onClick={() => void navigate({ search: {}, replace: true })}
          >
            Clear filters
          </Button>
        )}
      </div>
      <NamedNodes nodes={nodes} search={q} chosenId={nodeId} onChoose={(id) => set({ nodeId: id, q: undefined })} />
    </search>
  )
}

const PAUSE_MS = 300

type TypedProps = Omit<ComponentProps<typeof TextInput>, 'value' | 'onChange'> & {
  typed: string
  onTyped: (text: string) => void
  /** What is wrong with the text, if anything. Such a text is not reported, so the list stays as it is. */
  errorOf?: (text: string) => string | undefined
  /** No filter is set. When this becomes true, invalid text is removed as well: it never became a filter. */
  isCleared?: boolean
}

/** Reports what was typed after a short pause, so that not every letter is a request. */
function TypedInput({ typed, onTyped, error, errorOf, isCleared = false, ...props }: TypedProps) {
  const [text, setText] = useState(typed)
  const wrong = errorOf?.(text)
  const isWrong = wrong !== undefined
  const reported = useRef(typed)
  const report = useRef(onTyped)
  report.current = onTyped
  // The filters were changed elsewhere, such as by the button that clears them.
  useEffect(() => {
    if (typed === reported.current) return
    reported.current = typed
    setText(typed)
  }, [typed])
  const isWrongNow = useRef(isWrong)
  isWrongNow.current = isWrong
  useEffect(() => {
    if (isCleared && isWrongNow.current) setText(reported.current)
  }, [isCleared])
  useEffect(() => {
    if (text === reported.current || isWrong) return
    const timer = setTimeout(() => {
      reported.current = text
      report.current(text)
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text, isWrong])
  return <TextInput {...props} error={wrong ?? error} value={text} onChange={({ currentTarget: { value } }) => setText(value)} />
}
