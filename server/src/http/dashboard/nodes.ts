import type { FastifyInstance } from 'fastify'
import {
  createOwnNode,
  deleteOwnNode,
  getOwnNode,
  getOwnNodeUpdates,
  listOwnNodes,
  renameOwnNode,
  restartOwnNode,
  startOwnNode,
  stopOwnNode,
  updateOwnNode,
} from '../../../../contract/src/dashboard/nodes.ts'
import {
  createNodeInvoice,
  getNodeInvoice,
  getNodeLive,
  listNodePayments,
  sendNodePayment,
} from '../../../../contract/src/dashboard/wallets.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { callOf, repeatableOf } from './calls.ts'

/** In the order of the public API's routes, followed by the node's wallet. */
export function dashboardNodeRoutes({ nodes, wallets }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, listOwnNodes, async (request) => ({ nodes: await nodes.list(callOf(request)) }))
    addRoute(app, createOwnNode, async (request) =>
      nodes.create(callOf(request), request.body, repeatableOf(request, 'POST /dashboard/api/nodes')),
    )
    addRoute(app, getOwnNode, async (request) => nodes.get(callOf(request), request.params.nodeId))
    addRoute(app, renameOwnNode, async (request) => nodes.rename(callOf(request), request.params.nodeId, request.body.name))
    addRoute(app, startOwnNode, async (request) => nodes.start(callOf(request), request.params.nodeId))
    addRoute(app, stopOwnNode, async (request) => nodes.stop(callOf(request), request.params.nodeId))
    addRoute(app, restartOwnNode, async (request) => nodes.restart(callOf(request), request.params.nodeId))
    addRoute(app, getOwnNodeUpdates, async (request) => nodes.updates(callOf(request), request.params.nodeId))
    addRoute(app, updateOwnNode, async (request) => nodes.update(callOf(request), request.params.nodeId, request.body.version))
    addRoute(app, deleteOwnNode, async (request) =>
      nodes.delete(callOf(request), request.params.nodeId, request.query.force === true),
    )

    addRoute(app, getNodeLive, async (request) => wallets.live(callOf(request), request.params.nodeId))
    addRoute(app, listNodePayments, async (request) => ({
      payments: await wallets.payments(callOf(request), request.params.nodeId),
    }))
    addRoute(app, createNodeInvoice, async (request) =>
      wallets.createInvoice(callOf(request), request.params.nodeId, request.body),
    )
    addRoute(app, getNodeInvoice, async (request) =>
      wallets.invoice(callOf(request), request.params.nodeId, request.params.paymentHash),
    )
    addRoute(app, sendNodePayment, async (request) => wallets.pay(callOf(request), request.params.nodeId, request.body))
  }
}
