import { Button, Group } from '@mantine/core'
import type { ReactNode } from 'react'
import { ApiError } from '../api/client.ts'
import { explain } from '../text/explanations.ts'
import { Illustration } from './art/illustration.tsx'
import { CopyButton } from './copy-button.tsx'
import { TextLink } from './layout/links.tsx'

/** `again`: what to do if the action may have worked. */
type Props = { error: unknown; what: string; next?: ReactNode; again?: string; onRetry?: (() => void) | undefined }

/** What went wrong, why, what to do next, and the request id to find it in the log. */
export function Problem({ error, what, next: given, again, onRetry }: Props) {
  if (!error) return null
  const { why, next: usual } = explain(error)
  const requestId = error instanceof ApiError ? error.requestId : null
  // "It was not created" would be a guess here and could lead people to create a second one.
  const isUncertain = error instanceof ApiError && (error.isUncertain || error.code === 'idempotency_conflict')
  const lacksCredit = error instanceof ApiError && error.code === 'insufficient_credit'
  const next = (isUncertain && again) || (given ?? (lacksCredit ? <TopUpFirst /> : usual))
  return (
    <div className="problem" role="alert">
      {error instanceof ApiError && <Art error={error} />}
      <strong>{isUncertain ? 'This may or may not have worked.' : what}</strong>
      <p>{why}</p>
      {next && <p>{next}</p>}
      {(requestId || onRetry) && (
        <Group gap="xs" mt="xs">
          {onRetry && (
            <Button size="xs" variant="default" onClick={onRetry}>
              Try again
            </Button>
          )}
          {requestId && (
            <span className="small">
              Request id <span className="mono">{requestId}</span>
            </span>
          )}
          {requestId && <CopyButton text={requestId} label="Copy request id" />}
        </Group>
      )}
    </div>
  )
}

const TopUpFirst = () => (
  <>
    Top up on the <TextLink to="/credit">Credit page</TextLink>, then try again. Nothing was created or started.
  </>
)

/** Only shown where the problem takes the place of a whole page. */
function Art({ error: { code, status } }: { error: ApiError }) {
  if (code === 'no_answer' || status >= 502) return <Illustration of="unplugged" />
  return status === 404 ? <Illustration of="search" /> : null
}
