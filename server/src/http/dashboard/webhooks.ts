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

/** An open page fetches these again whenever something happens, so they do not count as operations. */
export function dashboardWebhookRoutes({ webhooks }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, listOwnWebhooks, async (request) => ({ webhooks: await webhooks.list(callOf(request)) }))
    addRoute(app, getOwnWebhook, async (request) => webhooks.get(callOf(request), request.params.webhookId))
    addRoute(app, listOwnDeliveries, async (request) =>
      webhooks.deliveries(callOf(request), request.params.webhookId, request.query),
    )
  }
}

/** As in the public API, the limit for node operations applies (C55). */
export function dashboardWebhookActionRoutes({ webhooks }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, createOwnWebhook, async (request) => webhooks.create(callOf(request), request.body))
    addRoute(app, changeOwnWebhook, async (request) => webhooks.change(callOf(request), request.params.webhookId, request.body))
    addRoute(app, deleteOwnWebhook, async (request) => webhooks.delete(callOf(request), request.params.webhookId))
    addRoute(app, rotateOwnWebhookSecret, async (request) =>
      webhooks.rotateSecret(callOf(request), request.params.webhookId, request.body.graceSeconds ?? 0),
    )
    addRoute(app, testOwnWebhook, async (request) => webhooks.test(callOf(request), request.params.webhookId, request.body.type))
    addRoute(app, redeliverOwnEvent, async (request) =>
      webhooks.redeliver(callOf(request), request.params.webhookId, request.params.deliveryId),
    )
    addRoute(app, replayOwnEvents, async (request) => webhooks.replay(callOf(request), request.params.webhookId, request.body))
  }
}
