import { Button, Checkbox, Group, Modal, Stack, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { api } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { ApiKey } from '../../api/types.ts'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'

export type CreatedKey = Pick<ApiKey, 'id' | 'name' | 'scopes'> & { key: string }

type Props = { onCancel: () => void; onCreated: (created: CreatedKey) => void }

export function CreateKeyDialog({ onCancel, onCreated }: Props) {
  const [name, setName] = useState('')
  const [canWrite, setWrite] = useState(false)
  const [canCharge, setCharge] = useState(true)
  const [canReadEvents, setReadEvents] = useState(false)
  const [canManageWebhooks, setManageWebhooks] = useState(false)
  const create = useAction(async () => {
    const scopes: ApiKey['scopes'] = ['nodes:read']
    if (canWrite) scopes.push('nodes:write')
    if (canCharge) scopes.push('gateway:write')
    if (canReadEvents) scopes.push('events:read')
    if (canManageWebhooks) scopes.push('webhooks:write')
    const created = await api.post<CreatedKey>('/keys', { name: name.trim(), scopes })
    void queryClient.invalidateQueries({ queryKey: ['keys'] })
    void queryClient.invalidateQueries({ queryKey: ['overview'] })
    onCreated(created)
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void create.run()
  }
  return (
    <Modal
      opened
      onClose={onCancel}
      title="Create an API key"
      closeOnClickOutside={!create.isPending}
      closeOnEscape={!create.isPending}
    >
      <form onSubmit={submit} onChange={create.onEdit}>
        <Stack gap="md">
          <TextInput
            label="Name"
            dir="auto"
            description="Where you will use it, for example “shop server”. Only you see this."
            required
            pattern=".*\S.*"
            title="Enter a name"
            maxLength={100}
            autoComplete="off"
            data-autofocus
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <fieldset className="bare">
            <legend className="legend">Permissions</legend>
            <Stack gap="xs">
              <Checkbox checked disabled readOnly label="Read" description="See your nodes. Every key has this permission." />
              <Checkbox
                label="Write"
                description="Create, rename, start, stop, update and delete nodes."
                checked={canWrite}
                onChange={(event) => setWrite(event.currentTarget.checked)}
              />
              <Checkbox
                label="Gateway"
                description="Create challenges and redeem payments."
                checked={canCharge}
                onChange={(event) => setCharge(event.currentTarget.checked)}
              />
              <Checkbox
                label="Events"
                description="Read what happened in the account: payments, nodes, credit and keys."
                checked={canReadEvents}
                onChange={(event) => setReadEvents(event.currentTarget.checked)}
              />
              <Checkbox
                label="Webhooks"
                description="Choose where events are sent, and see what was sent."
                checked={canManageWebhooks}
                onChange={(event) => setManageWebhooks(event.currentTarget.checked)}
              />
            </Stack>
          </fieldset>
          <Problem
            error={create.error}
            what="The key was not created."
            again="Look for the key in the list. If it is there, revoke it: its value cannot be shown again."
          />
          <Group justify="flex-end">
            <Button variant="default" disabled={create.isPending} onClick={onCancel}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending}>
              Create key
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
