import { graceGiven } from '../text/runway.ts'
import { Time, useNow } from './time.tsx'

/** When running nodes are stopped for lack of credit. They run a little longer, until the next check. */
export function StopNotice({ at, graceHours = 0 }: { at: number; graceHours?: number }) {
  const now = useNow()
  if (at <= now) return <>Running nodes are being stopped. Nothing is deleted.</>
  return (
    <>
      Running nodes will be stopped <Time at={at} />
      {graceGiven(graceHours)}. Nothing is deleted.
    </>
  )
}
