import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { flag, NodeId, named, nullable, text } from '../schemas.ts'

export const NodeLog = named(
  {
    lines: nullable(
      Type.Array(text('One line.'), {
        description:
          'Oldest first, with times in UTC; null if the service cannot read the log of this node, because it runs on another machine or on Kubernetes.',
      }),
    ),
    isComplete: flag('Whether these are all lines, and not only the last ones.'),
  },
  {
    $id: 'NodeLog',
    description:
      'The end of the node’s log. Values that may be secrets are hidden, and so are paths and addresses of the machine.',
  },
)
export type NodeLog = Static<typeof NodeLog>
export const NodeReceiving = named(
  {
    offer: nullable(text('A BOLT 12 offer; null if the node did not return one.')),
    lightningAddress: nullable(text('A Lightning address; null if the node did not return one.')),
    needsChannel: flag('Whether the node has no address because it has no channel yet.'),
  },
  { $id: 'NodeReceiving', description: 'The node’s reusable payment addresses.' },
)
export type NodeReceiving = Static<typeof NodeReceiving>

const ofNode = { tag: 'Dashboard', caller: 'session', method: 'GET', params: NodeId, status: 200 } as const

export const getNodeLog = operation({
  ...ofNode,
  path: '/dashboard/api/nodes/{nodeId}/log',
  operationId: 'getNodeLog',
  summary: 'Get the end of a node’s log',
  response: NodeLog,
  errors: ['node_not_found'],
})
export const getNodeReceiving = operation({
  ...ofNode,
  path: '/dashboard/api/nodes/{nodeId}/receiving',
  operationId: 'getNodeReceiving',
  summary: 'Get a node’s offer and Lightning address',
  response: NodeReceiving,
  errors: ['node_not_found', 'payment_service_unavailable'],
})
