import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  getWebhook,
  listDeliveries,
  listWebhooks,
  redeliverEvent,
  replayEvents,
  rotateWebhookSecret,
  testWebhook,
} from '../../../../contract/src/webhooks.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

export function webhookRoutes({ keys, limits, webhooks }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', limits.nodes)
    app.addHook('onRequest', requireKey(keys, limits, 'webhooks:write'))
    const call = ({ caller }: Pick<FastifyRequest, 'caller'>) => ({ accountId: caller.accountId, actor: caller.id })

    addRoute(app, createWebhook, async (request) => webhooks.create(call(request), request.body))
    addRoute(app, listWebhooks, async (request) => ({ webhooks: await webhooks.list(call(request)) }))
    addRoute(app, getWebhook, async (request) => webhooks.get(call(request), request.params.webhookId))
    addRoute(app, changeWebhook, async (request) => webhooks.change(call(request), request.params.webhookId, request.body))
    addRoute(app, deleteWebhook, async (request) => webhooks.delete(call(request), request.params.webhookId))
    addRoute(app, rotateWebhookSecret, async (request) =>
      webhooks.rotateSecret(call(request), request.params.webhookId, request.body.graceSeconds ?? 0),
    )
    addRoute(app, testWebhook, async (request) => webhooks.test(call(request), request.params.webhookId, request.body.type))
    addRoute(app, listDeliveries, async (request) => webhooks.deliveries(call(request), request.params.webhookId, request.query))
    addRoute(app, redeliverEvent, async (request) =>
      webhooks.redeliver(call(request), request.params.webhookId, request.params.deliveryId),
    )
    addRoute(app, replayEvents, async (request) => webhooks.replay(call(request), request.params.webhookId, request.body))
  }
}
