import { Time, useNow } from './time.tsx'

/** When running nodes are stopped for lack of credit. They run a little longer, until the next check. */
export function StopNotice({ at }: { at: number }) {
  const now = useNow()
  if (at <= now) return <>Running nodes are being stopped, but not deleted.</>
  return (
    <>
      Running nodes will be stopped <Time at={at} />, but not deleted.
    </>
  )
}
