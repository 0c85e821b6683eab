import { NativeSelect } from '@mantine/core'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { ApiKey } from '../../api/types.ts'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'

const OVERLAPS = [
  { value: '86400', label: '24 hours' },
  { value: '3600', label: '1 hour' },
  { value: '259200', label: '72 hours' },
  { value: '0', label: 'Not at all, because it may have leaked' },
]

type Props = { item: ApiKey; onCancel: () => void; onRotated: (key: ApiKey & { key: string }) => void }

export function RotateKeyDialog({ item, onCancel, onRotated }: Props) {
  const [overlapSeconds, setOverlapSeconds] = useState('86400')
  const rotate = useAction(async () => {
    // `endOverlap` only if the note below has said that the earlier secret stops working.
    const body = { overlapSeconds: Number(overlapSeconds), ...(item.previousSecretUntil === null ? {} : { endOverlap: true }) }
    try {
      onRotated(await api.post<ApiKey & { key: string }>(`/keys/${item.id}/rotate`, body))
    } finally {
      // Also after a lost response: the secret may have been replaced.
      void queryClient.invalidateQueries({ queryKey: ['keys'] })
    }
  })
  return (
    <ConfirmDialog
      title={
        <>
          Rotate <bdi>{item.name}</bdi>?
        </>
      }
      verb="Rotate key"
      isPending={rotate.isPending}
      onCancel={onCancel}
      onConfirm={() => void rotate.run()}
    >
      <p>
        The key gets a new secret. Its name, permissions and usage stay. Both secrets work for the time that you choose here, so
        that you can replace the current one without an interruption.
      </p>
      {item.previousSecretUntil !== null && (
        <p className="note">
          The key was rotated before. The secret from before that rotation, which would stop working{' '}
          <Time at={item.previousSecretUntil} />, stops at once. If programs still use it, create another key instead.
        </p>
      )}
      <NativeSelect
        label="The current secret keeps working for"
        data-autofocus
        value={overlapSeconds}
        data={OVERLAPS}
        onChange={(event) => setOverlapSeconds(event.currentTarget.value)}
      />
      <Problem
        error={rotate.error}
        what="The key was not rotated."
        again="The secret may have been replaced by one that nobody has seen; the one in your programs then works for the time that you chose. Create another key for them."
      />
    </ConfirmDialog>
  )
}
