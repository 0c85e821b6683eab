import { type Static, Type } from 'typebox'
import { PaymentId, redemptionErrors, validationErrors } from '../gateway.ts'
import { operation } from '../operation.ts'
import { IdOfNode } from '../operator/nodes.ts'
import { Funded, FundParams, PaidInvoice, PayInvoiceParams } from '../operator/sandbox.ts'
import {
  CreatedPayment,
  CreatePaymentParams,
  DeliveryState,
  ListPaymentsParams,
  PaidPayment,
  paymentFields,
  RedeemedPayment,
  RedeemPaymentParams,
  selectionFields,
  ValidatePaymentParams,
} from '../payments.ts'
import { count, NextCursor, named, nullable, strict, text, timestamp } from '../schemas.ts'

const ownFields = {
  ...paymentFields,
  delivery: DeliveryState,
  heldUntil: nullable(timestamp('When the claim lapses or has lapsed; null if there is none, or the delivery is final.')),
  releases: count('How often a claim was released because the delivery failed.'),
}
export const GatewayPayment = named(ownFields, { $id: 'GatewayPayment', description: 'A payment as its owner sees it.' })
export type GatewayPayment = Static<typeof GatewayPayment>
export const GatewayPaymentPage = named(
  {
    payments: Type.Array(GatewayPayment),
    nextCursor: NextCursor,
    previousCursor: nullable(text('Pass it as `after` to get the page before; null on the first page.')),
  },
  { $id: 'GatewayPaymentPage', description: 'One page of payments, newest first.' },
)
export const PaymentCreator = named(
  {
    id: text('Id of the API key or the person.'),
    kind: Type.Enum(['key', 'person'], { description: '`person`: in the dashboard.' }),
    name: nullable(text('The name of the key or the email address of the person; null if it no longer exists.')),
  },
  { $id: 'PaymentCreator', description: 'Who created a payment.' },
)
export const GatewayPaymentDetails = named(
  {
    ...ownFields,
    challenge: text('The challenge as it was issued.'),
    paymentHash: text('The hash of its invoice, in hex.'),
    receipt: nullable(text('MPP only, once settled: the value of `Payment-Receipt`.')),
    createdBy: nullable(PaymentCreator),
  },
  { $id: 'GatewayPaymentDetails', description: 'A payment as its owner sees it, with its challenge.' },
)
export type GatewayPaymentDetails = Static<typeof GatewayPaymentDetails>
export const ListOwnPaymentsParams = strict(
  {
    ...selectionFields,
    limit: ListPaymentsParams.properties.limit,
    cursor: ListPaymentsParams.properties.cursor,
    after: Type.Optional(text('`previousCursor` of the next page.')),
  },
  { $id: 'ListOwnPaymentsParams', description: 'Which payments to list.' },
)

const ofPerson = { tag: 'Dashboard', caller: 'session' } as const

export const listOwnPayments = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/payments',
  operationId: 'listOwnPayments',
  summary: 'List payments, newest first',
  query: ListOwnPaymentsParams,
  status: 200,
  response: GatewayPaymentPage,
  errors: [],
})
export const getOwnPayment = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/payments/{id}',
  operationId: 'getOwnPayment',
  summary: 'Get a payment with its challenge',
  params: PaymentId,
  status: 200,
  response: GatewayPaymentDetails,
  errors: ['gateway_payment_not_found'],
})
export const createOwnPayment = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/payments',
  operationId: 'createOwnPayment',
  summary: 'Create a payment to try out a 402',
  body: CreatePaymentParams,
  status: 201,
  response: CreatedPayment,
  errors: ['node_not_found', 'payment_service_unavailable'],
})
export const validateOwnPayment = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/payments/{id}/validate',
  operationId: 'validateOwnPayment',
  summary: 'Validate a credential',
  params: PaymentId,
  body: ValidatePaymentParams,
  status: 200,
  response: PaidPayment,
  errors: validationErrors,
})
export const redeemOwnPayment = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/payments/{id}/redeem',
  operationId: 'redeemOwnPayment',
  summary: 'Validate a credential and claim the delivery',
  params: PaymentId,
  body: RedeemPaymentParams,
  status: 200,
  response: RedeemedPayment,
  errors: redemptionErrors,
})
export const fundOwnNode = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/sandbox/nodes/{id}/fund',
  operationId: 'fundOwnNode',
  summary: 'Fund a sandbox node',
  params: IdOfNode,
  body: FundParams,
  status: 200,
  response: Funded,
  errors: ['node_not_found', 'not_found', 'payment_service_unavailable'],
})
export const payFromTestWallet = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/sandbox/pay',
  operationId: 'payFromTestWallet',
  summary: 'Pay a sandbox invoice as a customer would',
  body: PayInvoiceParams,
  status: 200,
  response: PaidInvoice,
  errors: ['not_found', 'payment_service_unavailable'],
})
