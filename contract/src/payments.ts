import { type Static, Type } from 'typebox'
import { READABLE_OR_EMPTY } from './readable-text.ts'
import {
  amountSat,
  anyAmountSat,
  flag,
  NextCursor,
  named,
  nullable,
  readableText,
  strict,
  text,
  timeParam,
  timestamp,
} from './schemas.ts'
import { MppParams, requestHash, X402Params, X402Requirements } from './x402-terms.ts'

export const Protocol = Type.Enum(['mpp', 'l402', 'x402'], {
  $id: 'Protocol',
  description: 'The HTTP 402 protocol the customer pays with.',
})
export const PaymentStatus = Type.Enum(['payment_required', 'paid', 'expired'], {
  $id: 'PaymentStatus',
  description:
    '`paid`: a credential was validated. `expired`: it can no longer be paid, and no payment has been reported; if one was made in time, it can still become `paid`.',
})
const id = text('Id of the payment, `pay_…`.')
const credential = text('The whole value of the customer’s `Authorization` header, or of the header you chose with `mpp.header`.')
const challenge = text('The value of `WWW-Authenticate` for your own 402 response; for x402, that of `PAYMENT-REQUIRED`.')
const requestId = (description: string) => Type.String({ pattern: '^[\\x20-\\x7e]{1,128}$', description })

const newTerms = {
  nodeId: text('A ready node of this account, which receives the money.'),
  amountSat: amountSat('The price.'),
  description: readableText('What the customer pays for.'),
  resource: Type.Optional(readableText('What the payment is bound to. Defaults to the description.')),
}
/** Each option is for the protocol of the same name. With x402, its option is required. */
const options = { mpp: Type.Optional(MppParams), x402: Type.Optional(X402Params) }

export const CreatePaymentParams = strict(
  { ...newTerms, protocol: Type.Optional(Protocol), ...options },
  {
    $id: 'CreatePaymentParams',
    description: 'What to charge for. `protocol` defaults to `mpp`. The fields `mpp` and `x402` are options for these protocols.',
    examples: [{ nodeId: 'node_01hgw2bbg0000000000a', amountSat: 21, description: 'One joke', protocol: 'mpp' }],
  },
)

export const CreatedPayment = named(
  {
    id,
    protocol: Protocol,
    status: Type.Literal('payment_required'),
    challenge,
    accepts: Type.Optional(
      Type.Array(X402Requirements, { description: 'x402 only: the entries of `accepts` in the challenge, decoded.' }),
    ),
  },
  {
    $id: 'CreatedPayment',
    description: 'A payment and its challenge. Keep the id: you need it to validate the credential.',
    examples: [
      {
        id: 'pay_01hgw2bbg0000000000a',
        protocol: 'mpp',
        status: 'payment_required',
        challenge: 'Payment id="…", realm="127.0.0.1:8402", method="lightning", intent="charge", request="…"',
      },
    ],
  },
)

export const CreatePaymentBatchParams = strict(
  {
    ...newTerms,
    protocols: Type.Array(Protocol, {
      minItems: 1,
      maxItems: 3,
      uniqueItems: true,
      description: 'One payment is created for each.',
    }),
    ...options,
  },
  {
    $id: 'CreatePaymentBatchParams',
    description: 'What to charge for, in several protocols. The field `x402` is required if `protocols` contains `x402`.',
    examples: [{ nodeId: 'node_01hgw2bbg0000000000a', amountSat: 21, description: 'One joke', protocols: ['l402', 'mpp'] }],
  },
)
export const CreatedPayments = named(
  { payments: Type.Array(CreatedPayment) },
  {
    $id: 'CreatedPayments',
    description: 'One payment for each protocol, in the same order. The customer pays one of them; the others expire.',
    examples: [
      {
        payments: [
          {
            id: 'pay_01hgw2bbg0000000000a',
            protocol: 'l402',
            status: 'payment_required',
            challenge: 'L402 macaroon="…", invoice="lnbc210n1…"',
          },
        ],
      },
    ],
  },
)

const paidFields = {
  id,
  protocol: Protocol,
  status: Type.Literal('paid'),
  receipt: Type.Optional(text('MPP only: the value of `Payment-Receipt` for your own response.')),
}
const paidExample = { id: 'pay_01hgw2bbg0000000000a', protocol: 'mpp', status: 'paid', receipt: 'eyJzdGF0dXMiOiJzdWNjZXNzIn0' }
export const PaidPayment = named(paidFields, {
  $id: 'PaidPayment',
  description: 'A payment whose credential is valid.',
  examples: [paidExample],
})

export const ExpectedTerms = strict(
  {
    nodeId: Type.Optional(Type.String({ pattern: '^[\\x20-\\x7e]{1,100}$', description: 'The node that was paid.' })),
    resource: Type.Optional(readableText('The resource it was created with, or the description if it has no resource.')),
    description: Type.Optional(readableText('The description it was created with.')),
    amountSat: Type.Optional(amountSat('Exactly this price.')),
    minAmountSat: Type.Optional(amountSat('At least this price. Useful if prices change between quote and payment.')),
  },
  {
    $id: 'ExpectedTerms',
    minProperties: 1,
    description:
      'What this request sells. Absent fields are not compared. A payment that does not match is rejected, and this request does not use it up.',
    examples: [{ resource: 'GET /joke', amountSat: 21 }],
  },
)

export const ValidatePaymentParams = strict(
  { credential, expect: Type.Optional(ExpectedTerms) },
  {
    $id: 'ValidatePaymentParams',
    description: 'The customer’s credential and, optionally, the expected terms.',
    examples: [{ credential: 'Payment eyJjaGFsbGVuZ2UiOnt9fQ', expect: { amountSat: 21 } }],
  },
)

export const RedeemPaymentParams = strict(
  {
    credential,
    requestId: Type.Optional(
      requestId('Your id for this attempt. Repeating it returns the same response, so you can retry when a response is lost.'),
    ),
    singleUse: Type.Optional(flag('L402 only: deliver once, as MPP always does.')),
    expect: Type.Optional(ExpectedTerms),
    holdSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600,
        description:
          'The claim lapses after this time unless you confirm the delivery. Without it, the claim is final immediately.',
      }),
    ),
  },
  {
    $id: 'RedeemPaymentParams',
    description: 'The customer’s credential, and how to claim the delivery.',
    examples: [
      {
        credential: 'Payment eyJjaGFsbGVuZ2UiOnt9fQ',
        requestId: 'c0ffee',
        expect: { resource: 'GET /joke', amountSat: 21 },
        holdSeconds: 60,
      },
    ],
  },
)

const { credential: _header, singleUse: _l402, ...claimParams } = RedeemPaymentParams.properties
export const RedeemByInvoiceParams = strict(
  {
    credential: text('The value of the customer’s `PAYMENT-SIGNATURE` header.'),
    requestHash: requestHash(
      'The hash of the request you are serving, computed from that request and never taken from the credential.',
    ),
    ...claimParams,
  },
  {
    $id: 'RedeemByInvoiceParams',
    description: 'The customer’s x402 payment, the request it must be for, and how to claim the delivery.',
    examples: [
      {
        credential: 'eyJ4NDAyVmVyc2lvbiI6Mn0=',
        requestHash: '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018',
        requestId: 'c0ffee',
        expect: { minAmountSat: 21 },
      },
    ],
  },
)

const { credential: payment, requestHash: hash, expect: expected } = RedeemByInvoiceParams.properties
export const ValidateByInvoiceParams = strict(
  { credential: payment, requestHash: hash, expect: expected },
  {
    $id: 'ValidateByInvoiceParams',
    description: 'The customer’s x402 payment, the request it must be for and, optionally, the expected terms.',
    examples: [
      {
        credential: 'eyJ4NDAyVmVyc2lvbiI6Mn0=',
        requestHash: '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018',
        expect: { minAmountSat: 21 },
      },
    ],
  },
)

const termsFields = {
  nodeId: text('The node that is paid.'),
  amountSat: Type.Integer({ description: 'The price.' }),
  description: text('What the customer pays for.'),
  resource: nullable(text('What the payment is bound to; null if it is the description.')),
}
const termsExample = { nodeId: 'node_01hgw2bbg0000000000a', amountSat: 21, description: 'One joke', resource: 'GET /joke' }
export const RedeemedPayment = named(
  {
    ...paidFields,
    paymentResponse: Type.Optional(text('x402 only: the value of `PAYMENT-RESPONSE` for your own response.')),
    ...termsFields,
    redeemedAt: timestamp('When the delivery was claimed.'),
  },
  {
    $id: 'RedeemedPayment',
    description: 'A payment whose delivery this request has claimed. Deliver now.',
    examples: [{ ...paidExample, ...termsExample, redeemedAt: 1767225630 }],
  },
)

export const ClaimedDelivery = strict(
  { id, requestId: requestId('The `requestId` that redeemed the payment.') },
  { $id: 'ClaimedDelivery', description: 'A delivery and the request that claimed it.' },
)
export const ConfirmDeliveriesParams = strict(
  { deliveries: Type.Array(ClaimedDelivery, { minItems: 1, maxItems: 100, description: 'The deliveries to confirm.' }) },
  {
    $id: 'ConfirmDeliveriesParams',
    description: 'Completed deliveries that were claimed with `holdSeconds`.',
    examples: [{ deliveries: [{ id: 'pay_01hgw2bbg0000000000a', requestId: 'c0ffee' }] }],
  },
)
export const DeliveryResult = named(
  {
    id,
    requestId: text('The `requestId` you passed.'),
    result: Type.Enum(['delivered', 'not_claimed'], {
      description: '`not_claimed`: this `requestId` does not hold the delivery.',
    }),
  },
  { $id: 'DeliveryResult', description: 'The result of one confirmation.' },
)
export const DeliveryResults = named(
  { deliveries: Type.Array(DeliveryResult) },
  {
    $id: 'DeliveryResults',
    description: 'One result for each delivery, in the same order.',
    examples: [{ deliveries: [{ id: 'pay_01hgw2bbg0000000000a', requestId: 'c0ffee', result: 'delivered' }] }],
  },
)

export const ReleasePaymentParams = strict(
  {
    requestId: requestId('The `requestId` that holds the claim. It can never claim this payment again.'),
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        pattern: READABLE_OR_EMPTY,
        description: 'Why the delivery failed, for the activity log.',
      }),
    ),
  },
  {
    $id: 'ReleasePaymentParams',
    description: 'The claim to release.',
    examples: [{ requestId: 'c0ffee', reason: 'printer out of paper' }],
  },
)
export const ReleasedPayment = named(
  { id, status: Type.Literal('paid'), redeemable: Type.Literal(true) },
  {
    $id: 'ReleasedPayment',
    description: 'A payment that can be redeemed again.',
    examples: [{ id: 'pay_01hgw2bbg0000000000a', status: 'paid', redeemable: true }],
  },
)

const head = { id, protocol: Protocol, status: PaymentStatus }
const rest = {
  ...termsFields,
  createdAt: timestamp('When it was created.'),
  expiresAt: timestamp('When it expires if unpaid.'),
  settledAt: nullable(timestamp('When the node received the money.')),
  paidAt: nullable(timestamp('When a credential was first validated.')),
  redeemedAt: nullable(timestamp('When the delivery was claimed; null if it is unclaimed or was released.')),
}
export const paymentFields = { ...head, ...rest }
const paymentExample = {
  id: 'pay_01hgw2bbg0000000000a',
  protocol: 'mpp',
  status: 'paid',
  ...termsExample,
  createdAt: 1767225600,
  expiresAt: 1767225900,
  settledAt: 1767225620,
  paidAt: 1767225630,
  redeemedAt: 1767225630,
}
export const ListedPayment = named(paymentFields, { $id: 'ListedPayment', description: 'A payment, without its challenge.' })
export const Payment = named(
  { ...head, challenge, ...rest },
  {
    $id: 'Payment',
    description: 'A payment and its challenge.',
    examples: [
      {
        ...paymentExample,
        challenge: 'Payment id="…", realm="127.0.0.1:8402", method="lightning", intent="charge", request="…"',
      },
    ],
  },
)
export const PaymentPage = named(
  { payments: Type.Array(ListedPayment), nextCursor: NextCursor },
  {
    $id: 'PaymentPage',
    description: 'One page of payments, newest first.',
    examples: [{ payments: [paymentExample], nextCursor: null }],
  },
)

export const DeliveryState = Type.Enum(['none', 'held', 'done'], {
  $id: 'DeliveryState',
  description: '`held`: claimed but not confirmed yet. `done`: final or confirmed.',
})
export type DeliveryState = Static<typeof DeliveryState>

export const DEFAULT_PAGE_SIZE = 20

const statusFilter = Type.Enum(['payment_required', 'paid', 'expired', 'settled'], {
  $id: 'PaymentStatusFilter',
  description: '`settled`: the node received the money, but no credential was validated.',
})

export const ListPaymentsParams = strict(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        default: DEFAULT_PAGE_SIZE,
        description: 'Maximum number of payments to return.',
      }),
    ),
    cursor: Type.Optional(text('`nextCursor` of the previous page.')),
    status: Type.Optional(statusFilter),
    delivery: Type.Optional(DeliveryState),
    nodeId: Type.Optional(text('Only payments to this node.')),
  },
  { $id: 'ListPaymentsParams', description: 'Which payments to list.' },
)

/** Which payments to export, to list in the dashboard, and to add up. */
export const selectionFields = {
  from: Type.Optional(timeParam('Only payments created at this time or later.')),
  to: Type.Optional(timeParam('Only payments created before this time.')),
  nodeId: Type.Optional(text('Only payments to this node.')),
  status: Type.Optional(statusFilter),
  state: Type.Optional(
    Type.Enum(['unpaid', 'expired', 'received', 'undelivered', 'delivering', 'delivered', 'unfulfilled'], {
      $id: 'PaymentStateFilter',
      description:
        '`received`: the node has the money. Of these, `undelivered`: no delivery is claimed; `delivering`: one is claimed but not confirmed yet; `delivered`: it is final. `unfulfilled`: received more than ten minutes ago, but no credential was validated, or the delivery failed or was never confirmed.',
    }),
  ),
  protocol: Type.Optional(Protocol),
  keyId: Type.Optional(text('Only payments that this API key created.')),
  minAmountSat: Type.Optional(anyAmountSat('Only payments of at least this price.')),
  maxAmountSat: Type.Optional(anyAmountSat('Only payments of at most this price.')),
  // An invoice may be far longer than a description.
  search: Type.Optional({
    ...readableText('An id or its beginning, a payment hash, an invoice, or a part of the description. Case does not matter.'),
    maxLength: 2_000,
  }),
}
export const ExportPaymentsParams = strict(selectionFields, {
  $id: 'ExportPaymentsParams',
  description: 'Which payments to export.',
})
