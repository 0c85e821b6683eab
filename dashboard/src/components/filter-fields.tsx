import { TextInput } from '@mantine/core'
import type { DatePeriod } from '../text/days.ts'

export type Choice = { value: string; label: string }
export const ANY: Choice = { value: '', label: 'Any' }

/** The URL may name something that is not in the list, such as a deleted node. */
export const withChosen = (choices: Choice[], chosen: string | undefined): Choice[] =>
  chosen === undefined || choices.some(({ value }) => value === chosen) ? choices : [...choices, { value: chosen, label: chosen }]

/** Two dates, both included. */
export function DateFields({ period, onChange }: { period: DatePeriod; onChange: (change: DatePeriod) => void }) {
  const field = (name: 'from' | 'to', label: string) => (
    <TextInput
      type="date"
      label={label}
      value={period[name] ?? ''}
      onChange={({ currentTarget: { value } }) => onChange({ [name]: value || undefined })}
    />
  )
  return (
    <>
      {field('from', 'From')}
      {field('to', 'To')}
    </>
  )
}
