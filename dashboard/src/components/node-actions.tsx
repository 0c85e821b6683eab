import { Button, Group } from '@mantine/core'
import { api } from '../api/client.ts'
import { queryClient } from '../api/queries.ts'
import type { DashboardNode } from '../api/types.ts'
import { Problem } from './problem.tsx'
import { useAction } from './use-action.ts'

const VERBS = { start: 'started', stop: 'stopped', restart: 'restarted' } as const

/** Offers only the actions that the node's status allows. */
export function NodeActions({ node }: { node: DashboardNode }) {
  const operate = useAction(async (verb: keyof typeof VERBS) => {
    const asked = api.post<DashboardNode>(`/nodes/${node.id}/${verb}`)
    // The response comes when the operation is done, which may take a minute. Refresh early to show that it has begun.
    setTimeout(() => void queryClient.invalidateQueries({ queryKey: ['nodes'] }), 300)
    try {
      await asked
    } finally {
      void queryClient.invalidateQueries({ queryKey: ['nodes'] })
    }
  })
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
          <Button variant="default" loading={isBusy} onClick={() => void operate.run('restart')}>
            Restart
          </Button>
        )}
        {can.stop && (
          <Button variant="default" loading={isBusy} onClick={() => void operate.run('stop')}>
            Stop
          </Button>
        )}
      </Group>
      <Problem error={operate.error} what="The operation failed." />
    </>
  )
}
