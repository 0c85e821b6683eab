import { Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { leaveAfter } from '../../api/session.ts'
import { deleteAccount, deletionQuery } from '../../api/settings.ts'
import type { Me } from '../../api/types.ts'
import { Amount } from '../../components/amount.tsx'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { exact } from '../../text/format.ts'
import { ConfirmFields, useProof } from './confirm-fields.tsx'

type Props = { user: NonNullable<Me['user']>; account: NonNullable<Me['account']>; retentionDays: number }

export function DeleteAccount(props: Props) {
  const deletion = useQuery(deletionQuery)
  const [isAsking, setAsking] = useState(false)
  const {
    existing = 0,
    retained = 0,
    dueAt = null,
    topUpUntil = null,
    isPossible = false,
    explanation = '',
  } = deletion.data ?? {}
  const days = `${props.retentionDays} ${props.retentionDays === 1 ? 'day' : 'days'}`
  return (
    <section className="card" aria-labelledby="delete-account">
      <h2 id="delete-account">Delete account</h2>
      {!deletion.data && (
        <Problem
          error={deletion.error}
          what="Whether the account can be deleted could not be checked."
          onRetry={() => void deletion.refetch()}
        />
      )}
      {existing > 0 && (
        <p className="note">
          Not possible yet: the account has {existing === 1 ? 'a node' : `${existing} nodes`}. Delete{' '}
          {existing === 1 ? 'it' : 'them'} first. A deleted node is kept for {days} in case its wallet holds money, and the
          account can be deleted after that.
        </p>
      )}
      {existing === 0 && retained > 0 && (
        <p className="note">
          Not possible yet: {retained === 1 ? 'a deleted node is' : `${retained} deleted nodes are`} kept in case of money in{' '}
          {retained === 1 ? 'its wallet' : 'their wallets'}.{' '}
          {dueAt !== null && dueAt < Date.now() / 1000 ? (
            'They are about to be removed. If this does not change within a day, ask the operator.'
          ) : dueAt === null ? (
            `The account can be deleted ${days} after the handover to another installation is done.`
          ) : (
            <>
              The account can be deleted after {exact(dueAt)} (<Time at={dueAt} />
              ).
            </>
          )}
        </p>
      )}
      {existing + retained === 0 && topUpUntil !== null && <p className="note">Not possible yet. {explanation}</p>}
      {isPossible && (
        <>
          <p className="small dim">Ends the account for good. This cannot be undone.</p>
          <Button color="red" variant="light" onClick={() => setAsking(true)}>
            Delete account…
          </Button>
        </>
      )}
      {isAsking && <Dialog {...props} onCancel={() => setAsking(false)} />}
    </section>
  )
}

function Dialog({ user, account, onCancel }: Props & { onCancel: () => void }) {
  const { password, setPassword, proof, isReady } = useProof()
  // Only data read after the dialog was opened: what is lost must be on the screen before the button can be pressed.
  const { data: deletion, isFetchedAfterMount } = useQuery(deletionQuery)
  const [typed, setTyped] = useState('')
  const remove = useAction(() => leaveAfter(() => deleteAccount(account.name, proof())))
  const creditSat = isFetchedAfterMount ? deletion?.creditSat : undefined
  return (
    <ConfirmDialog
      title="Delete this account?"
      verb="Delete account"
      isDangerous
      isPending={remove.isPending}
      isDisabled={typed.trim() !== account.name || !isReady || creditSat === undefined}
      onCancel={onCancel}
      onConfirm={() => void remove.run()}
    >
      <p>
        <strong>Ends at once:</strong> your sessions, passkeys, password, API keys, webhooks and sign-in links. Your email address
        and the account’s name are removed.
      </p>
      <p>
        <strong>Is kept for accounting</strong>, under the account’s id: the credit ledger, the records of payments, and the
        activity log.
      </p>
      {creditSat !== undefined && creditSat > 0 && (
        <p className="note">
          The account’s credit of <Amount sat={creditSat} /> can no longer be used, and is not paid out.
        </p>
      )}
      <TextInput
        label={
          <>
            Type the account’s name, <bdi>{account.name}</bdi>
          </>
        }
        dir="auto"
        autoComplete="off"
        required
        withAsterisk={false}
        data-autofocus
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <ConfirmFields user={user} password={password} onPassword={setPassword} />
      <Problem
        error={remove.error}
        what="The account was not deleted."
        again="Reload the page. If you are signed out, the account is deleted."
      />
    </ConfirmDialog>
  )
}
