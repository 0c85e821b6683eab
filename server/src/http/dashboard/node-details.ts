import type { FastifyInstance } from 'fastify'
import { getNodeLog, getNodeReceiving } from '../../../../contract/src/dashboard/node-details.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { callOf } from './calls.ts'

export function dashboardNodeDetailRoutes({ nodeLogs, wallets }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, getNodeLog, async (request) => nodeLogs.tail(callOf(request), request.params.nodeId))
    addRoute(app, getNodeReceiving, async (request) => wallets.receiving(callOf(request), request.params.nodeId))
  }
}
