import { Button, Group, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { addPasskey, canUsePasskeys, listPasskeys, removePasskey } from '../../api/auth.ts'
import { queryClient } from '../../api/queries.ts'
import { renamePasskey } from '../../api/settings.ts'
import type { Passkey } from '../../api/types.ts'
import { ConfirmDialog } from '../dialogs/confirm-dialog.tsx'
import { announce } from '../layout/announcer.tsx'
import { Loading } from '../loading.tsx'
import { Problem } from '../problem.tsx'
import { Time } from '../time.tsx'
import { useAction } from '../use-action.ts'
import { PasskeysElsewhere } from './passkeys-elsewhere.tsx'

const KEY = ['passkeys']

export function Passkeys({ origins }: { origins: string[] }) {
  const passkeys = useQuery({ queryKey: KEY, queryFn: ({ signal }) => listPasskeys(signal) })
  const [name, setName] = useState('')
  const add = useAction(async () => {
    await addPasskey(name.trim() || 'Passkey')
    setName('')
    announce('Passkey added')
    await queryClient.invalidateQueries({ queryKey: KEY })
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void add.run()
  }
  return (
    <section className="card" aria-labelledby="passkeys">
      <h2 id="passkeys">Passkeys</h2>
      <p className="small dim">Sign in with your device instead of a password. Your password still works.</p>
      {canUsePasskeys() ? (
        <form onSubmit={submit} onChange={add.onEdit}>
          <Group align="flex-end" mt="md">
            <TextInput
              label="Name of the new passkey"
              placeholder="Laptop"
              maxLength={64}
              autoComplete="off"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" variant="default" loading={add.isPending}>
              Add a passkey
            </Button>
          </Group>
        </form>
      ) : (
        <div className="note">
          Passkeys cannot be used at this address. Browsers allow them only on https host names and on localhost.{' '}
          <PasskeysElsewhere origins={origins} path="/dashboard/settings">
            {(there) => <>They work at {there}. You need to sign in again there, because a session belongs to one address.</>}
          </PasskeysElsewhere>
        </div>
      )}
      <Problem error={add.error} what="The passkey was not added." />
      {!passkeys.data && (
        <Problem error={passkeys.error} what="Your passkeys could not be loaded." onRetry={() => void passkeys.refetch()} />
      )}
      {passkeys.isPending && <Loading height={48} />}
      {passkeys.data && passkeys.data.length > 0 && (
        <ul className="rows" aria-label="Passkeys">
          {passkeys.data.map((passkey) => (
            <Row key={passkey.id} passkey={passkey} />
          ))}
        </ul>
      )}
    </section>
  )
}

function Row({ passkey }: { passkey: Passkey }) {
  const [isAsking, setAsking] = useState(false)
  const [isRenaming, setRenaming] = useState(false)
  const name = passkey.name || 'Passkey'
  const remove = useAction(async () => {
    await removePasskey(passkey.id)
    setAsking(false)
    announce(`${name} was removed`)
    await queryClient.invalidateQueries({ queryKey: KEY })
  })
  return (
    <li className="passkey">
      <span className="row-main">
        <bdi>{name}</bdi>
        <span className="small dim">
          {' '}
          added <Time at={passkey.createdAt} />
        </span>
      </span>
      <Button size="xs" variant="default" aria-label={`Rename ${name}`} onClick={() => setRenaming(true)}>
        Rename
      </Button>
      <Button size="xs" variant="default" aria-label={`Remove ${name}`} onClick={() => setAsking(true)}>
        Remove
      </Button>
      {isRenaming && <RenamePasskey passkey={passkey} onClose={() => setRenaming(false)} />}
      {isAsking && (
        <ConfirmDialog
          title={`Remove ${name}?`}
          verb="Remove passkey"
          isDangerous
          isPending={remove.isPending}
          onCancel={() => setAsking(false)}
          onConfirm={() => void remove.run()}
        >
          <p>You will no longer be able to sign in with it. Your password still works.</p>
          <Problem error={remove.error} what="The passkey was not removed." />
        </ConfirmDialog>
      )}
    </li>
  )
}

function RenamePasskey({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  const [name, setName] = useState(passkey.name ?? '')
  const rename = useAction(async () => {
    await renamePasskey(passkey.id, name.trim())
    await queryClient.invalidateQueries({ queryKey: KEY })
    onClose()
    announce('Passkey renamed')
  })
  return (
    <ConfirmDialog
      title="Rename the passkey"
      verb="Rename"
      isPending={rename.isPending}
      isDisabled={name.trim() === ''}
      onCancel={onClose}
      onConfirm={() => void rename.run()}
    >
      <TextInput
        label="Name"
        dir="auto"
        maxLength={64}
        autoComplete="off"
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Problem error={rename.error} what="The passkey was not renamed." />
    </ConfirmDialog>
  )
}
