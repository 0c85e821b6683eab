import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import type { WalletPayment } from '../../lightning/phoenixd/wallet.ts'
import { READABLE_OR_EMPTY } from '../../platform/readable-text.ts'
import type { RouteDeps } from '../deps.ts'
import { nullable, strict, Timestamp } from '../schemas.ts'
import { CreateNode, Credentials, Force, NodeId, NodeSchema, Nothing, Rename, Update, Updates } from '../v1/nodes.ts'
import { MAX_SAT } from '../v1/payments.ts'
import { callOf, repeatableOf } from './routes.ts'

const DashboardNode = Type.Object({
  ...NodeSchema.properties,
  accessMode: Type.Enum(['limited', 'full']),
  autoLiquidity: Type.String(),
  operation: nullable(Type.String()),
  hasFunds: Type.Boolean(),
  isSilent: Type.Boolean(),
})
const Live = Type.Object({
  isReachable: Type.Boolean(),
  balanceSat: nullable(Type.Integer()),
  feeCreditSat: nullable(Type.Integer()),
  channels: nullable(Type.Object({ usable: Type.Integer(), total: Type.Integer() })),
  blockHeight: nullable(Type.Integer()),
  version: nullable(Type.String()),
})
const Payment = Type.Object({
  direction: Type.Enum(['in', 'out']),
  paymentHash: nullable(Type.String()),
  amountSat: Type.Integer(),
  feeMsat: Type.Integer(),
  description: nullable(Type.String()),
  isPaid: Type.Boolean(),
  createdAt: Timestamp,
  completedAt: nullable(Timestamp),
})
const AmountSat = Type.Integer({ minimum: 1, maximum: MAX_SAT })
const NewInvoice = strict({
  amountSat: Type.Optional(AmountSat),
  // Among friends it may be empty; a customer has to read what is paid for, and there it may not.
  description: Type.String({ maxLength: 500, pattern: READABLE_OR_EMPTY }),
})
const Invoice = Type.Object({ paymentHash: Type.String(), invoice: Type.String() })
const InvoiceId = Type.Object({ nodeId: Type.String(), paymentHash: Type.String() })
const InvoiceState = Type.Object({ isPaid: Type.Boolean(), receivedSat: Type.Integer() })
const Pay = strict({ invoice: Type.String({ minLength: 1, maxLength: 4200 }), amountSat: Type.Optional(AmountSat) })
const Sent = Type.Object({
  outcome: Type.Enum(['sent', 'failed', 'unknown']),
  reason: nullable(Type.String()),
  amountSat: nullable(Type.Integer()),
  feeSat: nullable(Type.Integer()),
})

type Id = { Params: Static<typeof NodeId> }

/** The order of the public API's routes, then the node's own money. */
export function dashboardNodeRoutes({ nodes, wallets }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const one = { params: NodeId, response: { 200: DashboardNode } }

    app.get('', { schema: { response: { 200: Type.Object({ nodes: Type.Array(DashboardNode) }) } } }, async (request) => ({
      nodes: await nodes.list(callOf(request)),
    }))
    app.post<{ Body: Static<typeof CreateNode> }>(
      '',
      { schema: { body: CreateNode, response: { 202: Type.Object({ node: DashboardNode, credentials: Credentials }) } } },
      async (request, reply) =>
        reply
          .code(202)
          .send(await nodes.create(callOf(request), request.body, repeatableOf(request, 'POST /dashboard/api/nodes'))),
    )
    app.get<Id>('/:nodeId', { schema: one }, async (request) => nodes.get(callOf(request), request.params.nodeId))
    app.patch<Id & { Body: Static<typeof Rename> }>('/:nodeId', { schema: { ...one, body: Rename } }, async (request) =>
      nodes.rename(callOf(request), request.params.nodeId, request.body.name),
    )
    for (const action of ['start', 'stop', 'restart'] as const) {
      app.post<Id>(`/:nodeId/${action}`, { schema: { ...one, body: Nothing } }, async (request) =>
        nodes[action](callOf(request), request.params.nodeId),
      )
    }
    app.get<Id>('/:nodeId/updates', { schema: { params: NodeId, response: { 200: Updates } } }, async (request) =>
      nodes.updates(callOf(request), request.params.nodeId),
    )
    app.post<Id & { Body: Static<typeof Update> }>(
      '/:nodeId/update',
      { schema: { params: NodeId, body: Update, response: { 202: DashboardNode } } },
      async (request, reply) =>
        reply.code(202).send(await nodes.update(callOf(request), request.params.nodeId, request.body.version)),
    )
    app.delete<Id & { Querystring: Static<typeof Force> }>(
      '/:nodeId',
      { schema: { params: NodeId, querystring: Force, body: Nothing, response: { 204: Type.Null() } } },
      async (request, reply) => {
        await nodes.delete(callOf(request), request.params.nodeId, request.query.force === 'true')
        return reply.code(204).send()
      },
    )

    app.get<Id>('/:nodeId/live', { schema: { params: NodeId, response: { 200: Live } } }, async (request) =>
      wallets.live(callOf(request), request.params.nodeId),
    )
    app.get<Id>(
      '/:nodeId/payments',
      { schema: { params: NodeId, response: { 200: Type.Object({ payments: Type.Array(Payment) }) } } },
      async (request) => ({ payments: (await wallets.payments(callOf(request), request.params.nodeId)).map(paymentView) }),
    )
    app.post<Id & { Body: Static<typeof NewInvoice> }>(
      '/:nodeId/invoices',
      { schema: { params: NodeId, body: NewInvoice, response: { 201: Invoice } } },
      async (request, reply) =>
        reply.code(201).send(await wallets.createInvoice(callOf(request), request.params.nodeId, request.body)),
    )
    app.get<{ Params: Static<typeof InvoiceId> }>(
      '/:nodeId/invoices/:paymentHash',
      { schema: { params: InvoiceId, response: { 200: InvoiceState } } },
      async (request) => wallets.invoice(callOf(request), request.params.nodeId, request.params.paymentHash),
    )
    app.post<Id & { Body: Static<typeof Pay> }>(
      '/:nodeId/pay',
      { schema: { params: NodeId, body: Pay, response: { 200: Sent } } },
      async (request) => wallets.pay(callOf(request), request.params.nodeId, request.body),
    )
  }
}

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)
const paymentView = ({ createdAtMs, completedAtMs, paymentHash, description, ...payment }: WalletPayment) => ({
  ...payment,
  paymentHash: paymentHash ?? null,
  description: description ?? null,
  createdAt: seconds(createdAtMs),
  completedAt: completedAtMs === undefined ? null : seconds(completedAtMs),
})
