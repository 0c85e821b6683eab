import { Button, Checkbox, Group, Modal, NativeSelect, Stack, TextInput } from '@mantine/core'
import { type FormEvent, type ReactNode, useState } from 'react'
import { api } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { ApiKey } from '../../api/types.ts'
import { announce } from '../../components/layout/announcer.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'
import { exact, toLocalInput } from '../../text/format.ts'
import { changeOf, type Expiry, expiresAtOf, type Fields } from './key-fields.ts'
import { SCOPE_NAMES, SCOPES } from './scopes.ts'

export type CreatedKey = Pick<ApiKey, 'id' | 'name' | 'scopes' | 'expiresAt'> & { key: string }

export function CreateKeyDialog({ onCancel, onCreated }: { onCancel: () => void; onCreated: (created: CreatedKey) => void }) {
  const create = useAction(async (fields: Fields) => {
    const { name, scopes } = fields
    const expiresAt = expiresAtOf(fields)
    const created = await api.post<CreatedKey>('/keys', { name: name.trim(), scopes, ...(expiresAt ? { expiresAt } : {}) })
    void queryClient.invalidateQueries({ queryKey: ['keys'] })
    void queryClient.invalidateQueries({ queryKey: ['overview'] })
    onCreated(created)
  })
  return (
    <KeyDialog
      title="Create an API key"
      verb="Create key"
      initial={{ name: '', scopes: ['nodes:read', 'gateway:write'], expiry: 'never', date: '' }}
      expiries={[]}
      action={create}
      onCancel={onCancel}
    >
      <Problem
        error={create.error}
        what="The key was not created."
        again="Look for the key in the list. If it is there, revoke it: its value cannot be shown again."
      />
    </KeyDialog>
  )
}

export function EditKeyDialog({ item, onClose }: { item: ApiKey; onClose: () => void }) {
  const { name, scopes, expiresAt, isExpired } = item
  const keeps = expiresAt !== null
  // The key as it was when the dialog was opened, because that is what the person has seen.
  const [initial] = useState<Fields>({ name, scopes, expiry: keeps ? 'keep' : 'never', date: '' })
  const edit = useAction(async (fields: Fields) => {
    const change = changeOf(initial, fields)
    if (Object.keys(change).length > 0) {
      await api.patch(`/keys/${item.id}`, change)
      await queryClient.invalidateQueries({ queryKey: ['keys'] })
      announce(
        <>
          <bdi>{fields.name.trim()}</bdi> was changed
        </>,
      )
    }
    onClose()
  })
  return (
    <KeyDialog
      title={
        <>
          Edit <bdi>{name}</bdi>
        </>
      }
      verb="Save"
      initial={initial}
      expiries={keeps ? [{ value: 'keep', label: `${isExpired ? 'Expired on' : 'On'} ${exact(expiresAt)}` }] : []}
      action={edit}
      onCancel={onClose}
    >
      <p className="small dim">
        Changes apply to running programs within seconds.
        {isExpired && ' With a later expiry, anyone who has the key’s secret can use it again.'}
      </p>
      <Problem error={edit.error} what="The key was not changed." />
    </KeyDialog>
  )
}

type DialogProps = {
  title: ReactNode
  verb: string
  initial: Fields
  expiries: { value: Expiry; label: string }[]
  action: { run: (fields: Fields) => Promise<unknown>; isPending: boolean; onEdit: () => void }
  onCancel: () => void
  children: ReactNode
}

function KeyDialog({ title, verb, initial, expiries, action, onCancel, children }: DialogProps) {
  const [fields, setFields] = useState(initial)
  const set = (some: Partial<Fields>) => setFields((before) => ({ ...before, ...some }))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void action.run(fields)
  }
  return (
    <Modal opened onClose={onCancel} title={title} closeOnClickOutside={!action.isPending} closeOnEscape={!action.isPending}>
      <form onSubmit={submit} onChange={action.onEdit}>
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
            value={fields.name}
            onChange={(event) => set({ name: event.currentTarget.value })}
          />
          <fieldset className="bare">
            <legend className="legend">Permissions</legend>
            <Stack gap="xs">
              {SCOPE_NAMES.map((scope) => (
                <Checkbox
                  key={scope}
                  label={SCOPES[scope].name}
                  description={SCOPES[scope].description}
                  checked={fields.scopes.includes(scope)}
                  {...(scope === 'nodes:read' ? { disabled: true, readOnly: true } : {})}
                  onChange={({ currentTarget: { checked } }) =>
                    set({ scopes: SCOPE_NAMES.filter((one) => (one === scope ? checked : fields.scopes.includes(one))) })
                  }
                />
              ))}
            </Stack>
          </fieldset>
          <NativeSelect
            label="Expires"
            description="From then on, requests with the key are refused."
            value={fields.expiry}
            data={[
              ...expiries,
              { value: 'never', label: 'Never' },
              { value: '7', label: 'In 7 days' },
              { value: '30', label: 'In 30 days' },
              { value: '90', label: 'In 90 days' },
              { value: '365', label: 'In a year' },
              { value: 'date', label: 'On a date…' },
            ]}
            onChange={(event) => set({ expiry: event.currentTarget.value as Expiry })}
          />
          {fields.expiry === 'date' && (
            <TextInput
              label="Date and time"
              type="datetime-local"
              required
              min={toLocalInput(Date.now() / 1000 + 60)}
              value={fields.date}
              onChange={(event) => set({ date: event.currentTarget.value })}
            />
          )}
          {children}
          <Group justify="flex-end">
            <Button variant="default" disabled={action.isPending} onClick={onCancel}>
              Cancel
            </Button>
            <Button type="submit" loading={action.isPending}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
