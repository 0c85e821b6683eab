import type { FastifyInstance } from 'fastify'
import { getStats, listAllNodes, undeleteNode } from '../../../../contract/src/operator/nodes.ts'
import { fundSandboxNode, paySandboxInvoice, setSandboxFault } from '../../../../contract/src/operator/sandbox.ts'
import { type OperatorDeps, requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

/** What operators can see and do about nodes. In the sandbox, they can also add play money, pay invoices and cause faults. */
export function operatorNodeRoutes(deps: OperatorDeps) {
  const { nodes, sandbox, stats } = deps
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(deps))
    addRoute(app, listAllNodes, async ({ query }) => nodes.listAll(query))
    addRoute(app, getStats, async () => stats())
    addRoute(app, undeleteNode, async ({ params }) => nodes.undelete(params.id))
    if (!sandbox) return

    addRoute(app, fundSandboxNode, async ({ params, body }) => sandbox.fund(params.id, body.amountSat))
    addRoute(app, paySandboxInvoice, async ({ body }) => sandbox.pay(body.invoice))
    addRoute(app, setSandboxFault, async ({ params, body }) => {
      await sandbox.fault(params.id, body.fault)
      return {}
    })
  }
}
