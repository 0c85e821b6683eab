import type { FastifyInstance } from 'fastify'
import {
  createOwnPayment,
  fundOwnNode,
  payFromTestWallet,
  redeemOwnPayment,
  validateOwnPayment,
} from '../../../../contract/src/dashboard/payments.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { requireCredential } from '../v1/payments.ts'
import { callOf } from './calls.ts'

/**
 * The try-it panel: a complete 402 flow through the same gateway, under the rules of the public API. Each of these calls uses a node, so
 * the limit for node operations applies.
 */
export function dashboardTryItRoutes({ payments, validation, sandbox }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, createOwnPayment, async (request) => payments.create(callOf(request), request.body))
    addRoute(app, validateOwnPayment, async (request) => validation.validate(callOf(request), request.params.id, request.body), {
      preValidation: [requireCredential(validateOwnPayment)],
    })
    addRoute(app, redeemOwnPayment, async (request) => validation.redeem(callOf(request), request.params.id, request.body), {
      preValidation: [requireCredential(redeemOwnPayment)],
    })
    if (!sandbox) return

    addRoute(app, fundOwnNode, async ({ person, params, body }) => sandbox.fund(params.id, body.amountSat, person.accountId))
    addRoute(app, payFromTestWallet, async ({ person, body }) => sandbox.payFromTestWallet(person.accountId, body.invoice))
  }
}
