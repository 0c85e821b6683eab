import { Button, Group } from '@mantine/core'
import { IconCircleCheck, IconPlayerPause } from '@tabler/icons-react'
import { useState } from 'react'
import { api } from '../api/client.ts'
import { queryClient } from '../api/queries.ts'
import type { ApiKey } from '../api/types.ts'
import { ConfirmDialog } from './dialogs/confirm-dialog.tsx'
import { announce } from './layout/announcer.tsx'
import { Problem } from './problem.tsx'
import { Status } from './status.tsx'
import { Time } from './time.tsx'
import { useAction } from './use-action.ts'

const SCOPES: Record<ApiKey['scopes'][number], string> = {
  'nodes:read': 'Read',
  'nodes:write': 'Write',
  'gateway:write': 'Gateway',
  'events:read': 'Events',
  'webhooks:write': 'Webhooks',
}

/** Newest first: people look for the key they have just created. */
export function KeyList({ keys }: { keys: ApiKey[] }) {
  return (
    <ul className="card list rows" aria-label="API keys">
      {[...keys].reverse().map((key) => (
        <Row key={key.id} item={key} />
      ))}
    </ul>
  )
}

function Row({ item }: { item: ApiKey }) {
  const [isRevoking, setRevoking] = useState(false)
  const change = useAction(async () => {
    await api.patch(`/keys/${item.id}`, { disabled: !item.disabled })
    announce(`${item.name}: ${item.disabled ? 'enabled' : 'disabled'}`)
    await queryClient.invalidateQueries({ queryKey: ['keys'] })
  })
  const revoke = useAction(async () => {
    await api.delete(`/keys/${item.id}`)
    setRevoking(false)
    announce(`${item.name} was revoked`)
    await queryClient.invalidateQueries({ queryKey: ['keys'] })
  })
  return (
    <li className="row">
      <div className="row-main">
        <strong>
          <bdi>{item.name}</bdi>
        </strong>{' '}
        <span className="mono dim">{item.prefix}…</span>
        <div className="small dim">
          {item.scopes.map((scope) => SCOPES[scope]).join(', ')} · created <Time at={item.createdAt} /> ·{' '}
          {item.lastUsedAt === null ? (
            'never used'
          ) : (
            <>
              last used <Time at={item.lastUsedAt} />
            </>
          )}
        </div>
        <Problem error={change.error} what="The key was not changed." />
      </div>
      {item.disabled ? (
        <Status word="Disabled" tone="idle" icon={IconPlayerPause} />
      ) : (
        <Status word="Enabled" tone="good" icon={IconCircleCheck} />
      )}
      <Group gap="xs">
        <Button
          size="xs"
          variant="default"
          loading={change.isPending}
          aria-label={`${item.disabled ? 'Enable' : 'Disable'} ${item.name}`}
          onClick={() => void change.run()}
        >
          {item.disabled ? 'Enable' : 'Disable'}
        </Button>
        <Button size="xs" variant="outline" color="red" aria-label={`Revoke ${item.name}`} onClick={() => setRevoking(true)}>
          Revoke
        </Button>
      </Group>
      {isRevoking && (
        <ConfirmDialog
          title={
            <>
              Revoke <bdi>{item.name}</bdi>?
            </>
          }
          verb="Revoke key"
          isDangerous
          isPending={revoke.isPending}
          onCancel={() => setRevoking(false)}
          onConfirm={() => void revoke.run()}
        >
          <p>
            Requests with the key <span className="mono">{item.prefix}…</span> will be refused. This cannot be undone. To block
            the key temporarily, disable it instead.
          </p>
          <Problem error={revoke.error} what="The key was not revoked." />
        </ConfirmDialog>
      )}
    </li>
  )
}
