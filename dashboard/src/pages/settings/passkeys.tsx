import { Button, Group, TextInput } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { addPasskey, canUsePasskeys, listPasskeys, removePasskey } from '../../api/auth.ts'
import { queryClient } from '../../api/queries.ts'
import { renamePasskey } from '../../api/settings.ts'
import type { Me, Passkey } from '../../api/types.ts'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { PasskeysElsewhere } from '../../components/people/passkeys-elsewhere.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { ConfirmFieldsWithCode, useProofWithCode } from './confirm-fields.tsx'

type User = NonNullable<Me['user']>

export const passkeysQuery = queryOptions({ queryKey: ['passkeys'], queryFn: ({ signal }) => listPasskeys(signal) })

export function Passkeys({ user, origins }: { user: User; origins: string[] }) {
  const passkeys = useQuery(passkeysQuery)
  const [name, setName] = useState('')
  const [isAdding, setAdding] = useState(false)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setAdding(true)
  }
  const onAdded = () => {
    setName('')
    setAdding(false)
  }
  return (
    <section className="card" aria-labelledby="passkeys">
      <h2 id="passkeys">Passkeys</h2>
      <p className="small dim">Sign in with your device instead of a password. Your password still works.</p>
      {canUsePasskeys() ? (
        <form onSubmit={submit}>
          <Group align="flex-end" mt="md">
            <TextInput
              label="Name of the new passkey"
              placeholder="Laptop"
              maxLength={64}
              autoComplete="off"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" variant="default">
              Add a passkey…
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
      {isAdding && <AddPasskey user={user} name={name.trim() || 'Passkey'} onDone={onAdded} onCancel={() => setAdding(false)} />}
      {!passkeys.data && (
        <Problem error={passkeys.error} what="Your passkeys could not be loaded." onRetry={() => void passkeys.refetch()} />
      )}
      {passkeys.data && passkeys.data.length > 0 && (
        <ul className="rows" aria-label="Passkeys">
          {passkeys.data.map((passkey) => (
            <Row key={passkey.id} user={user} passkey={passkey} />
          ))}
        </ul>
      )}
    </section>
  )
}

type AddProps = { user: User; name: string; onDone: () => void; onCancel: () => void }

function AddPasskey({ user, name, onDone, onCancel }: AddProps) {
  const confirmation = useProofWithCode()
  const add = useAction(async () => {
    await addPasskey(name, confirmation.proof())
    onDone()
    announce('Passkey added')
    await queryClient.invalidateQueries({ queryKey: passkeysQuery.queryKey })
  })
  return (
    <ConfirmDialog
      title="Add a passkey"
      verb="Add passkey"
      isPending={add.isPending}
      isDisabled={!confirmation.isReady}
      onCancel={onCancel}
      onConfirm={() => void add.run()}
    >
      <p>Whoever has the passkey can sign in without your password and without a code.</p>
      <ConfirmFieldsWithCode user={user} {...confirmation} />
      <Problem error={add.error} what="The passkey was not added." />
    </ConfirmDialog>
  )
}

function Row({ user, passkey }: { user: User; passkey: Passkey }) {
  const [isAsking, setAsking] = useState(false)
  const [isRenaming, setRenaming] = useState(false)
  const name = passkey.name || 'Passkey'
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
      {isAsking && <RemovePasskey user={user} id={passkey.id} name={name} onClose={() => setAsking(false)} />}
    </li>
  )
}

function RemovePasskey({ user, id, name, onClose }: { user: User; id: string; name: string; onClose: () => void }) {
  const confirmation = useProofWithCode()
  const remove = useAction(async () => {
    await removePasskey(id, confirmation.proof())
    onClose()
    announce(
      <>
        <bdi>{name}</bdi> was removed
      </>,
    )
    await queryClient.invalidateQueries({ queryKey: passkeysQuery.queryKey })
  })
  return (
    <ConfirmDialog
      title={`Remove ${name}?`}
      verb="Remove passkey"
      isDangerous
      isPending={remove.isPending}
      isDisabled={!confirmation.isReady}
      onCancel={onClose}
      onConfirm={() => void remove.run()}
    >
      <p>You will no longer be able to sign in with it. Your password still works.</p>
      <ConfirmFieldsWithCode user={user} {...confirmation} />
      <Problem error={remove.error} what="The passkey was not removed." />
    </ConfirmDialog>
  )
}

function RenamePasskey({ passkey, onClose }: { passkey: Passkey; onClose: () => void }) {
  const [name, setName] = useState(passkey.name ?? '')
  const rename = useAction(async () => {
    await renamePasskey(passkey.id, name.trim())
    await queryClient.invalidateQueries({ queryKey: passkeysQuery.queryKey })
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
