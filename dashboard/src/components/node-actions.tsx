import { Button, Group } from '@mantine/core'
import { useState } from 'react'
import { api } from '../api/client.ts'
import { queryClient } from '../api/queries.ts'
import type { DashboardNode } from '../api/types.ts'
import { ConfirmDialog } from './dialogs/confirm-dialog.tsx'
import { Problem } from './problem.tsx'
import { useAction } from './use-action.ts'

/** Customers notice these actions, so the person must confirm them. */
const QUESTIONS = {
  stop: {
    verb: 'Stop',
    consequence: 'Customers cannot pay this node until you start it again. Its money and data are kept, and it costs nothing.',
  },
  restart: { verb: 'Restart', consequence: 'Customers cannot pay this node for a few seconds. Its money and data are kept.' },
} as const

/** Offers only the actions that the node's status allows. */
export function NodeActions({ node }: { node: DashboardNode }) {
  const operate = useAction(async (verb: 'start' | 'stop' | 'restart') => {
    const asked = api.post<DashboardNode>(`/nodes/${node.id}/${verb}`)
    // The response comes when the operation is done, which may take a minute. Refresh early to show that it has begun.
    setTimeout(() => void queryClient.invalidateQueries({ queryKey: ['nodes'] }), 300)
    try {
      await asked
    } finally {
      void queryClient.invalidateQueries({ queryKey: ['nodes'] })
    }
  })
  const [asksFor, setAsksFor] = useState<keyof typeof QUESTIONS | null>(null)
  const isBusy = operate.isPending || node.operation !== null
  const can = {
    start: node.status === 'stopped' || node.status === 'failed',
    stop: node.status === 'ready' || node.status === 'failed',
    restart: node.status === 'ready',
  }
  return (
    <>
      <Group gap="xs">
        {can.start && (
          <Button loading={isBusy} onClick={() => void operate.run('start')}>
            Start
          </Button>
        )}
        {can.restart && (
          <Button variant="default" loading={isBusy} onClick={() => setAsksFor('restart')}>
            Restart…
          </Button>
        )}
        {can.stop && (
          <Button variant="default" loading={isBusy} onClick={() => setAsksFor('stop')}>
            Stop…
          </Button>
        )}
      </Group>
      <Problem error={operate.error} what="The operation failed." />
      {asksFor && (
        <ConfirmDialog
          title={
            <>
              {QUESTIONS[asksFor].verb} <bdi>{node.name}</bdi>?
            </>
          }
          verb={`${QUESTIONS[asksFor].verb} node`}
          isPending={false}
          onCancel={() => setAsksFor(null)}
          onConfirm={() => {
            setAsksFor(null)
            void operate.run(asksFor)
          }}
        >
          <p>{QUESTIONS[asksFor].consequence}</p>
        </ConfirmDialog>
      )}
    </>
  )
}
