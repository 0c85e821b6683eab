import { IconAlertTriangle, IconCircleCheck } from '@tabler/icons-react'
import type { TestResult } from '../../api/types.ts'
import { Snippet } from '../../components/snippet.tsx'
import { Status } from '../../components/status.tsx'
import { grouped } from '../../text/format.ts'

/** What the receiver responded, how long it took and, if the attempt failed, why. */
export function Outcome({ attempt: { status, durationMs, response, error } }: { attempt: TestResult }) {
  const word = status === null ? 'No response' : `Status ${status}`
  // For other statuses, the error says nothing more than the number.
  const isExplained = status === null || (status >= 300 && status < 400)
  return (
    <>
      <Status word={word} tone={error === null ? 'good' : 'bad'} icon={error === null ? IconCircleCheck : IconAlertTriangle} />{' '}
      <span className="small dim">after {grouped(durationMs)} ms</span>
      {error !== null && isExplained && <p className="small">{error}</p>}
      {response && <Snippet code={response} label="Beginning of the response" wraps />}
    </>
  )
}
