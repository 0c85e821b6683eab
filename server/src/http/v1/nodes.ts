import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  createNode,
  deleteNode,
  getNode,
  getNodeUpdates,
  listNodes,
  renameNode,
  restartNode,
  startNode,
  stopNode,
  updateNode,
} from '../../../../contract/src/nodes.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

export function nodeRoutes({ keys, limits, nodes }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', limits.nodes)
    const reads = { onRequest: [requireKey(keys, limits, 'nodes:read')] }
    const writes = { onRequest: [requireKey(keys, limits, 'nodes:write')] }
    const call = ({ caller }: Pick<FastifyRequest, 'caller'>) => ({ accountId: caller.accountId, actor: caller.id })

    addRoute(app, listNodes, async (request) => ({ nodes: await nodes.listPublic(call(request)) }), reads)
    addRoute(
      app,
      createNode,
      async (request) => {
        const repeatable = {
          key: request.headers['idempotency-key']?.toString(),
          callerId: request.caller.id,
          secret: request.presentedKey,
          route: 'POST /v1/nodes',
          body: request.body,
        }
        return nodes.create(call(request), request.body, repeatable)
      },
      writes,
    )
    addRoute(app, getNode, async (request) => nodes.get(call(request), request.params.nodeId), reads)
    addRoute(app, renameNode, async (request) => nodes.rename(call(request), request.params.nodeId, request.body.name), writes)
    addRoute(app, startNode, async (request) => nodes.start(call(request), request.params.nodeId), writes)
    addRoute(app, stopNode, async (request) => nodes.stop(call(request), request.params.nodeId), writes)
    addRoute(app, restartNode, async (request) => nodes.restart(call(request), request.params.nodeId), writes)
    addRoute(app, getNodeUpdates, async (request) => nodes.updates(call(request), request.params.nodeId), reads)
    addRoute(app, updateNode, async (request) => nodes.update(call(request), request.params.nodeId, request.body.version), writes)
    addRoute(
      app,
      deleteNode,
      async (request) => nodes.delete(call(request), request.params.nodeId, request.query.force === true),
      writes,
    )
  }
}
