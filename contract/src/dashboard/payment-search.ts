import { type Static, Type } from 'typebox'
import { PaymentId } from '../gateway.ts'
import { operation } from '../operation.ts'
import { ExportPaymentsParams } from '../payments.ts'
import { count, named, nullable, text, timestamp } from '../schemas.ts'
import { Delivery } from '../webhooks.ts'

const total = Type.Object({ count: count('How many.'), sat: count('The sum of their prices.') })

export const PaymentTotals = named(
  { unpaid: total, expired: total, undelivered: total, delivering: total, delivered: total },
  {
    $id: 'PaymentTotals',
    description:
      'Every payment is in exactly one of these. The node has the money of the last three: their sum is what was received, before fees.',
  },
)
export type PaymentTotals = Static<typeof PaymentTotals>

const { status, nextAttemptAt, attempts } = Delivery.properties
export const PaymentEvents = named(
  {
    events: Type.Array(
      Type.Object({
        id: text('Id of the event, `evt_…`.'),
        type: text('What happened, such as `payment.settled`.'),
        createdAt: timestamp('When it happened.'),
        reason: nullable(text('Why a delivery was released, if the server said so.')),
        deliveries: Type.Array(
          Type.Object({ webhookId: text('Id of the webhook.'), url: text('Its URL.'), status, nextAttemptAt, attempts }),
        ),
      }),
    ),
  },
  { $id: 'PaymentEvents', description: 'The events of a payment, oldest first, and their delivery to each webhook.' },
)
export type PaymentEvents = Static<typeof PaymentEvents>

const ofPerson = { tag: 'Dashboard', caller: 'session', method: 'GET', status: 200 } as const

export const totalOwnPayments = operation({
  ...ofPerson,
  path: '/dashboard/api/payment-totals',
  operationId: 'totalOwnPayments',
  summary: 'Count payments and add them up',
  query: ExportPaymentsParams,
  response: PaymentTotals,
  errors: [],
})
export const exportOwnPayments = operation({
  ...ofPerson,
  path: '/dashboard/api/payments.csv',
  operationId: 'exportOwnPayments',
  summary: 'Export payments as CSV, oldest first',
  query: ExportPaymentsParams,
  errors: [],
})
export const listPaymentEvents = operation({
  ...ofPerson,
  path: '/dashboard/api/payments/{id}/events',
  operationId: 'listPaymentEvents',
  summary: 'List the events of a payment and their webhook deliveries',
  params: PaymentId,
  response: PaymentEvents,
  errors: ['gateway_payment_not_found'],
})
