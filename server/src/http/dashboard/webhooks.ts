import type { FastifyInstance } from 'fastify'
import {
  changeOwnWebhook,
  createOwnWebhook,
  deleteOwnWebhook,
  getOwnWebhook,
  listOwnDeliveries,
  listOwnWebhooks,
  redeliverOwnEvent,
  replayOwnEvents,
  rotateOwnWebhookSecret,
  testOwnWebhook,
} from '../../../../contract/src/dashboard/webhooks.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { callOf } from './calls.ts'

/** In the order of the public API's routes. */
export function dashboardWebhookRoutes({ webhooks }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, createOwnWebhook, async (request) => webhooks.create(callOf(request), request.body))
    addRoute(app, listOwnWebhooks, async (request) => ({ webhooks: await webhooks.list(callOf(request)) }))
    addRoute(app, getOwnWebhook, async (request) => webhooks.get(callOf(request), request.params.webhookId))
    addRoute(app, changeOwnWebhook, async (request) => webhooks.change(callOf(request), request.params.webhookId, request.body))
    addRoute(app, deleteOwnWebhook, async (request) => webhooks.delete(callOf(request), request.params.webhookId))
    addRoute(app, rotateOwnWebhookSecret, async (request) =>
      webhooks.rotateSecret(callOf(request), request.params.webhookId, request.body.graceSeconds ?? 0),
    )
    addRoute(app, testOwnWebhook, async (request) => webhooks.test(callOf(request), request.params.webhookId, request.body.type))
    addRoute(app, listOwnDeliveries, async (request) =>
      webhooks.deliveries(callOf(request), request.params.webhookId, request.query),
    )
    addRoute(app, redeliverOwnEvent, async (request) =>
      webhooks.redeliver(callOf(request), request.params.webhookId, request.params.deliveryId),
    )
    addRoute(app, replayOwnEvents, async (request) => webhooks.replay(callOf(request), request.params.webhookId, request.body))
  }
}
