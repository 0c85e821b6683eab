import type { FastifyInstance } from 'fastify'
import { getReceived, getReceivedByNode } from '../../../../contract/src/dashboard/received.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { callOf } from './calls.ts'

export function dashboardReceivedRoutes({ received }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, getReceived, async (request) => received.overTime(callOf(request), request.query))
    addRoute(app, getReceivedByNode, async (request) => received.byNode(callOf(request)))
  }
}
