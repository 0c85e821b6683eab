import type { Node } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { moment, type Paint, sanitize } from '../terminal.ts'

export const WAIT_MS = 300_000

export async function untilReady(call: Call, id: string, onStatus: (node: Node) => void = () => undefined): Promise<Node> {
  const client = await call.client()
  call.spinner.show(`Waiting for ${id}`)
  return client.nodes.waitUntilReady(id, {
    signal: call.signal,
    timeoutMs: call.number('timeout') === undefined ? WAIT_MS : call.timeoutMs,
    onStatus,
  })
}

export function rowsOf(node: Node, paint: Paint): [string, string][] {
  return [
    ['id', node.id],
    ['name', sanitize(node.name)],
    ['status', statusOf(node, paint)],
    ...(node.failureMessage === null ? [] : [['why', sanitize(node.failureMessage)] as [string, string]]),
    ...(node.updateStatus === null ? [] : [['update', node.updateStatus] as [string, string]]),
    ['endpoint', sanitize(node.endpointUrl)],
    ['created', moment(node.createdAt)],
  ]
}

const COLOURS = { ready: 'green', provisioning: 'yellow', stopped: 'dim', failed: 'red' } as const

export function statusOf({ status }: Node, paint: Paint): string {
  return paint(COLOURS[status] ?? 'bold', sanitize(status))
}
