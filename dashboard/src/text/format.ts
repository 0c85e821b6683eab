import { currentUnit } from '../unit.ts'
import { clockTime } from './days.ts'
import { ENGLISH, LOCALES } from './locales.ts'

const THIN_SPACE = '\u2009'
const MINUS = '\u2212'

/** 1234567 → 1 234 567, with thin spaces. */
export function grouped(whole: number): string {
  const digits = Math.abs(Math.trunc(whole))
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, THIN_SPACE)
  return whole < 0 ? MINUS + digits : digits
}

/** "1 node", "1 234 nodes". */
export const counted = (count: number, one: string, many: string): string => `${grouped(count)} ${count === 1 ? one : many}`

/** In the unit that the person chose. */
export const sats = (amount: number): string => (currentUnit() === 'btc' ? btc(amount, 8) : `${grouped(amount)}${THIN_SPACE}sat`)

/** No digit is lost: remainders and differences of safe integers are exact, and so is a division without a remainder. */
function btc(amount: number, decimals: 8 | 11): string {
  const size = Math.trunc(Math.abs(amount))
  const rest = size % 10 ** decimals
  const digits = rest.toString().padStart(decimals, '0')
  return `${amount < 0 ? MINUS : ''}${grouped((size - rest) / 10 ** decimals)}.${digits}${THIN_SPACE}BTC`
}

/** Millisatoshis as satoshis, with decimals only if there are any; or in the unit that the person chose. */
export function satsOfMsat(msat: number): string {
  // Three more decimals for millisatoshis, if there are any: rounding would show an amount that nobody paid.
  if (currentUnit() === 'btc') return msat % 1000 === 0 ? btc(msat / 1000, 8) : btc(msat, 11)
  const whole = grouped(Math.trunc(Math.abs(msat) / 1000))
  const rest = Math.abs(msat) % 1000
  const fraction = rest === 0 ? '' : `.${rest.toString().padStart(3, '0').replace(/0+$/, '')}`
  return `${msat < 0 ? MINUS : ''}${whole}${fraction}${THIN_SPACE}sat`
}

const DAY_SECONDS = 86_400
const UNITS: [name: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', DAY_SECONDS],
  ['hour', 3600],
  ['minute', 60],
]

/** Never "tomorrow": a number of hours does not say on which calendar day a time is. */
const relativeFormat = new Intl.RelativeTimeFormat('en', { numeric: 'always' })

/** Something that was created a moment ago and lasts a day ends "in 24 hours", not "in 23 hours". */
const momentBefore = (unitSeconds: number): number => Math.min(unitSeconds / 12, 300)

/** Seconds since 1970 → "5 minutes ago", "in 47 hours". Days and longer units are used only from two on: "1 day" could be nearly two. */
export function relative(at: number, now: number): string {
  const away = at - now
  for (const [unit, seconds] of UNITS) {
    const least = seconds < DAY_SECONDS ? seconds : 2 * seconds
    const shown = away > 0 ? away + momentBefore(seconds) : away
    if (Math.abs(shown) >= least) return relativeFormat.format(Math.trunc(shown / seconds), unit)
  }
  return away > 10 ? `in ${Math.trunc(away)} seconds` : 'just now'
}

const DIGITS: Intl.DateTimeFormatOptions = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
}
const exactFormat = new Intl.DateTimeFormat(LOCALES, LOCALES[0] === ENGLISH ? { dateStyle: 'medium', timeStyle: 'long' } : DIGITS)

export const exact = (at: number): string => exactFormat.format(at * 1000)

const weekdayFormat = new Intl.DateTimeFormat(ENGLISH, { weekday: 'short' })
const dayFormat = new Intl.DateTimeFormat(ENGLISH, { weekday: 'short', day: 'numeric', month: 'short' })

/** The label of a chart bar in the viewer's time zone: "Sun 14:00", "Sun 15 Nov". */
export const bucketName = (at: number, unit: 'hour' | 'day'): string =>
  unit === 'hour' ? `${weekdayFormat.format(at * 1000)} ${clockTime(at)}` : dayFormat.format(at * 1000).replace(',', '')

/** Up to four months are shown in days: "about 3 months" would be wrong by up to two weeks. */
const leastOf = ([unit, length]: (typeof UNITS)[number]): number =>
  unit === 'year' ? 2 * length : unit === 'month' ? 4 * length : length
const unitOf = (seconds: number) => UNITS.find((unit) => seconds >= leastOf(unit))

/** Years are rounded, because half a year is too much to leave out. */
const roundsFrom = ([unit, length]: (typeof UNITS)[number]): number => (unit === 'year' ? length / 2 : 0)

/** "about 11 days". */
export function duration(seconds: number): string {
  const found = unitOf(seconds)
  if (!found) return 'less than a minute'
  const [unit, length] = found
  const count = Math.floor((seconds + roundsFrom(found)) / length)
  return `about ${grouped(count)} ${unit}${count === 1 ? '' : 's'}`
}

/** For a time that is running out: the seconds until `duration` returns another text. */
export function durationLasts(seconds: number): number {
  const found = unitOf(seconds)
  if (!found) return seconds + 1
  return Math.min((seconds + roundsFrom(found)) % found[1], seconds - leastOf(found)) + 1
}

/** A countdown such as "4:05", or "23 h 59 min" from an hour on. */
export function countdown(seconds: number): string {
  const left = Math.max(0, Math.floor(seconds))
  if (left >= 3600) return `${Math.floor(left / 3600)} h ${Math.floor((left % 3600) / 60)} min`
  return `${Math.floor(left / 60)}:${(left % 60).toString().padStart(2, '0')}`
}

/** "0 %" means none and "100 %" means all. Small shares have a decimal, because a long list consists of small shares. */
export function percent(part: number, whole: number): string {
  if (whole === 0 || part === 0) return '0 %'
  if (part === whole) return '100 %'
  const exactly = (part / whole) * 100
  if (exactly < 0.1) return '< 0.1 %'
  if (exactly < 9.95) return `${exactly.toFixed(1)} %`
  if (exactly > 99 && exactly < 100) return `${(Math.floor(exactly * 10) / 10).toFixed(1)} %`
  return `${exactly > 100 ? Math.ceil(exactly) : Math.round(exactly)} %`
}

/** The first and last characters of a long id. Show a copy button with the full id next to it. */
export const shortened = (text: string, ends = 8): string =>
  text.length <= 2 * ends + 1 ? text : `${text.slice(0, ends)}…${text.slice(-ends)}`

/** The value of a field for date and time, in the viewer's time zone and without seconds. */
export const toLocalInput = (at: number): string =>
  new Date(at * 1000 - new Date(at * 1000).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)

/** NaN if the field is incomplete. */
export const fromLocalInput = (value: string): number => new Date(value).getTime() / 1000

export const PROTOCOL_NAMES = { mpp: 'MPP', l402: 'L402', x402: 'x402' } as const
