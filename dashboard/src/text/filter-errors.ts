import { type DatePeriod, dateField } from './days.ts'

/** What is wrong with the values of filters, for a message at the field; undefined if nothing is. */

/** Digits in groups, however they are separated. Does not match 0.001, which is not a whole number. */
const GROUPED = /^[1-9]\d{0,2}(?:[\s.,'’_]\d{2,3})*[\s.,'’_]\d{3}$/
const MOST_DIGITS = 13

/** The amount that somebody typed, in sat. Undefined: it is not a whole number, or it is too large. */
export function wholeSat(typed: string): number | undefined {
  const text = typed.trim()
  const digits = GROUPED.test(text) ? text.replace(/\D/g, '') : text
  return /^\d+$/.test(digits) && digits.length <= MOST_DIGITS ? Number(digits) : undefined
}

export const amountError = (typed: string): string | undefined =>
  typed.trim() === '' || wholeSat(typed) !== undefined ? undefined : 'Enter a whole number of sat, 0 or more, such as 1500.'

/** Nothing can match, and an empty list does not say why. */
export function rangeError(min: number | undefined, max: number | undefined): string | undefined {
  return min !== undefined && max !== undefined && min > max ? 'This is less than “At least”, so no payment matches.' : undefined
}

export function periodError({ from, to }: DatePeriod): string | undefined {
  const [first, last] = [dateField(from), dateField(to)]
  return first !== undefined && last !== undefined && first > last ? 'The dates are reversed: “To” is before “From”.' : undefined
}
