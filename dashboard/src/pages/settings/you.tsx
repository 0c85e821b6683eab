import { Button, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { meQuery, queryClient } from '../../api/queries.ts'
import { changeEmail, renameAccount } from '../../api/settings.ts'
import type { Me } from '../../api/types.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'
import { ConfirmFields, useProof } from './confirm-fields.tsx'

type User = NonNullable<Me['user']>
type Account = NonNullable<Me['account']>

const refresh = () => queryClient.invalidateQueries({ queryKey: meQuery.queryKey })

export function You({ user, account }: { user: User; account: Account }) {
  const [dialog, setDialog] = useState<'email' | 'name' | null>(null)
  const close = () => setDialog(null)
  return (
    <section className="card" aria-labelledby="you">
      <h2 id="you">You</h2>
      <dl className="facts settings-facts">
        <Fact name="Email" verb="Change email" onEdit={() => setDialog('email')}>
          <bdi>{user.email}</bdi>
        </Fact>
        <Fact name="Account" verb="Change account name" onEdit={() => setDialog('name')}>
          <bdi>{account.name}</bdi>
        </Fact>
        <dt>Account id</dt>
        <dd>
          <span className="mono dim">{account.id}</span> <CopyButton text={account.id} label="Copy account id" />
        </dd>
      </dl>
      {dialog === 'email' && <EmailDialog user={user} onClose={close} />}
      {dialog === 'name' && <NameDialog account={account} onClose={close} />}
    </section>
  )
}

function Fact({ name, verb, onEdit, children }: { name: string; verb: string; onEdit: () => void; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {children}{' '}
        <Button size="compact-sm" variant="subtle" aria-label={`${verb}…`} onClick={onEdit}>
          Change…
        </Button>
      </dd>
    </>
  )
}

function EmailDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const { password, setPassword, proof, isReady } = useProof()
  const [email, setEmail] = useState('')
  const change = useAction(async () => {
    await changeEmail(email.trim(), proof())
    await refresh()
    onClose()
    announce('Email address changed')
  })
  return (
    <ConfirmDialog
      title="Change your email address"
      verb="Change email"
      isPending={change.isPending}
      isDisabled={email.trim() === '' || !isReady}
      onCancel={onClose}
      onConfirm={() => void change.run()}
    >
      <TextInput
        label="New email"
        description="You sign in with it. We never send email, so check the spelling: nobody verifies it."
        type="email"
        autoComplete="email"
        required
        withAsterisk={false}
        data-autofocus
        value={email}
        onChange={(event) => setEmail(event.currentTarget.value)}
      />
      <ConfirmFields user={user} password={password} onPassword={setPassword} />
      <p className="small dim">You stay signed in everywhere. Sign-in links that were made before stop working.</p>
      <Problem error={change.error} what="The email address was not changed." />
    </ConfirmDialog>
  )
}

function NameDialog({ account, onClose }: { account: Account; onClose: () => void }) {
  const [name, setName] = useState(account.name)
  const rename = useAction(async () => {
    await renameAccount(name.trim())
    await refresh()
    onClose()
    announce('Account renamed')
  })
  return (
    <ConfirmDialog
      title="Change the account’s name"
      verb="Rename"
      isPending={rename.isPending}
      isDisabled={name.trim() === ''}
      onCancel={onClose}
      onConfirm={() => void rename.run()}
    >
      <TextInput
        label="Account name"
        description="Only you and the operator see it."
        dir="auto"
        maxLength={100}
        required
        withAsterisk={false}
        autoComplete="off"
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Problem error={rename.error} what="The account was not renamed." />
    </ConfirmDialog>
  )
}
