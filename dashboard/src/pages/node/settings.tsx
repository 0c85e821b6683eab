import { Button, Group, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api } from '../../api/client.ts'
import { queryClient, updatesQuery } from '../../api/queries.ts'
import type { DashboardNode, Me } from '../../api/types.ts'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { DeleteNodeDialog } from '../../components/dialogs/delete-node-dialog.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { Loading } from '../../components/loading.tsx'
import { NodeActions } from '../../components/node-actions.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { isUpdating, softwareSentence, waitsForStart } from '../../text/updates.ts'

type Props = { node: DashboardNode; me: Me }

export function NodeSettings({ node, me }: Props) {
  const [isDeleting, setDeleting] = useState(false)
  return (
    <div className="stack">
      <Rename key={node.name} node={node} />
      <section className="card" aria-labelledby="power">
        <h2 id="power">Start and stop</h2>
        <p className="small dim">
          {node.status === 'provisioning'
            ? 'The node is being set up. You can stop it when it is ready.'
            : 'A stopped node keeps its money and data, costs nothing, and cannot receive payments.'}
        </p>
        <NodeActions node={node} takesRequests />
      </section>
      <Update node={node} />
      <section className="card danger" aria-labelledby="danger">
        <h2 id="danger">Delete this node</h2>
        <p className="small">
          The node and its endpoint stop working immediately. Its data is kept for {me.retentionDays} days, during which the
          operator can restore the node. After that, it is gone.
        </p>
        <Button color="red" variant="outline" onClick={() => setDeleting(true)}>
          Delete node…
        </Button>
      </section>
      {isDeleting && <DeleteNodeDialog node={node} me={me} onCancel={() => setDeleting(false)} />}
    </div>
  )
}

function Rename({ node }: { node: DashboardNode }) {
  const [name, setName] = useState(node.name)
  const rename = useAction(async () => {
    await api.patch(`/nodes/${node.id}`, { name: name.trim() })
    announce('Renamed')
    await queryClient.invalidateQueries({ queryKey: ['nodes'] })
  })
  const length = [...name.trim()].length
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void rename.run()
  }
  return (
    <section className="card" aria-labelledby="rename">
      <h2 id="rename">Name</h2>
      <form onSubmit={submit} onChange={rename.onEdit}>
        <Group align="flex-end">
          <TextInput
            label="Name of the node"
            dir="auto"
            description="1 to 16 characters."
            autoComplete="off"
            value={name}
            error={length > 16 && 'At most 16 characters.'}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button
            type="submit"
            variant="default"
            loading={rename.isPending}
            disabled={length === 0 || length > 16 || name.trim() === node.name}
          >
            Rename
          </Button>
        </Group>
      </form>
      <Problem error={rename.error} what="The node was not renamed." />
    </section>
  )
}

const UPDATE_CONSEQUENCES: Record<DashboardNode['status'], string> = {
  ready: 'The node restarts, and customers cannot pay it meanwhile.',
  stopped: 'The node stays stopped. The update will be installed when you start it.',
  failed: 'The node is started with the new version.',
  provisioning: '',
}

function Update({ node }: { node: DashboardNode }) {
  const { data: updates, error, refetch } = useQuery(updatesQuery(node.id))
  const update = useAction(async () => {
    await api.post(`/nodes/${node.id}/update`)
    await queryClient.invalidateQueries({ queryKey: ['nodes'] })
  })
  const [isAsking, setAsking] = useState(false)
  const isBusy = isUpdating(node)
  return (
    <section className="card" aria-labelledby="update">
      <h2 id="update">Software</h2>
      {!updates && error && <Problem error={error} what="Checking for updates failed." onRetry={() => void refetch()} />}
      {!updates && !error && <Loading height={60} />}
      {updates && (
        <>
          <p aria-live="polite">{softwareSentence(node, updates)}</p>
          {!isBusy && !waitsForStart(node) && node.updateStatus !== null && node.updateCompletedAt !== null && (
            <p className="small dim">
              The last update {node.updateStatus === 'failed' ? 'failed' : 'succeeded'} <Time at={node.updateCompletedAt} />.
              {updates.lastUpdateError && ` ${updates.lastUpdateError}`}
            </p>
          )}
          {updates.updateAvailable && !waitsForStart(node) && (
            <Button
              variant="default"
              loading={update.isPending || isBusy}
              disabled={node.status === 'provisioning'}
              onClick={() => setAsking(true)}
            >
              Update to {updates.latestVersion}…
            </Button>
          )}
          {isAsking && (
            <ConfirmDialog
              title={
                <>
                  Update <bdi>{node.name}</bdi>?
                </>
              }
              verb="Update node"
              isPending={false}
              onCancel={() => setAsking(false)}
              onConfirm={() => {
                setAsking(false)
                void update.run()
              }}
            >
              <p>{UPDATE_CONSEQUENCES[node.status]} Its data is backed up first.</p>
            </ConfirmDialog>
          )}
        </>
      )}
      <Problem error={update.error} what="The node was not updated." />
    </section>
  )
}
