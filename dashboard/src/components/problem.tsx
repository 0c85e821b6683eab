import { Button, Group } from '@mantine/core'
import { ApiError } from '../api.ts'
import { explain } from '../explanations.ts'
import { CopyButton } from './copy-button.tsx'

type Props = { error: unknown; what: string; next?: string; onRetry?: (() => void) | undefined }

/** What went wrong, why, what to do next, and the id under which the log has it. */
export function Problem({ error, what, next: given, onRetry }: Props) {
  if (!error) return null
  const { why, next: usual } = explain(error)
  const next = given ?? usual
  const requestId = error instanceof ApiError ? error.requestId : null
  return (
    <div className="problem" role="alert">
      <strong>{what}</strong>
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
