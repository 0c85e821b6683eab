import type { FastifyInstance } from 'fastify'
import { getStats, listAllNodes, undeleteNode } from '../../../../contract/src/operator/nodes.ts'
import { fundSandboxNode, paySandboxInvoice, setSandboxFault } from '../../../../contract/src/operator/sandbox.ts'
import type { RouteDeps } from '../deps.ts'
import { requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

/** What operators can see and do about nodes. In the sandbox, they can also add play money, pay invoices and cause faults. */
export function operatorNodeRoutes({ limits, nodes, sandbox, stats }: RouteDeps, token: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(token, limits))
    addRoute(app, listAllNodes, async () => ({ nodes: await nodes.listAll() }))
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
