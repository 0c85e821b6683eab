import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import type { Nodes } from '../../nodes/nodes.ts'
import { isId } from '../../platform/ids.ts'
import { Problem } from '../../problems.ts'
import type { Hub } from '../../sandbox/hub.ts'
import { findAnyNode, listAllNodes, type NodeRow, recordFunding } from '../../store/nodes.ts'
import { statsOf } from '../../store/stats.ts'
import type { RouteDeps } from '../deps.ts'
import { requireOperator } from '../hooks/auth.ts'
import { ErrorBody, strict } from '../schemas.ts'
import { NodeSchema } from '../v1/nodes.ts'
import { MAX_SAT } from '../v1/payments.ts'

const FAULTS = ['crash', 'hang', 'peer_down', 'slow', 'none'] as const
export const Fund = strict({ amountSat: Type.Integer({ minimum: 1, maximum: MAX_SAT }) })
export const SandboxPay = strict({ invoice: Type.String({ minLength: 1, maxLength: 4096 }) })
const Fault = strict({ fault: Type.Enum(FAULTS) })
const Id = Type.Object({ id: Type.String() })
type WithId = { Params: Static<typeof Id> }

/** What operators see and do about nodes; in the sandbox also money from nothing and faults on demand. */
export function operatorNodeRoutes(
  { sql, limits, nodes, hub, masterKeyId }: RouteDeps & { nodes: Nodes; hub: Hub | undefined },
  token: string,
) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(token, limits))
    const security = [{ operator: [] }]
    const errors = { 400: ErrorBody, 401: ErrorBody, 404: ErrorBody, 502: ErrorBody }
    const open = Type.Object({}, { additionalProperties: true })
    const view = (row: NodeRow) => ({
      ...nodes.view(row),
      accountId: row.accountId,
      version: row.version,
      host: row.host,
      phase: row.phase,
      deletedAt: row.deletedAt,
    })

    app.get(
      '/nodes',
      {
        schema: {
          summary: 'All nodes of all accounts',
          security,
          response: { 200: Type.Object({ nodes: Type.Array(open) }), ...errors },
        },
      },
      async () => ({
        nodes: (await listAllNodes(sql)).map(view),
      }),
    )
    app.get('/stats', { schema: { summary: 'Counts and totals', security, response: { 200: open, ...errors } } }, async () =>
      statsOf(sql, masterKeyId),
    )
    app.post<WithId>(
      '/nodes/:id/undelete',
      { schema: { summary: 'Bring a deleted node back', security, params: Id, response: { 200: NodeSchema, ...errors } } },
      async ({ params }) => nodes.undelete(params.id),
    )
    if (!hub) return

    const lightningId = async (id: string): Promise<string> => {
      const node = isId('node', id) && (await findAnyNode(sql, id))
      if (!node || node.deletedAt !== null) throw new Problem('node_not_found', 'There is no such node.')
      return node.lightningId
    }
    app.post<WithId & { Body: Static<typeof Fund> }>(
      '/sandbox/nodes/:id/fund',
      {
        schema: {
          summary: 'Give a sandbox node money',
          security,
          params: Id,
          body: Fund,
          response: { 200: Type.Object({ balanceSat: Type.Integer() }), ...errors },
        },
      },
      async ({ params, body }) => {
        const answer = await hub.fund(await lightningId(params.id), body.amountSat)
        // Known from now on, whatever happens before the next look at the node.
        await recordFunding(sql, params.id)
        return answer
      },
    )
    app.post<{ Body: Static<typeof SandboxPay> }>(
      '/sandbox/pay',
      {
        schema: {
          summary: 'Pay a sandbox invoice as a customer would',
          security,
          body: SandboxPay,
          response: { 200: Type.Object({ paymentHash: Type.String(), preimage: Type.String() }), ...errors },
        },
      },
      async ({ body }) => hub.pay(body.invoice, 'operator'),
    )
    app.post<WithId & { Body: Static<typeof Fault> }>(
      '/sandbox/nodes/:id/fault',
      { schema: { summary: 'Break a sandbox node', security, params: Id, body: Fault, response: { 200: open, ...errors } } },
      async ({ params, body }) => {
        await hub.fault(await lightningId(params.id), body.fault)
        return {}
      },
    )
  }
}
