import { Type } from 'typebox'
import { Node, nodeFields } from '../nodes.ts'
import { operation } from '../operation.ts'
import { count, named, nullable, text, timestamp } from '../schemas.ts'

export const IdOfNode = Type.Object({ id: text('Id of a node, `node_…`.') })

export const OperatorNode = named(
  {
    ...nodeFields,
    accountId: text('The account it belongs to, `acct_…`.'),
    version: nullable(text('The version it runs; null if it has never run.')),
    host: text('The host it runs on.'),
    phase: text('What the service last observed, such as `running` or `exited`.'),
    deletedAt: nullable(timestamp('When it was deleted.')),
    releasedAt: nullable(timestamp('When it was released to another installation. It cannot be restored.')),
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
    nodesReady: count('Nodes that are ready.'),
    nodesFailed: count('Nodes that have failed.'),
    nodesDeleted: count('Nodes that are deleted but not purged yet.'),
    payments: count('Gateway payments.'),
    paymentsPaid: count('Gateway payments that are paid.'),
    rowsUnderPreviousKey: count('Secrets that are still sealed under the previous master key.'),
  },
  { $id: 'Stats', description: 'Totals across all accounts.' },
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
  summary: 'Get totals across all accounts',
  response: Stats,
  errors: [],
})
export const undeleteNode = operation({
  ...ofOperator,
  method: 'POST',
  path: '/operator/v1/nodes/{id}/undelete',
  operationId: 'undeleteNode',
  summary: 'Restore a deleted node',
  description: 'Works until the retention period ends, unless the node was released. The restored node is stopped.',
  params: IdOfNode,
  response: Node,
  errors: ['node_not_found', 'operation_in_progress'],
})
