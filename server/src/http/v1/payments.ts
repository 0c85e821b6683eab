import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest, preValidationHookHandler } from 'fastify'
import type { TObject } from 'typebox'
import {
  confirmDeliveries,
  createPayment,
  createPaymentBatch,
  exportPayments,
  getPayment,
  listPayments,
  redeemPayment,
  releasePayment,
  validatePayment,
} from '../../../../contract/src/gateway.ts'
import type { Call } from '../../gateway/payments.ts'
import type { Repeatable } from '../../idempotency.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

export const CSV_HEADERS = {
  'content-type': 'text/csv; charset=utf-8; header=present',
  'content-disposition': 'attachment; filename="payments.csv"',
}

export function gatewayRoutes({ keys, limits, payments, paymentSearch, validation, deliveries }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireKey(keys, limits, 'gateway:write'))

    addRoute(
      app,
      createPayment,
      async (request) => payments.create(callOf(request), request.body, repeatableOf(request, 'POST /v1/gateway/payments')),
      { onRequest: limits.creations ? [limits.creations] : [] },
    )
    addRoute(
      app,
      createPaymentBatch,
      async (request) => {
        // `onRequest` has counted the first payment, before the body was read.
        for (const _ of request.body.protocols.slice(1)) await limits.creations?.(request)
        const repeatable = repeatableOf(request, 'POST /v1/gateway/payments/batch')
        return { payments: await payments.createBatch(callOf(request), request.body, repeatable) }
      },
      { onRequest: limits.creations ? [limits.creations] : [] },
    )
    addRoute(app, validatePayment, async (request) => validation.validate(callOf(request), request.params.id, request.body), {
      preValidation: [requireCredential(validatePayment)],
    })
    addRoute(app, redeemPayment, async (request) => validation.redeem(callOf(request), request.params.id, request.body), {
      preValidation: [requireCredential(redeemPayment)],
    })
    addRoute(app, confirmDeliveries, async (request) => ({
      deliveries: await deliveries.confirm(callOf(request), request.body.deliveries),
    }))
    addRoute(app, releasePayment, async (request) => {
      const { requestId, reason } = request.body
      return deliveries.release(callOf(request), { id: request.params.id, requestId }, reason)
    })
    addRoute(app, exportPayments, async (request, reply) =>
      reply.headers(CSV_HEADERS).send(Readable.from(paymentSearch.csv(callOf(request), request.query))),
    )
    addRoute(app, getPayment, async (request) => payments.get(callOf(request), request.params.id))
    addRoute(app, listPayments, async (request) => payments.list(callOf(request), request.query))
  }
}

export const callOf = ({ caller }: Pick<FastifyRequest, 'caller'>): Call => ({ accountId: caller.accountId, actor: caller.id })

const repeatableOf = (request: FastifyRequest, route: string): Repeatable => ({
  key: request.headers['idempotency-key']?.toString(),
  callerId: request.caller.id,
  secret: request.presentedKey,
  route,
  body: request.body,
})

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
            'The field "credential" must be a string: the value of the customer’s Authorization or PAYMENT-SIGNATURE header.',
          ),
    )
  }
}
