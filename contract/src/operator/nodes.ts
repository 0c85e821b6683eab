import { Type } from 'typebox'
import { Node, nodeFields } from '../nodes.ts'
import { operation } from '../operation.ts'
import { count, named, nullable, text, timestamp } from '../schemas.ts'

export const IdOfNode = Type.Object({ id: text('Id of a node, `node_…`.') })

export const OperatorNode = named(
  {
    ...nodeFields,
    accountId: text('Whose it is.'),
    version: nullable(text('The software it runs, once it has run.')),
    host: text('Where it runs.'),
    phase: text('What the service is doing with it.'),
    deletedAt: nullable(timestamp('When it was deleted.')),
  },
  { $id: 'OperatorNode', description: 'A node as the operator sees it.' },
)
export const OperatorNodeList = named(
  { nodes: Type.Array(OperatorNode) },
  { $id: 'OperatorNodeList', description: 'The nodes of all accounts.' },
)
export const Stats = named(
  {
    accounts: count('Accounts.'),
    keys: count('Keys that are not revoked.'),
    nodes: count('Nodes that are not deleted.'),
    nodesReady: count('Of them, ready.'),
    nodesFailed: count('Of them, failed.'),
    nodesDeleted: count('Deleted, and not purged yet.'),
    payments: count('Gateway payments.'),
    paymentsPaid: count('Of them, paid.'),
    rowsUnderPreviousKey: count('Secrets that are still sealed under the previous master key.'),
  },
  { $id: 'Stats', description: 'Counts and totals of the service.' },
)

const ofOperator = { tag: 'Operator', caller: 'operator', status: 200 } as const

export const listAllNodes = operation({
  ...ofOperator,
  method: 'GET',
  path: '/operator/v1/nodes',
  operationId: 'listAllNodes',
  summary: 'List the nodes of all accounts',
  response: OperatorNodeList,
  errors: [],
})
export const getStats = operation({
  ...ofOperator,
  method: 'GET',
  path: '/operator/v1/stats',
  operationId: 'getStats',
  summary: 'Get counts and totals',
  response: Stats,
  errors: [],
})
export const undeleteNode = operation({
  ...ofOperator,
  method: 'POST',
  path: '/operator/v1/nodes/{id}/undelete',
  operationId: 'undeleteNode',
  summary: 'Bring a deleted node back',
  description: 'Within the retention period. The node is stopped.',
  params: IdOfNode,
  response: Node,
  errors: ['node_not_found', 'operation_in_progress'],
})
