import type { FastifyInstance, FastifyRequest, preValidationHookHandler } from 'fastify'
import type { Static, TObject } from 'typebox'
import {
  confirmDeliveries,
  createPayment,
  getPayment,
  listPayments,
  redeemPayment,
  releasePayment,
  validatePayment,
} from '../../../../contract/src/gateway.ts'
import { DEFAULT_PAGE_SIZE, type ListPaymentsParams } from '../../../../contract/src/payments.ts'
import { isId } from '../../platform/ids.ts'
import { Problem } from '../../problems.ts'
import type { PaymentFilter } from '../../store/payments/payments.ts'
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
    addRoute(app, getPayment, async (request) => payments.get(call(request), request.params.id))
    addRoute(app, listPayments, async (request) => {
      const filter = filterOf(request.query)
      return filter ? payments.list(call(request), filter) : { payments: [], nextCursor: null }
    })
  }
}

/** Undefined: nothing can match it. */
export function filterOf(params: Static<typeof ListPaymentsParams>): PaymentFilter | undefined {
  const { limit = DEFAULT_PAGE_SIZE, cursor, status, delivery, nodeId } = params
  if (cursor !== undefined && !isId('pay', cursor)) throw badCursor()
  // What is no id names no node: nothing was ever paid to it.
  if (nodeId !== undefined && !isId('node', nodeId)) return undefined
  return {
    limit,
    ...(cursor === undefined ? {} : { before: cursor }),
    ...(status === undefined ? {} : { status }),
    ...(delivery === undefined ? {} : { delivery }),
    ...(nodeId === undefined ? {} : { nodeId }),
  }
}

export const badCursor = (): Problem =>
  new Problem('bad_request', 'The query parameter "cursor" must be the nextCursor of an earlier page.')

/** A credential that is missing is a wrong one; a body that is wrong otherwise is a bad request, and that goes first. */
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
