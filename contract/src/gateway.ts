import { Type } from 'typebox'
import type { ErrorCode } from './errors.ts'
import { operation } from './operation.ts'
import {
  ConfirmDeliveriesParams,
  CreatedPayment,
  CreatedPayments,
  CreatePaymentBatchParams,
  CreatePaymentParams,
  DeliveryResults,
  ExportPaymentsParams,
  ListPaymentsParams,
  PaidPayment,
  Payment,
  PaymentPage,
  RedeemByInvoiceParams,
  RedeemedPayment,
  RedeemPaymentParams,
  ReleasedPayment,
  ReleasePaymentParams,
  ValidateByInvoiceParams,
  ValidatePaymentParams,
} from './payments.ts'
import { text } from './schemas.ts'

export const PaymentId = Type.Object({ id: text('Id of a payment, `pay_…`.') })

const ofGateway = { tag: 'Gateway', caller: 'apiKey', scope: 'gateway:write' } as const
export const validationErrors = [
  'invalid_payment_credential',
  'gateway_payment_not_found',
  'terms_mismatch',
  'payment_expired',
  'payment_service_unavailable',
] as const satisfies ErrorCode[]
export const redemptionErrors = [
  ...validationErrors,
  'already_redeemed',
  'delivery_in_progress',
  'not_claimed',
] as const satisfies ErrorCode[]

const creationErrors = [
  'node_not_found',
  'idempotency_conflict',
  'operation_in_progress',
  'payment_service_unavailable',
] as const satisfies ErrorCode[]

export const createPayment = operation({
  ...ofGateway,
  method: 'POST',
  path: '/v1/gateway/payments',
  operationId: 'createPayment',
  summary: 'Create a payment and its challenge',
  description:
    'Respond to your own client with status 402 and the challenge in `WWW-Authenticate` (x402: `PAYMENT-REQUIRED`). Each request creates a new payment unless it repeats an `Idempotency-Key`.',
  takesIdempotencyKey: true,
  body: CreatePaymentParams,
  status: 201,
  response: CreatedPayment,
  errors: creationErrors,
})
export const createPaymentBatch = operation({
  ...ofGateway,
  method: 'POST',
  path: '/v1/gateway/payments/batch',
  operationId: 'createPaymentBatch',
  summary: 'Create a payment in each of several protocols',
  description:
    'For a 402 that offers the customer a choice. Either all payments are created or none. Each of them has its own invoice and counts as one creation.',
  takesIdempotencyKey: true,
  body: CreatePaymentBatchParams,
  status: 201,
  response: CreatedPayments,
  errors: creationErrors,
})
export const validatePayment = operation({
  ...ofGateway,
  method: 'POST',
  path: '/v1/gateway/payments/{id}/validate',
  operationId: 'validatePayment',
  summary: 'Validate a customer’s credential',
  description: 'Safe to repeat. It does not claim the delivery: call `redeemPayment` before you deliver.',
  params: PaymentId,
  body: ValidatePaymentParams,
  status: 200,
  response: PaidPayment,
  errors: validationErrors,
})
export const validatePaymentByInvoice = operation({
  ...ofGateway,
  method: 'POST',
  path: '/v1/gateway/payments/validate',
  operationId: 'validatePaymentByInvoice',
  summary: 'Validate an x402 payment',
  description:
    'Like `validatePayment`, for x402. Once a payment has been validated, it can also be redeemed after the time in which x402 accepts it.',
  body: ValidateByInvoiceParams,
  status: 200,
  response: PaidPayment,
  errors: validationErrors,
})
export const redeemPayment = operation({
  ...ofGateway,
  method: 'POST',
  path: '/v1/gateway/payments/{id}/redeem',
  operationId: 'redeemPayment',
  summary: 'Validate a credential and claim the delivery',
  description:
    'For a payment that is delivered once, exactly one request succeeds. If a response is lost, retry with the same `requestId`.',
  params: PaymentId,
  body: RedeemPaymentParams,
  status: 200,
  response: RedeemedPayment,
  errors: redemptionErrors,
})
export const redeemPaymentByInvoice = operation({
  ...ofGateway,
  method: 'POST',
  path: '/v1/gateway/payments/redeem',
  operationId: 'redeemPaymentByInvoice',
  summary: 'Validate an x402 payment and claim the delivery',
  description:
    'Like `redeemPayment`, for x402, whose credentials contain an invoice instead of an id. `error.errorReason` is the reason as x402 names it. An invoice is accepted until 60 seconds after it expires, even if it was paid in time. If `error.settled` is true, the customer has paid and got nothing: do not send a new challenge.',
  body: RedeemByInvoiceParams,
  status: 200,
  response: RedeemedPayment,
  errors: redemptionErrors,
})
export const confirmDeliveries = operation({
  ...ofGateway,
  method: 'POST',
  path: '/v1/gateway/payments/delivered',
  operationId: 'confirmDeliveries',
  summary: 'Confirm deliveries that were claimed with holdSeconds',
  description: 'Safe to repeat.',
  body: ConfirmDeliveriesParams,
  status: 200,
  response: DeliveryResults,
  errors: [],
})
export const releasePayment = operation({
  ...ofGateway,
  method: 'POST',
  path: '/v1/gateway/payments/{id}/release',
  operationId: 'releasePayment',
  summary: 'Release the claim on a delivery that failed',
  description: 'The credential can then be redeemed again, with a new `requestId`, unless it has expired. Safe to repeat.',
  params: PaymentId,
  body: ReleasePaymentParams,
  status: 200,
  response: ReleasedPayment,
  errors: ['gateway_payment_not_found', 'not_claimed', 'limit_reached'],
})
export const getPayment = operation({
  ...ofGateway,
  method: 'GET',
  path: '/v1/gateway/payments/{id}',
  operationId: 'getPayment',
  summary: 'Get a payment with its challenge',
  params: PaymentId,
  status: 200,
  response: Payment,
  errors: ['gateway_payment_not_found'],
})
export const listPayments = operation({
  ...ofGateway,
  method: 'GET',
  path: '/v1/gateway/payments',
  operationId: 'listPayments',
  summary: 'List payments, newest first',
  query: ListPaymentsParams,
  status: 200,
  response: PaymentPage,
  errors: [],
})
export const exportPayments = operation({
  ...ofGateway,
  method: 'GET',
  path: '/v1/gateway/payments.csv',
  operationId: 'exportPayments',
  summary: 'Export payments as CSV, oldest first',
  description:
    'RFC 4180, with a header line. The last column, `outcome`, says in one word what became of the payment: `unpaid`, `expired`, `settled`, `paid`, `paid_got_nothing`, `delivering` or `delivered`. Columns may be added at the end. Text that a spreadsheet would run as a formula begins with an apostrophe. If the export fails, the connection is closed before the response is complete.',
  query: ExportPaymentsParams,
  status: 200,
  errors: [],
})
