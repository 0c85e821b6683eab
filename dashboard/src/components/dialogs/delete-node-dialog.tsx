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

/** Where there is money on it, that is accepted first; only then can the name be typed. */
export function DeleteNodeDialog({ node, me, onCancel }: Props) {
  const navigate = useNavigate()
  const [typed, setTyped] = useState('')
  const [isForced, setForced] = useState(false)
  const { data: live } = useQuery({ ...liveQuery(node.id), enabled: node.status === 'ready' })
  const remove = useAction(async () => {
    await api.delete(`/nodes/${node.id}${isForced ? '?force=true' : ''}`)
    await navigate({ to: '/nodes', replace: true })
    announce(`${node.name} is deleted`)
    // Gone from the cache only after its page: that would ask for it once more and find nothing.
    queryClient.removeQueries({ queryKey: ['nodes', node.id] })
    await queryClient.invalidateQueries()
  })
  // Money can arrive while the dialog is open; then the service refuses, and knows better.
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
      isDisabled={typed.trim() !== node.name || (hasFunds && !isForced)}
      onConfirm={() => void remove.run()}
      onCancel={onCancel}
    >
      <p>
        <strong>Balance: </strong>
        {live && live.balanceSat !== null ? (
          <Amount sat={live.balanceSat} />
        ) : (
          `not known now, because the node or its channels are offline. ${
            node.hasFunds ? 'There was money on it when they were last online.' : 'There may be money on it.'
          }`
        )}
      </p>
      <p>
        Kept for {me.retentionDays} days: the node's data and its recovery words, sealed; the operator can bring it back until
        then. Kept for good: the list of gateway payments and your credit. Gone at once: the endpoint, and receiving. Your own
        copy of the recovery words stays valid.
      </p>
      {hasFunds && (
        <Checkbox
          label="Delete it although it holds funds"
          description="Only with its recovery words, or by the operator within the time above, does the money come back. To keep it, send it elsewhere first."
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
        disabled={hasFunds && !isForced}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <Problem error={remove.error} what="The node was not deleted." />
    </ConfirmDialog>
  )
}
