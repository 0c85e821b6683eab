import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { exportOwnPayments, listPaymentEvents, totalOwnPayments } from '../../../../contract/src/dashboard/payment-search.ts'
import { getOwnPayment, listOwnPayments } from '../../../../contract/src/dashboard/payments.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { CSV_HEADERS } from '../v1/payments.ts'
import { callOf } from './calls.ts'

export function dashboardPaymentRoutes({ paymentSearch }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, listOwnPayments, async (request) => paymentSearch.list(callOf(request), request.query))
    addRoute(app, totalOwnPayments, async (request) => paymentSearch.totals(callOf(request), request.query))
    addRoute(app, exportOwnPayments, async (request, reply) =>
      reply.headers(CSV_HEADERS).send(Readable.from(paymentSearch.csv(callOf(request), request.query))),
    )
    addRoute(app, getOwnPayment, async (request) => paymentSearch.get(callOf(request), request.params.id))
    addRoute(app, listPaymentEvents, async (request) => ({
      events: await paymentSearch.events(callOf(request), request.params.id),
    }))
  }
}
