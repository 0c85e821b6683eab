import { TextInput } from '@mantine/core'
import type { ActivitySubjects } from '../api/activity.ts'
import type { DatePeriod } from '../text/days.ts'
import { periodError } from '../text/filter-errors.ts'
import { distinctNames } from '../text/node-names.ts'

export type Choice = { value: string; label: string }
export const ANY: Choice = { value: '', label: 'Any' }

/** The URL may name something that is not in the list, such as a deleted node. */
export const withChosen = (choices: Choice[], chosen: string | undefined): Choice[] =>
  chosen === undefined || choices.some(({ value }) => value === chosen) ? choices : [...choices, { value: chosen, label: chosen }]

/**
 * An option cannot contain `<bdi>`, so invisible characters isolate the name. A right-to-left name would move the word after it.
 */
export const choicesOf = (subjects: ActivitySubjects['nodes'], gone: 'deleted' | 'revoked'): Choice[] => {
  const names = distinctNames(subjects)
  return subjects.map(({ id, name, isGone }) => ({
    value: id,
    label: `\u2068${names.get(id) ?? name}\u2069${isGone ? ` (${gone})` : ''}`,
  }))
}

/** Two dates, both included. */
export function DateFields({ period, onChange }: { period: DatePeriod; onChange: (change: DatePeriod) => void }) {
  const field = (name: 'from' | 'to', label: string) => (
    <TextInput
      type="date"
      label={label}
      value={period[name] ?? ''}
      error={name === 'to' && periodError(period)}
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
