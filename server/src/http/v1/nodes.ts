import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import type { Nodes } from '../../nodes/nodes.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { ErrorBody, nullable, strict, Timestamp } from '../schemas.ts'

/** Exactly these are sent: what else a view holds the serialiser leaves out (C14). */
export const NodeSchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  status: Type.Enum(['provisioning', 'ready', 'stopped', 'failed']),
  endpointUrl: Type.String(),
  failureMessage: nullable(Type.String()),
  updateStatus: nullable(Type.Enum(['updating', 'updated', 'failed'])),
  updateCompletedAt: nullable(Timestamp),
  createdAt: Timestamp,
  updatedAt: Timestamp,
})
export const Credentials = Type.Object({ seed: Type.String(), password: Type.String(), restrictedPassword: Type.String() })
export const CreateNode = strict({
  name: Type.Optional(Type.String()),
  autoLiquidity: Type.Optional(Type.Enum(['2m', '5m', '10m'])),
  accessMode: Type.Optional(Type.Enum(['limited', 'full'])),
})
export const Rename = strict({ name: Type.String() })
export const Update = strict({ version: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })) })
export const Nothing = strict({})
export const Updates = Type.Object({
  currentVersion: Type.String(),
  latestVersion: Type.String(),
  updateAvailable: Type.Boolean(),
  lastUpdateError: nullable(Type.String()),
})
/** Paying the invoice credits the account by itself, with its amount. */
export const NoCredit = Type.Object({
  error: Type.Object(
    {
      code: Type.String(),
      message: Type.String(),
      topUp: Type.Optional(Type.Object({ amountSat: Type.Integer(), invoice: Type.String(), expiresAt: Timestamp })),
    },
    { additionalProperties: true },
  ),
})
export const NodeId = Type.Object({ nodeId: Type.String() })
export const Force = strict({ force: Type.Optional(Type.Enum(['true', 'false'])) })

type Id = { Params: Static<typeof NodeId> }

export function nodeRoutes({ keys, limits, nodes }: RouteDeps & { nodes: Nodes }) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', limits.nodes)
    // Where every field is optional so is the body. JSON null is a body, and a wrong one.
    app.addHook('preValidation', async (request) => {
      if (request.body === undefined && request.method !== 'GET') request.body = {}
    })
    const read = requireKey(keys, limits, 'nodes:read')
    const write = requireKey(keys, limits, 'nodes:write')
    const call = ({ caller }: FastifyRequest) => ({ accountId: caller.accountId, actor: caller.id })
    const security = [{ apiKey: [] }]
    const errors = { 400: ErrorBody, 401: ErrorBody, 404: ErrorBody, 429: ErrorBody, 503: ErrorBody }
    const changes = { ...errors, 409: ErrorBody, 502: ErrorBody }

    app.get(
      '',
      {
        onRequest: read,
        schema: { summary: 'List nodes', security, response: { 200: Type.Object({ nodes: Type.Array(NodeSchema) }), ...errors } },
      },
      async (request) => ({
        nodes: await nodes.list(call(request)),
      }),
    )
    app.post<{ Body: Static<typeof CreateNode> }>(
      '',
      {
        onRequest: write,
        schema: {
          summary: 'Create a node',
          security,
          body: CreateNode,
          response: { 202: Type.Object({ node: NodeSchema, credentials: Credentials }), ...changes, 402: NoCredit },
        },
      },
      async (request, reply) => {
        const header = request.headers['idempotency-key']
        const repeatable = {
          key: header?.toString(),
          callerId: request.caller.id,
          secret: request.presentedKey,
          route: 'POST /v1/nodes',
          body: request.body,
        }
        return reply.code(202).send(await nodes.create(call(request), request.body, repeatable))
      },
    )
    app.get<Id>(
      '/:nodeId',
      { onRequest: read, schema: { summary: 'One node', security, params: NodeId, response: { 200: NodeSchema, ...errors } } },
      async (request) => nodes.get(call(request), request.params.nodeId),
    )
    app.patch<Id & { Body: Static<typeof Rename> }>(
      '/:nodeId',
      {
        onRequest: write,
        schema: { summary: 'Rename a node', security, params: NodeId, body: Rename, response: { 200: NodeSchema, ...errors } },
      },
      async (request) => nodes.rename(call(request), request.params.nodeId, request.body.name),
    )
    for (const action of ['start', 'stop', 'restart'] as const) {
      app.post<Id>(
        `/:nodeId/${action}`,
        {
          onRequest: write,
          schema: {
            summary: `${action[0]?.toUpperCase()}${action.slice(1)} a node, and wait for it`,
            security,
            params: NodeId,
            body: Nothing,
            response: { 200: NodeSchema, ...changes, 402: NoCredit },
          },
        },
        async (request) => nodes[action](call(request), request.params.nodeId),
      )
    }
    app.get<Id>(
      '/:nodeId/updates',
      {
        onRequest: read,
        schema: { summary: 'Is there a newer version', security, params: NodeId, response: { 200: Updates, ...errors } },
      },
      async (request) => nodes.updates(call(request), request.params.nodeId),
    )
    app.post<Id & { Body: Static<typeof Update> }>(
      '/:nodeId/update',
      {
        onRequest: write,
        schema: {
          summary: 'Update a node’s software',
          security,
          params: NodeId,
          body: Update,
          response: { 202: NodeSchema, ...changes },
        },
      },
      async (request, reply) =>
        reply.code(202).send(await nodes.update(call(request), request.params.nodeId, request.body.version)),
    )
    app.delete<Id & { Querystring: Static<typeof Force> }>(
      '/:nodeId',
      {
        onRequest: write,
        schema: {
          summary: 'Delete a node',
          security,
          params: NodeId,
          querystring: Force,
          response: { 204: Type.Null(), ...changes },
        },
      },
      async (request, reply) => {
        await nodes.delete(call(request), request.params.nodeId, request.query.force === 'true')
        return reply.code(204).send()
      },
    )
  }
}
