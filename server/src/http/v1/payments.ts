import type { FastifyInstance, FastifyRequest, preValidationHookHandler } from 'fastify'
import { type Static, Type } from 'typebox'
import { isId } from '../../platform/ids.ts'
import { READABLE, READABLE_OR_EMPTY } from '../../platform/readable-text.ts'
import { Problem } from '../../problems.ts'
import type { PaymentFilter } from '../../store/payments.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { ErrorBody, nullable, strict, Timestamp } from '../schemas.ts'

export const MAX_SAT = 9_007_199_254_740
const Protocol = Type.Enum(['mpp', 'l402'])
const sentence = (description: string) => Type.String({ maxLength: 500, pattern: READABLE, description })
export const CreatePayment = strict({
  nodeId: Type.String({ description: 'A running node of this account' }),
  amountSat: Type.Integer({ minimum: 1, maximum: MAX_SAT }),
  description: sentence('What the customer pays for: not blank, without control, bidirectional and zero-width characters'),
  resource: Type.Optional(sentence('What the payment is bound to, by the same rules; its description unless given')),
  protocol: Type.Optional(Type.Enum(['mpp', 'l402'], { description: 'mpp unless given' })),
})
export const CreatedPayment = Type.Object({
  id: Type.String(),
  protocol: Protocol,
  status: Type.Literal('payment_required'),
  challenge: Type.String({ description: 'The value of WWW-Authenticate for your own 402' }),
})
const credential = Type.String({ description: 'The whole value of the customer’s Authorization header' })
const amountSat = (description: string) => Type.Integer({ minimum: 1, maximum: MAX_SAT, description })
const Expect = Type.Object(
  {
    nodeId: Type.Optional(Type.String({ pattern: '^[\\x20-\\x7e]{1,100}$' })),
    resource: Type.Optional(sentence('Compared with the description of a payment that has no resource')),
    description: Type.Optional(sentence('As it was asked for')),
    amountSat: Type.Optional(amountSat('Exactly this price')),
    minAmountSat: Type.Optional(amountSat('At least this price: for prices that move between quote and payment')),
  },
  {
    additionalProperties: false,
    minProperties: 1,
    description: 'What this request sells. A payment on other terms is 409 terms_mismatch, and stays unused.',
  },
)
export const Validate = strict({ credential, expect: Type.Optional(Expect) })
const requestId = (description: string) => Type.String({ pattern: '^[\\x20-\\x7e]{1,128}$', description })
export const Redeem = strict({
  credential,
  requestId: Type.Optional(requestId('The same again: the same answer')),
  singleUse: Type.Optional(Type.Boolean({ description: 'L402: deliver once, as MPP always does' })),
  expect: Type.Optional(Expect),
  holdSeconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 600,
      description: 'The claim lapses after that time unless it was confirmed; final at once unless given',
    }),
  ),
})
const Delivered = strict({
  deliveries: Type.Array(strict({ id: Type.String(), requestId: requestId('Of its redemption') }), {
    minItems: 1,
    maxItems: 100,
  }),
})
const Release = strict({
  requestId: requestId('The one that holds the claim'),
  reason: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      pattern: READABLE_OR_EMPTY,
      description: 'For the activity log: why it was not delivered',
    }),
  ),
})
export const paid = {
  id: Type.String(),
  protocol: Protocol,
  status: Type.Literal('paid'),
  receipt: Type.Optional(Type.String({ description: 'MPP: the value of Payment-Receipt for your own answer' })),
}
const terms = { nodeId: Type.String(), amountSat: Type.Integer(), description: Type.String(), resource: nullable(Type.String()) }
export const Redeemed = Type.Object({ ...paid, ...terms, redeemedAt: Timestamp })
const DeliveryResult = Type.Object({
  id: Type.String(),
  requestId: Type.String(),
  result: Type.Enum(['delivered', 'not_claimed']),
})
const Released = Type.Object({ id: Type.String(), status: Type.Literal('paid'), redeemable: Type.Literal(true) })
const STATUSES = ['payment_required', 'paid', 'expired'] as const
const head = { id: Type.String(), protocol: Protocol, status: Type.Enum(STATUSES) }
const rest = {
  ...terms,
  createdAt: Timestamp,
  expiresAt: Timestamp,
  settledAt: nullable(Timestamp),
  paidAt: nullable(Timestamp),
  redeemedAt: nullable(Timestamp),
}
export const shown = { ...head, ...rest }
export const ShownPayment = Type.Object({ ...head, challenge: Type.String(), ...rest })
export const Page = strict({
  limit: Type.Optional(Type.String({ pattern: '^([1-9][0-9]?|100)$', description: '1 to 100, 20 unless given' })),
  cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before' })),
  status: Type.Optional(
    Type.Enum([...STATUSES, 'settled'], { description: 'settled: your node has the money, and no credential was validated' }),
  ),
  delivery: Type.Optional(
    Type.Enum(['none', 'held', 'done'], { description: 'held: claimed and not confirmed yet; done: final or confirmed' }),
  ),
  nodeId: Type.Optional(Type.String()),
})
export const PaymentId = Type.Object({ id: Type.String() })
type Id = { Params: Static<typeof PaymentId> }

export function gatewayRoutes({ keys, limits, payments, validation, deliveries }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireKey(keys, limits, 'gateway:write'))
    const call = ({ caller }: FastifyRequest) => ({ accountId: caller.accountId, actor: caller.id })
    const security = [{ apiKey: [] }]
    const errors = { 400: ErrorBody, 401: ErrorBody, 404: ErrorBody, 429: ErrorBody, 503: ErrorBody }
    const judged = { ...errors, 409: ErrorBody, 410: ErrorBody, 502: ErrorBody }

    app.post<{ Body: Static<typeof CreatePayment> }>(
      '',
      {
        onRequest: limits.creations ?? [],
        schema: {
          summary: 'Ask for a payment challenge',
          security,
          body: CreatePayment,
          response: { 201: CreatedPayment, ...errors, 409: ErrorBody, 502: ErrorBody },
        },
      },
      async (request, reply) => {
        const repeatable = {
          key: request.headers['idempotency-key']?.toString(),
          callerId: request.caller.id,
          secret: request.presentedKey,
          route: 'POST /v1/gateway/payments',
          body: request.body,
        }
        return reply.code(201).send(await payments.create(call(request), request.body, repeatable))
      },
    )
    app.post<Id & { Body: Static<typeof Validate> }>(
      '/:id/validate',
      {
        preValidation: requireCredential(Validate),
        schema: {
          summary: 'Has this credential paid',
          security,
          params: PaymentId,
          body: Validate,
          response: { 200: Type.Object(paid), ...judged },
        },
      },
      async (request) => validation.validate(call(request), request.params.id, request.body),
    )
    app.post<Id & { Body: Static<typeof Redeem> }>(
      '/:id/redeem',
      {
        preValidation: requireCredential(Redeem),
        schema: {
          summary: 'Validate, and claim the delivery',
          security,
          params: PaymentId,
          body: Redeem,
          response: { 200: Redeemed, ...judged },
        },
      },
      async (request) => validation.redeem(call(request), request.params.id, request.body),
    )
    app.post<{ Body: Static<typeof Delivered> }>(
      '/delivered',
      {
        schema: {
          summary: 'Confirm deliveries that were held',
          security,
          body: Delivered,
          response: { 200: Type.Object({ deliveries: Type.Array(DeliveryResult) }), ...errors },
        },
      },
      async (request) => ({ deliveries: await deliveries.confirm(call(request), request.body.deliveries) }),
    )
    app.post<Id & { Body: Static<typeof Release> }>(
      '/:id/release',
      {
        schema: {
          summary: 'Give a claimed delivery back after it failed',
          security,
          params: PaymentId,
          body: Release,
          response: { 200: Released, ...errors, 409: ErrorBody },
        },
      },
      async (request) => {
        const { requestId, reason } = request.body
        return deliveries.release(call(request), { id: request.params.id, requestId }, reason)
      },
    )
    app.get<Id>(
      '/:id',
      {
        schema: {
          summary: 'One payment, with its challenge',
          security,
          params: PaymentId,
          response: { 200: ShownPayment, ...errors },
        },
      },
      async (request) => payments.get(call(request), request.params.id),
    )
    app.get<{ Querystring: Static<typeof Page> }>(
      '',
      {
        schema: {
          summary: 'List payments, newest first',
          security,
          querystring: Page,
          response: {
            200: Type.Object({ payments: Type.Array(Type.Object(shown)), nextCursor: nullable(Type.String()) }),
            ...errors,
          },
        },
      },
      async (request) => {
        const filter = filterOf(request.query)
        return filter ? payments.list(call(request), filter) : { payments: [], nextCursor: null }
      },
    )
  }
}

/** Undefined: nothing can match it. */
export function filterOf({ limit = '20', cursor, status, delivery, nodeId }: Static<typeof Page>): PaymentFilter | undefined {
  if (cursor !== undefined && !isId('pay', cursor)) throw badCursor()
  // What is no id names no node: nothing was ever paid to it.
  if (nodeId !== undefined && !isId('node', nodeId)) return undefined
  return {
    limit: Number(limit),
    ...(cursor === undefined ? {} : { before: cursor }),
    ...(status === undefined ? {} : { status }),
    ...(delivery === undefined ? {} : { delivery }),
    ...(nodeId === undefined ? {} : { nodeId }),
  }
}

export const badCursor = (): Problem =>
  new Problem('bad_request', 'The query parameter "cursor" must be the nextCursor of a page before.')

/** A credential that is missing is a wrong one; a body that is wrong otherwise is a bad request, and that goes first. */
export function requireCredential(schema: typeof Validate | typeof Redeem): preValidationHookHandler {
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
            'The field "credential" must be the customer’s Authorization header, a string.',
          ),
    )
  }
}
