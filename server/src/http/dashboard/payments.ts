import type { FastifyInstance } from 'fastify'
import {
  createOwnPayment,
  fundOwnNode,
  getOwnPayment,
  listOwnPayments,
  payFromTestWallet,
  redeemOwnPayment,
  validateOwnPayment,
} from '../../../../contract/src/dashboard/payments.ts'
import { recordFunding } from '../../store/nodes/funds.ts'
import type { RouteDeps } from '../deps.ts'

import { addRoute } from '../route.ts'
import { filterOf, requireCredential } from '../v1/payments.ts'
import { callOf } from './calls.ts'

export function dashboardGatewayRoutes({ payments }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, listOwnPayments, async (request) => {
      const { undelivered, ...query } = request.query
      const filter = filterOf(query)
      if (!filter) return { payments: [], nextCursor: null }
      return payments.list(callOf(request), undelivered ? { ...filter, delivery: 'none', isSettled: true } : filter)
    })
    addRoute(app, getOwnPayment, async (request) => payments.get(callOf(request), request.params.id))
  }
}

/** A panel to try a whole 402 in: by the rules of the public API, since it is the same gateway. Each of these keeps a node busy. */
export function dashboardTryItRoutes({ sql, payments, validation, nodes, hub, topUps }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, createOwnPayment, async (request) => payments.create(callOf(request), request.body))
    addRoute(app, validateOwnPayment, async (request) => validation.validate(callOf(request), request.params.id, request.body), {
      preValidation: [requireCredential(validateOwnPayment)],
    })
    addRoute(app, redeemOwnPayment, async (request) => validation.redeem(callOf(request), request.params.id, request.body), {
      preValidation: [requireCredential(redeemOwnPayment)],
    })
    if (!hub) return

    addRoute(app, fundOwnNode, async (request) => {
      const answer = await hub.fund(await nodes.lightningId(callOf(request), request.params.id), request.body.amountSat)
      // Known from now on, whatever happens before the next look at the node.
      await recordFunding(sql, request.params.id)
      return answer
    })
    addRoute(app, payFromTestWallet, async (request) => {
      await topUps.refuseFromTestWallet(request.body.invoice)
      return hub.pay(request.body.invoice, callOf(request).accountId)
    })
  }
}
