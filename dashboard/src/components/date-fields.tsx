import { TextInput } from '@mantine/core'
import type { DatePeriod } from '../text/days.ts'

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
