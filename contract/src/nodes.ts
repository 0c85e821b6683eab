import { type Static, Type } from 'typebox'
import { operation } from './operation.ts'
import { flag, NodeId, NoParams, named, nullable, strict, text, timestamp } from './schemas.ts'

export const NodeStatus = Type.Enum(['provisioning', 'ready', 'stopped', 'failed'], {
  $id: 'NodeStatus',
  description: 'A node is usable once it is `ready`.',
})
export type NodeStatus = Static<typeof NodeStatus>
export const UpdateStatus = Type.Enum(['updating', 'updated', 'failed'], {
  $id: 'UpdateStatus',
  description: 'The state of the node’s last software update.',
})
export const AutoLiquidity = Type.Enum(['2m', '5m', '10m'], {
  $id: 'AutoLiquidity',
  description: 'How much inbound liquidity the node buys when it runs short, in millions of satoshis.',
})
export const AccessMode = Type.Enum(['limited', 'full'], {
  $id: 'AccessMode',
  description: 'What the dashboard can do with the node: read and create invoices, or also send payments.',
})

/** C14: exactly these nine fields, in this order. The serializer drops any other field of a domain object. */
export const nodeFields = {
  id: text('Id of the node, `node_…`.'),
  name: Type.String({ minLength: 1, maxLength: 16, description: 'Display name.' }),
  status: NodeStatus,
  endpointUrl: text('URL of the node’s own payment API.'),
  failureMessage: nullable(text('Why the node failed and what to do about it; null in every other status.')),
  updateStatus: nullable(UpdateStatus),
  updateCompletedAt: nullable(timestamp('When the last update finished.')),
  createdAt: timestamp('When it was created.'),
  updatedAt: timestamp('When another field last changed.'),
}
const example = {
  id: 'node_01hgw2bbg0000000000a',
  name: 'Node 1',
  status: 'ready',
  endpointUrl: 'http://127.0.0.1:8402/n/node_01hgw2bbg0000000000a',
  failureMessage: null,
  updateStatus: null,
  updateCompletedAt: null,
  createdAt: 1767225600,
  updatedAt: 1767225604,
}
export const Node = named(nodeFields, { $id: 'Node', description: 'A Lightning node.', examples: [example] })
export type Node = Static<typeof Node>

export const Credentials = named(
  {
    seed: text('Twelve recovery words. They cannot be retrieved later.'),
    password: text('Full access to the node’s own API.'),
    restrictedPassword: text('Access to the node’s own API without sending payments.'),
  },
  {
    $id: 'Credentials',
    description:
      'Returned only by the call that creates the node, and by its repeat with the same `Idempotency-Key`. Store them before you do anything else.',
  },
)
export type Credentials = Static<typeof Credentials>
export const CreatedNode = named(
  { node: Node, credentials: Credentials },
  {
    $id: 'CreatedNode',
    description: 'A new node and its credentials.',
    examples: [
      {
        node: { ...example, status: 'provisioning', updatedAt: example.createdAt },
        credentials: { seed: 'twelve recovery words …', password: '64 hex digits', restrictedPassword: '64 hex digits' },
      },
    ],
  },
)
export const NodeList = named(
  { nodes: Type.Array(Node) },
  { $id: 'NodeList', description: 'All nodes of the account, oldest first.', examples: [{ nodes: [example] }] },
)
export const NodeUpdates = named(
  {
    currentVersion: text('The version the node runs.'),
    latestVersion: text('The latest version in the catalog.'),
    updateAvailable: flag('Whether the latest version is newer than the current one, and this installation can update nodes.'),
    lastUpdateError: nullable(text('Why the last update failed; null if it did not.')),
  },
  {
    $id: 'NodeUpdates',
    description: 'The version a node runs, and the latest one available.',
    examples: [{ currentVersion: '0.7.3', latestVersion: '0.8.0', updateAvailable: true, lastUpdateError: null }],
  },
)
export type NodeUpdates = Static<typeof NodeUpdates>

const name = 'At most 16 characters after trimming; no control characters, bidirectional controls or zero-width spaces.'
export const CreateNodeParams = strict(
  {
    name: Type.Optional(text(`${name} Defaults to \`Node n\` if missing or blank.`)),
    autoLiquidity: Type.Optional(AutoLiquidity),
    accessMode: Type.Optional(AccessMode),
  },
  {
    $id: 'CreateNodeParams',
    description: 'Settings of a new node. `autoLiquidity` defaults to `2m` and `accessMode` to `limited`.',
    examples: [{ name: 'Kiosk' }],
  },
)
export const RenameNodeParams = strict(
  { name: text(`At least 1 character. ${name}`) },
  { $id: 'RenameNodeParams', description: 'The new name.', examples: [{ name: 'Shop' }] },
)
export const UpdateNodeParams = strict(
  { version: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Defaults to the latest version.' })) },
  { $id: 'UpdateNodeParams', description: 'Which version to update to.', examples: [{ version: '0.8.0' }] },
)
export const deleteNodeQuery = strict({
  force: Type.Optional(flag('Delete the node even if it holds funds. The funds can only be recovered with its seed.')),
})

const ofNodes = { tag: 'Nodes', caller: 'apiKey' } as const
const reading = { ...ofNodes, scope: 'nodes:read', status: 200 } as const
const writing = { ...ofNodes, scope: 'nodes:write' } as const

export const listNodes = operation({
  ...reading,
  method: 'GET',
  path: '/v1/nodes',
  operationId: 'listNodes',
  summary: 'List nodes',
  description: 'Returns all nodes of the account except deleted ones, oldest first.',
  response: NodeList,
  errors: [],
})
export const createNode = operation({
  ...writing,
  method: 'POST',
  path: '/v1/nodes',
  operationId: 'createNode',
  summary: 'Create a node',
  description: 'Returns immediately. The node is provisioned in the background and can be used once its status is `ready`.',
  takesIdempotencyKey: true,
  body: CreateNodeParams,
  status: 202,
  response: CreatedNode,
  errors: ['insufficient_credit', 'limit_reached', 'idempotency_conflict', 'operation_in_progress'],
})
export const getNode = operation({
  ...reading,
  method: 'GET',
  path: '/v1/nodes/{nodeId}',
  operationId: 'getNode',
  summary: 'Get a node',
  params: NodeId,
  response: Node,
  errors: ['node_not_found'],
})
export const renameNode = operation({
  ...writing,
  method: 'PATCH',
  path: '/v1/nodes/{nodeId}',
  operationId: 'renameNode',
  summary: 'Rename a node',
  params: NodeId,
  body: RenameNodeParams,
  status: 200,
  response: Node,
  errors: ['node_not_found'],
})

const action = {
  ...writing,
  method: 'POST',
  params: NodeId,
  body: NoParams,
  status: 200,
  response: Node,
} as const
export const startNode = operation({
  ...action,
  path: '/v1/nodes/{nodeId}/start',
  operationId: 'startNode',
  summary: 'Start a node and wait until it is ready',
  description: 'The node must be `stopped` or `failed`.',
  errors: ['node_not_found', 'invalid_node_state', 'operation_in_progress', 'insufficient_credit', 'payment_service_unavailable'],
})
export const stopNode = operation({
  ...action,
  path: '/v1/nodes/{nodeId}/stop',
  operationId: 'stopNode',
  summary: 'Stop a node and wait until its process is gone',
  description: 'The node must be `ready` or `failed`.',
  errors: ['node_not_found', 'invalid_node_state', 'operation_in_progress', 'payment_service_unavailable'],
})
export const restartNode = operation({
  ...action,
  path: '/v1/nodes/{nodeId}/restart',
  operationId: 'restartNode',
  summary: 'Restart a node and wait until it is ready',
  description: 'The node must be `ready`. Its own API is unavailable during the restart.',
  errors: ['node_not_found', 'invalid_node_state', 'operation_in_progress', 'insufficient_credit', 'payment_service_unavailable'],
})
export const getNodeUpdates = operation({
  ...reading,
  method: 'GET',
  path: '/v1/nodes/{nodeId}/updates',
  operationId: 'getNodeUpdates',
  summary: 'Check for updates to a node’s software',
  params: NodeId,
  response: NodeUpdates,
  errors: ['node_not_found'],
})
export const updateNode = operation({
  ...writing,
  method: 'POST',
  path: '/v1/nodes/{nodeId}/update',
  operationId: 'updateNode',
  summary: 'Update a node’s software',
  description: 'Returns immediately with `updateStatus` `updating`, which later becomes `updated` or `failed`.',
  params: NodeId,
  body: UpdateNodeParams,
  status: 202,
  response: Node,
  errors: ['node_not_found', 'invalid_node_state', 'no_update_available', 'operation_in_progress'],
})
export const deleteNode = operation({
  ...writing,
  method: 'DELETE',
  path: '/v1/nodes/{nodeId}',
  operationId: 'deleteNode',
  summary: 'Delete a node',
  description: 'Works in any status. The operator can restore the node until the retention period ends.',
  params: NodeId,
  query: deleteNodeQuery,
  status: 204,
  errors: ['node_not_found', 'node_has_funds', 'operation_in_progress', 'payment_service_unavailable'],
})
