import { Button, Group, Stack } from '@mantine/core'
import { useEffect, useState } from 'react'
import { api } from '../api/client.ts'
import { queryClient } from '../api/queries.ts'
import type { DashboardNode } from '../api/types.ts'
import { ConfirmDialog } from './dialogs/confirm-dialog.tsx'
import { NODE_VERBS, type NodeVerb, verbsOf } from './palette/node-operations.ts'
import { takeNodeRequest, useNodeRequest } from './palette/node-request.ts'
import { Problem } from './problem.tsx'
import { useAction } from './use-action.ts'

/** Customers notice these actions, so the person must confirm them. */
const CONSEQUENCES = {
  stop: 'Customers cannot pay this node until you start it again. Its money and data are kept, and it costs nothing.',
  restart: 'Customers cannot pay this node for a few seconds. Its money and data are kept.',
} as const

/** Offers only the actions that the node's status allows. `takesRequests`: also carries out what was chosen in the palette. */
export function NodeActions({ node, takesRequests = false }: { node: DashboardNode; takesRequests?: boolean }) {
  const operate = useAction(async (verb: NodeVerb) => {
    const asked = api.post<DashboardNode>(`/nodes/${node.id}/${verb}`)
    // The response comes when the operation is done, which may take a minute. Refresh early to show that it has begun.
    setTimeout(() => void queryClient.invalidateQueries({ queryKey: ['nodes'] }), 300)
    try {
      await asked
    } finally {
      void queryClient.invalidateQueries({ queryKey: ['nodes'] })
    }
  })
  const [asksFor, setAsksFor] = useState<keyof typeof CONSEQUENCES | null>(null)
  const isBusy = operate.isPending || node.operation !== null
  const verbs = verbsOf(node)
  const request = useNodeRequest()
  useEffect(() => {
    const verb = takesRequests && request ? takeNodeRequest(node.id) : undefined
    // The node may have changed since the palette offered this.
    if (!verb || isBusy || !verbs.includes(verb)) return
    if (verb === 'start') void operate.run(verb)
    else setAsksFor(verb)
  })
  return (
    <>
      <Stack gap="sm">
        <Group gap="xs">
          {verbs.includes('start') && (
            <Button loading={isBusy} onClick={() => void operate.run('start')}>
              Start
            </Button>
          )}
          {verbs.includes('restart') && (
            <Button variant="default" loading={isBusy} onClick={() => setAsksFor('restart')}>
              Restart…
            </Button>
          )}
          {verbs.includes('stop') && (
            <Button variant="default" loading={isBusy} onClick={() => setAsksFor('stop')}>
              Stop…
            </Button>
          )}
        </Group>
        <Problem error={operate.error} what="The operation failed." />
      </Stack>
      {asksFor && (
        <ConfirmDialog
          title={
            <>
              {NODE_VERBS[asksFor]} <bdi>{node.name}</bdi>?
            </>
          }
          verb={`${NODE_VERBS[asksFor]} node`}
          isPending={false}
          onCancel={() => setAsksFor(null)}
          onConfirm={() => {
            setAsksFor(null)
            void operate.run(asksFor)
          }}
        >
          <p>{CONSEQUENCES[asksFor]}</p>
        </ConfirmDialog>
      )}
    </>
  )
}
