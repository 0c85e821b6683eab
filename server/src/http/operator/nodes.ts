import type { FastifyInstance } from 'fastify'
import { getStats, listAllNodes as listAllNodesOperation, undeleteNode } from '../../../../contract/src/operator/nodes.ts'
import { fundSandboxNode, paySandboxInvoice, setSandboxFault } from '../../../../contract/src/operator/sandbox.ts'
import { isId } from '../../platform/ids.ts'
import { Problem } from '../../problems.ts'
import { recordFunding } from '../../store/nodes/funds.ts'
import { findAnyNode, listAllNodes, type NodeRow } from '../../store/nodes/nodes.ts'
import { statsOf } from '../../store/stats.ts'
import type { RouteDeps } from '../deps.ts'
import { requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

/** What operators see and do about nodes; in the sandbox also money from nothing and faults on demand. */
export function operatorNodeRoutes({ sql, limits, nodes, hub, masterKeyId }: RouteDeps, token: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(token, limits))
    const view = (row: NodeRow) => ({
      ...nodes.view(row),
      accountId: row.accountId,
      version: row.version,
      host: row.host,
      phase: row.phase,
      deletedAt: row.deletedAt,
    })

    addRoute(app, listAllNodesOperation, async () => ({ nodes: (await listAllNodes(sql)).map(view) }))
    addRoute(app, getStats, async () => statsOf(sql, masterKeyId))
    addRoute(app, undeleteNode, async ({ params }) => nodes.undelete(params.id))
    if (!hub) return

    const lightningId = async (id: string): Promise<string> => {
      const node = isId('node', id) && (await findAnyNode(sql, id))
      if (!node || node.deletedAt !== null) throw new Problem('node_not_found', 'There is no such node.')
      return node.lightningId
    }
    addRoute(app, fundSandboxNode, async ({ params, body }) => {
      const answer = await hub.fund(await lightningId(params.id), body.amountSat)
      // Known from now on, whatever happens before the next look at the node.
      await recordFunding(sql, params.id)
      return answer
    })
    addRoute(app, paySandboxInvoice, async ({ body }) => hub.pay(body.invoice, 'operator'))
    addRoute(app, setSandboxFault, async ({ params, body }) => {
      await hub.fault(await lightningId(params.id), body.fault)
      return {}
    })
  }
}
