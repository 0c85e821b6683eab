import { type Static, Type } from 'typebox'
import { Node, nodeFields } from '../nodes.ts'
import { operation } from '../operation.ts'
import { boundedText, count, flag, NextCursor, named, nullable, strict, text, timestamp } from '../schemas.ts'
import { pagingFields } from './paging.ts'

export const IdOfNode = Type.Object({ id: text('Id of a node, `node_…`.') })

export const OperatorNode = named(
  {
    ...nodeFields,
    accountId: text('The account it belongs to, `acct_…`.'),
    accountName: text('The name of that account.'),
    version: nullable(text('The version it runs; null if it has never run.')),
    host: text('The host it runs on.'),
    phase: text('What the service last observed, such as `running` or `exited`.'),
    deletedAt: nullable(timestamp('When it was deleted.')),
    releasedAt: nullable(timestamp('When it was released to another installation. It cannot be restored.')),
    isRestorable: flag('It is deleted, and its data is still kept: `undelete` restores it.'),
    purgesAt: nullable(timestamp('When the data of a restorable node will be removed for good; otherwise null.')),
    operation: nullable(text('The operation in progress, such as `start`.')),
    isSilent: flag('It is ready, but did not respond to the last check.'),
  },
  { $id: 'OperatorNode', description: 'A node as the operator sees it.' },
)
export const OperatorNodeList = named(
  { nodes: Type.Array(OperatorNode), nextCursor: NextCursor },
  { $id: 'OperatorNodeList', description: 'Nodes of all accounts.' },
)
export type OperatorNode = Static<typeof OperatorNode>
const nodeQuery = strict({
  search: Type.Optional(boundedText('Part of a name, or the id of a node.')),
  accountId: Type.Optional(boundedText('Only nodes of this account.')),
  state: Type.Optional(
    Type.Enum(['live', 'failed', 'restorable'], {
      description:
        '`live`: not deleted. `failed`: not deleted, and failed or not responding. `restorable`: deleted and still kept.',
    }),
  ),
  ...pagingFields,
})
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
export type Stats = Static<typeof Stats>

const ofOperator = { tag: 'Operator', caller: 'operator', status: 200 } as const

export const listAllNodes = operation({
  ...ofOperator,
  method: 'GET',
  path: '/operator/v1/nodes',
  operationId: 'listAllNodes',
  summary: 'List the nodes of all accounts',
  description: 'All of them in one response, deleted ones included, unless the query says otherwise.',
  query: nodeQuery,
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
