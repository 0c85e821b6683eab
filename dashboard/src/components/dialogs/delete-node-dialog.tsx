import { Checkbox, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError, api } from '../../api/client.ts'
import { liveQuery, queryClient } from '../../api/queries.ts'
import type { DashboardNode, Me } from '../../api/types.ts'
import { Amount } from '../amount.tsx'
import { announce } from '../layout/announcer.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'
import { ConfirmDialog } from './confirm-dialog.tsx'

type Props = { node: DashboardNode; me: Me; onCancel: () => void }

/** If the node holds money, the person must tick the box that accepts this before they can type the name. */
export function DeleteNodeDialog({ node, me, onCancel }: Props) {
  const navigate = useNavigate()
  const [typed, setTyped] = useState('')
  const [isForced, setForced] = useState(false)
  const { data: live, isLoading } = useQuery({ ...liveQuery(node.id), enabled: node.status === 'ready' })
  const remove = useAction(async () => {
    await api.delete(`/nodes/${node.id}${isForced ? '?force=true' : ''}`)
    await navigate({ to: '/nodes', replace: true })
    announce(
      <>
        <bdi>{node.name}</bdi> was deleted
      </>,
    )
    // Remove it from the cache only after leaving its page, which would otherwise fetch it again and fail.
    queryClient.removeQueries({ queryKey: ['nodes', node.id] })
    await queryClient.invalidateQueries()
  })
  // Money can arrive while the dialog is open. The service then refuses the deletion.
  const isRefused = remove.error instanceof ApiError && remove.error.code === 'node_has_funds'
  const hasFunds = isRefused || (live?.balanceSat == null ? node.hasFunds : live.balanceSat > 0)

  return (
    <ConfirmDialog
      title={
        <>
          Delete <bdi>{node.name}</bdi>?
        </>
      }
      verb={hasFunds ? 'Delete with its funds' : 'Delete node'}
      isDangerous
      isPending={remove.isPending}
      isDisabled={isLoading || typed.trim() !== node.name || (hasFunds && !isForced)}
      onConfirm={() => void remove.run()}
      onCancel={onCancel}
    >
      <p>
        <strong>Balance: </strong>
        {isLoading ? (
          'loading…'
        ) : live && live.balanceSat !== null ? (
          <Amount sat={live.balanceSat} />
        ) : (
          `unknown, because the node or its channels are offline. ${
            node.hasFunds ? 'The node held money when they were last online.' : 'The node may hold money.'
          }`
        )}
      </p>
      <p>
        The endpoint stops working immediately, and the node can no longer receive payments. Its data and recovery words are kept
        for {me.retentionDays} days; until then, the operator can restore the node. Your gateway payments and your credit are not
        affected, and your own copy of the recovery words stays valid.
      </p>
      {hasFunds && (
        <Checkbox
          label="Delete the node even though it holds funds"
          description="You can then recover the money only with the recovery words, or through the operator within the time above. To keep it, send it elsewhere first."
          data-autofocus
          checked={isForced}
          onChange={(event) => setForced(event.currentTarget.checked)}
        />
      )}
      <TextInput
        label={
          <>
            Type <bdi>{node.name}</bdi> to confirm
          </>
        }
        placeholder={hasFunds && !isForced ? 'Tick the box above first' : ''}
        autoComplete="off"
        dir="auto"
        data-autofocus
        disabled={isLoading || (hasFunds && !isForced)}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <Problem error={remove.error} what="The node was not deleted." />
    </ConfirmDialog>
  )
}
