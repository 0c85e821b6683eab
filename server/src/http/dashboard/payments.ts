import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { recordFunding } from '../../store/nodes.ts'
import type { RouteDeps } from '../deps.ts'
import { Fund, SandboxPay } from '../operator/nodes.ts'
import { nullable, strict } from '../schemas.ts'
import {
  CreatedPayment,
  CreatePayment,
  filterOf,
  Page,
  PaymentId,
  paid,
  Redeem,
  Redeemed,
  requireCredential,
  shown,
  Validate,
} from '../v1/payments.ts'
import { callOf } from './routes.ts'

const Delivery = Type.Enum(['none', 'held', 'done'])
const listed = { ...shown, delivery: Delivery }
/** Undelivered: the money is there, and nothing was delivered for it, whether or not the customer has come back. */
const Query = strict({ ...Page.properties, undelivered: Type.Optional(Type.Literal('true')) })

type Id = { Params: Static<typeof PaymentId> }

export function dashboardGatewayRoutes({ payments }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get<{ Querystring: Static<typeof Query> }>(
      '/payments',
      {
        schema: {
          querystring: Query,
          response: { 200: Type.Object({ payments: Type.Array(Type.Object(listed)), nextCursor: nullable(Type.String()) }) },
        },
      },
      async (request) => {
        const { undelivered, ...query } = request.query
        const filter = filterOf(query)
        if (!filter) return { payments: [], nextCursor: null }
        return payments.list(callOf(request), undelivered ? { ...filter, delivery: 'none', isSettled: true } : filter)
      },
    )
    app.get<Id>(
      '/payments/:id',
      { schema: { params: PaymentId, response: { 200: Type.Object({ ...listed, challenge: Type.String() }) } } },
      async (request) => payments.get(callOf(request), request.params.id),
    )
  }
}

/** A panel to try a whole 402 in: by the rules of the public API, since it is the same gateway. Each of these keeps a node busy. */
export function dashboardTryItRoutes({ sql, payments, validation, nodes, hub, topUps }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.post<{ Body: Static<typeof CreatePayment> }>(
      '/payments',
      { schema: { body: CreatePayment, response: { 201: CreatedPayment } } },
      async (request, reply) => reply.code(201).send(await payments.create(callOf(request), request.body)),
    )
    app.post<Id & { Body: Static<typeof Validate> }>(
      '/payments/:id/validate',
      {
        preValidation: requireCredential(Validate),
        schema: { params: PaymentId, body: Validate, response: { 200: Type.Object(paid) } },
      },
      async (request) => validation.validate(callOf(request), request.params.id, request.body),
    )
    app.post<Id & { Body: Static<typeof Redeem> }>(
      '/payments/:id/redeem',
      {
        preValidation: requireCredential(Redeem),
        schema: { params: PaymentId, body: Redeem, response: { 200: Redeemed } },
      },
      async (request) => validation.redeem(callOf(request), request.params.id, request.body),
    )
    if (!hub) return

    app.post<Id & { Body: Static<typeof Fund> }>(
      '/sandbox/nodes/:id/fund',
      { schema: { params: PaymentId, body: Fund, response: { 200: Type.Object({ balanceSat: Type.Integer() }) } } },
      async (request) => {
        const answer = await hub.fund(await nodes.lightningId(callOf(request), request.params.id), request.body.amountSat)
        // Known from now on, whatever happens before the next look at the node.
        await recordFunding(sql, request.params.id)
        return answer
      },
    )
    app.post<{ Body: Static<typeof SandboxPay> }>(
      '/sandbox/pay',
      {
        schema: {
          body: SandboxPay,
          response: { 200: Type.Object({ paymentHash: Type.String(), preimage: Type.String() }) },
        },
      },
      async (request) => {
        await topUps.refuseFromTestWallet(request.body.invoice)
        return hub.pay(request.body.invoice, callOf(request).accountId)
      },
    )
  }
}
