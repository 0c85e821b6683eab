import type { FastifyInstance } from 'fastify'
import { redeemPaymentByInvoice, validatePaymentByInvoice } from '../../../../contract/src/gateway.ts'
import { listPaymentKinds, settlePayment, verifyPayment } from '../../../../contract/src/x402.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'
import { callOf, requireCredential } from './payments.ts'

export function x402Routes({ keys, limits, x402 }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireKey(keys, limits, 'gateway:write'))
    addRoute(app, redeemPaymentByInvoice, async (request) => x402.redeem(callOf(request), request.body), {
      preValidation: [requireCredential(redeemPaymentByInvoice)],
    })
    addRoute(app, validatePaymentByInvoice, async (request) => x402.validate(callOf(request), request.body), {
      preValidation: [requireCredential(validatePaymentByInvoice)],
    })
    addRoute(app, listPaymentKinds, async () => x402.supported())
    addRoute(app, verifyPayment, async (request) => x402.verify(callOf(request), request.body))
    addRoute(app, settlePayment, async (request) => x402.settle(callOf(request), request.body))
  }
}
