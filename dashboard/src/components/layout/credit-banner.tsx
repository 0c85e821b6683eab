import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { overviewQuery } from '../../api/queries.ts'
import type { CreditSummary } from '../../api/types.ts'
import { duration } from '../../text/format.ts'
import { creditEnds } from '../../text/runway.ts'
import { StopNotice } from '../stop-notice.tsx'

export function CreditBanner() {
  const { data } = useQuery(overviewQuery)
  const credit = data?.credit
  if (!credit || credit.warning === 'none') return null
  return (
    <div className={credit.warning === 'week' ? 'banner banner-warn' : 'banner banner-bad'} role="status">
      <span>
        <Sentence credit={credit} />
      </span>
      <Link to="/credit">Top up</Link>
    </div>
  )
}

function Sentence({ credit }: { credit: CreditSummary }) {
  if (credit.warning !== 'empty')
    return (
      <>
        Your credit will last {duration(credit.runwaySeconds ?? 0)}. {creditEnds(credit.graceHours)}
      </>
    )
  if (credit.stopsAt === null) return <>Your credit is used up. Nodes cannot be created or started. Nothing is deleted.</>
  return (
    <>
      Your credit is used up. <StopNotice at={credit.stopsAt} graceHours={credit.graceHours} /> Stopped nodes stay stopped until
      you start them.
    </>
  )
}
