import { useQuery } from '@tanstack/react-query'
import { type KeyUsage, keyUsageQuery } from '../../api/developers.ts'
import type { ApiKey } from '../../api/types.ts'
import { TextLink } from '../../components/layout/links.tsx'
import { grouped } from '../../text/format.ts'
import { ENGLISH } from '../../text/locales.ts'
import { type DayOfUse, daysOf } from './days.ts'

const [HEIGHT, STEP, BAR] = [32, 6, 4]
const dayFormat = new Intl.DateTimeFormat(ENGLISH, { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' })
const nameOf = (day: string): string => dayFormat.format(new Date(day))
const counted = (count: number, one: string): string => `${grouped(count)} ${one}${count === 1 ? '' : 's'}`

/** How often a key was used, per day. */
export function KeyUse({ item }: { item: ApiKey }) {
  const { data, error } = useQuery(keyUsageQuery)
  return (
    <div className={item.lastUsedAt === null ? 'key-use' : 'key-use key-used'}>
      {data && <Use item={item} usage={data} />}
      {!data && error && <span className="dim">The usage could not be loaded.</span>}
    </div>
  )
}

function Use({ item, usage }: { item: ApiKey; usage: KeyUsage }) {
  const days = daysOf(item, usage)
  const known = days.filter((day): day is DayOfUse & { requests: number } => day.requests !== null)
  const requests = known.reduce((sum, day) => sum + day.requests, 0)
  const errors = known.reduce((sum, day) => sum + day.errors, 0)
  // A key that is older than the counts may have been used before counting began.
  const isPartial = known.length < days.length && days.find((day) => day.requests === null)?.isBeforeKey === false
  const period = isPartial ? `since ${nameOf(usage.since)}` : 'in 30 days'
  const sentence = `${counted(requests, 'request')} ${period}${errors > 0 ? `, ${counted(errors, 'error')}` : ''}`
  if (requests === 0) return <span className="dim">{item.lastUsedAt === null ? 'No requests yet' : `No requests ${period}`}</span>
  return (
    <>
      <Sparkline days={days} label={`${sentence}. One bar per day, in UTC.`} />
      <TextLink to="/developers/requests" search={{ keyId: item.id }}>
        {sentence}
      </TextLink>
    </>
  )
}

function Sparkline({ days, label }: { days: DayOfUse[]; label: string }) {
  const most = Math.max(1, ...days.map((day) => day.requests ?? 0))
  const tall = (count: number): number => (count === 0 ? 0 : Math.max(2, (count / most) * (HEIGHT - 2)))
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${days.length * STEP} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {days.map(({ day, requests, errors }, index) => {
        if (requests === null) return null
        const [all, bad] = [tall(requests), Math.min(tall(requests), tall(errors))]
        return (
          <g key={day}>
            <title>{`${nameOf(day)} (UTC): ${counted(requests, 'request')}, ${counted(errors, 'error')}`}</title>
            <rect className="base" x={index * STEP} y={HEIGHT - 1} width={BAR} height={1} />
            <rect className="use" x={index * STEP} y={HEIGHT - 1 - all} width={BAR} height={all - bad} />
            <rect className="errors" x={index * STEP} y={HEIGHT - 1 - bad} width={BAR} height={bad} />
          </g>
        )
      })}
    </svg>
  )
}
