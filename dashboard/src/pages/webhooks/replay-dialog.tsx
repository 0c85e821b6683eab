import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { Webhook } from '../../api/types.ts'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'
import { fromLocalInput, toLocalInput } from '../../text/format.ts'

const HOUR = 3600
const MINUTE = 60

export function ReplayDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  // Rounded up to the next minute, because the fields have no seconds and the end is not part of the period.
  const [end] = useState(() => Math.ceil(Date.now() / 1000 / MINUTE) * MINUTE)
  const [from, setFrom] = useState(() => toLocalInput(end - HOUR))
  const [to, setTo] = useState(() => toLocalInput(end))
  const [isEmpty, setEmpty] = useState(false)
  const period = { from: fromLocalInput(from), to: fromLocalInput(to) }
  const isBackwards = period.from >= period.to
  const replay = useAction(async () => {
    setEmpty(false)
    const { count } = await api.post<{ count: number }>(`/webhooks/${webhook.id}/replay`, period)
    setEmpty(count === 0)
    if (count === 0) return
    announce(count === 1 ? '1 event is being sent again' : `${count} events are being sent again`)
    await queryClient.invalidateQueries({ queryKey: ['webhooks', webhook.id] })
    onClose()
  })
  return (
    <ConfirmDialog
      title="Replay events"
      verb="Replay"
      isPending={replay.isPending}
      isDisabled={!(period.from < period.to)}
      onCancel={onClose}
      onConfirm={() => void replay.run()}
    >
      <p>
        Sends all events of a period that match this webhook, also those from before it was created or while it was disabled. Each
        has the same webhook-id as the first time, so that your receiver can skip those it knows.
      </p>
      <TextInput
        type="datetime-local"
        label="From"
        required
        withAsterisk={false}
        data-autofocus
        value={from}
        onChange={(event) => setFrom(event.currentTarget.value)}
      />
      <TextInput
        type="datetime-local"
        label="To"
        required
        withAsterisk={false}
        value={to}
        error={isBackwards && 'Must be after the beginning.'}
        onChange={(event) => setTo(event.currentTarget.value)}
      />
      <div role="status">{isEmpty && 'No events in this period match this webhook.'}</div>
      <Problem error={replay.error} what="Nothing was sent again." />
    </ConfirmDialog>
  )
}
