import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest, preValidationHookHandler } from 'fastify'
import type { TObject } from 'typebox'
import {
  confirmDeliveries,
  createPayment,
  exportPayments,
  getPayment,
  listPayments,
  redeemPayment,
  releasePayment,
  validatePayment,
} from '../../../../contract/src/gateway.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

export function gatewayRoutes({ keys, limits, payments, validation, deliveries }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireKey(keys, limits, 'gateway:write'))
    const call = ({ caller }: Pick<FastifyRequest, 'caller'>) => ({ accountId: caller.accountId, actor: caller.id })

    addRoute(
      app,
      createPayment,
      async (request) => {
        const repeatable = {
          key: request.headers['idempotency-key']?.toString(),
          callerId: request.caller.id,
          secret: request.presentedKey,
          route: 'POST /v1/gateway/payments',
          body: request.body,
        }
        return payments.create(call(request), request.body, repeatable)
      },
      { onRequest: limits.creations ? [limits.creations] : [] },
    )
    addRoute(app, validatePayment, async (request) => validation.validate(call(request), request.params.id, request.body), {
      preValidation: [requireCredential(validatePayment)],
    })
    addRoute(app, redeemPayment, async (request) => validation.redeem(call(request), request.params.id, request.body), {
      preValidation: [requireCredential(redeemPayment)],
    })
    addRoute(app, confirmDeliveries, async (request) => ({
      deliveries: await deliveries.confirm(call(request), request.body.deliveries),
    }))
    addRoute(app, releasePayment, async (request) => {
      const { requestId, reason } = request.body
      return deliveries.release(call(request), { id: request.params.id, requestId }, reason)
    })
    addRoute(app, exportPayments, async (request, reply) =>
      reply
        .headers({
          'content-type': 'text/csv; charset=utf-8; header=present',
          'content-disposition': 'attachment; filename="payments.csv"',
        })
        .send(Readable.from(payments.csv(call(request), request.query))),
    )
    addRoute(app, getPayment, async (request) => payments.get(call(request), request.params.id))
    addRoute(app, listPayments, async (request) => payments.list(call(request), request.query))
  }
}

/** A missing credential is an invalid credential. Any other invalid body is a bad request, which takes precedence. */
export function requireCredential({ body: schema }: { body: TObject }): preValidationHookHandler {
  return ({ body }, _reply, done) => {
    const isBad =
      typeof body !== 'object' ||
      body === null ||
      Array.isArray(body) ||
      Object.keys(body).some((name) => !Object.hasOwn(schema.properties, name))
    const isThere = isBad || typeof (body as { credential?: unknown }).credential === 'string'
    done(
      isThere
        ? undefined
        : new Problem(
            'invalid_payment_credential',
            'The field "credential" must be a string: the value of the customer’s Authorization header.',
          ),
    )
  }
}
