import { type Static, Type } from 'typebox'
import {
  AccessMode,
  CreateNodeParams,
  Credentials,
  deleteNodeQuery,
  NodeUpdates,
  nodeFields,
  RenameNodeParams,
  UpdateNodeParams,
} from '../nodes.ts'
import { operation } from '../operation.ts'
import { flag, NodeId, NoParams, named, nullable, text, timestamp } from '../schemas.ts'

export const DashboardNode = named(
  {
    ...nodeFields,
    accessMode: AccessMode,
    autoLiquidity: text('The setting chosen when the node was created.'),
    operation: nullable(text('The operation that is running now.')),
    hasFunds: flag('Whether the node held funds when its channels were last seen online.'),
    updateAvailable: flag('Whether a newer version of the node’s software is available.'),
    isSilent: flag('Whether the node is ready but did not respond to the last check.'),
    version: nullable(text('The version it runs or ran last; null if it has never run.')),
    balanceSat: nullable(Type.Integer({ description: 'The last known balance; null if it was never known.' })),
    balanceAt: nullable(timestamp('When that was the balance.')),
    isBalanceOutdated: flag('Whether the node has received money since then.'),
    startedAt: nullable(timestamp('When its process was started; null unless it is ready.')),
  },
  { $id: 'DashboardNode', description: 'A node as its owner sees it: the public fields plus those only the dashboard shows.' },
)
export type DashboardNode = Static<typeof DashboardNode>
export const DashboardNodeList = named(
  { nodes: Type.Array(DashboardNode) },
  { $id: 'DashboardNodeList', description: 'All nodes of the account.' },
)
export const CreatedDashboardNode = named(
  { node: DashboardNode, credentials: Credentials },
  { $id: 'CreatedDashboardNode', description: 'A new node and its credentials.' },
)
export type CreatedDashboardNode = Static<typeof CreatedDashboardNode>

const ofPerson = { tag: 'Dashboard', caller: 'session' } as const
const oneNode = { ...ofPerson, params: NodeId, status: 200, response: DashboardNode } as const
const action = { ...oneNode, method: 'POST', body: NoParams } as const

export const listOwnNodes = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/nodes',
  operationId: 'listOwnNodes',
  summary: 'List nodes',
  status: 200,
  response: DashboardNodeList,
  errors: [],
})
export const createOwnNode = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/nodes',
  operationId: 'createOwnNode',
  summary: 'Create a node',
  takesIdempotencyKey: true,
  body: CreateNodeParams,
  status: 202,
  response: CreatedDashboardNode,
  errors: ['insufficient_credit', 'limit_reached', 'idempotency_conflict', 'operation_in_progress'],
})
export const getOwnNode = operation({
  ...oneNode,
  method: 'GET',
  path: '/dashboard/api/nodes/{nodeId}',
  operationId: 'getOwnNode',
  summary: 'Get a node',
  errors: ['node_not_found'],
})
export const renameOwnNode = operation({
  ...oneNode,
  method: 'PATCH',
  path: '/dashboard/api/nodes/{nodeId}',
  operationId: 'renameOwnNode',
  summary: 'Rename a node',
  body: RenameNodeParams,
  errors: ['node_not_found'],
})
export const startOwnNode = operation({
  ...action,
  path: '/dashboard/api/nodes/{nodeId}/start',
  operationId: 'startOwnNode',
  summary: 'Start a node',
  errors: ['node_not_found', 'invalid_node_state', 'operation_in_progress', 'insufficient_credit', 'payment_service_unavailable'],
})
export const stopOwnNode = operation({
  ...action,
  path: '/dashboard/api/nodes/{nodeId}/stop',
  operationId: 'stopOwnNode',
  summary: 'Stop a node',
  errors: ['node_not_found', 'invalid_node_state', 'operation_in_progress', 'payment_service_unavailable'],
})
export const restartOwnNode = operation({
  ...action,
  path: '/dashboard/api/nodes/{nodeId}/restart',
  operationId: 'restartOwnNode',
  summary: 'Restart a node',
  errors: ['node_not_found', 'invalid_node_state', 'operation_in_progress', 'insufficient_credit', 'payment_service_unavailable'],
})
export const getOwnNodeUpdates = operation({
  ...oneNode,
  method: 'GET',
  path: '/dashboard/api/nodes/{nodeId}/updates',
  operationId: 'getOwnNodeUpdates',
  summary: 'Check for updates to a node’s software',
  response: NodeUpdates,
  errors: ['node_not_found'],
})
export const updateOwnNode = operation({
  ...oneNode,
  method: 'POST',
  path: '/dashboard/api/nodes/{nodeId}/update',
  operationId: 'updateOwnNode',
  summary: 'Update a node’s software',
  body: UpdateNodeParams,
  status: 202,
  errors: ['node_not_found', 'invalid_node_state', 'no_update_available', 'operation_in_progress'],
})
export const deleteOwnNode = operation({
  ...ofPerson,
  method: 'DELETE',
  path: '/dashboard/api/nodes/{nodeId}',
  operationId: 'deleteOwnNode',
  summary: 'Delete a node',
  params: NodeId,
  query: deleteNodeQuery,
  body: NoParams,
  status: 204,
  errors: ['node_not_found', 'node_has_funds', 'operation_in_progress', 'payment_service_unavailable'],
})
