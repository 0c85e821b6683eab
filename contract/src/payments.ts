import { type Static, Type } from 'typebox'
import { READABLE_OR_EMPTY } from './readable-text.ts'
import { amountSat, flag, NextCursor, named, nullable, readableText, strict, text, timestamp } from './schemas.ts'

export const Protocol = Type.Enum(['mpp', 'l402'], { $id: 'Protocol', description: 'How the customer pays.' })
export const PaymentStatus = Type.Enum(['payment_required', 'paid', 'expired'], {
  $id: 'PaymentStatus',
  description: '`paid`: a credential was validated. `expired`: not paid in time.',
})
const id = text('Id of the payment, `pay_…`.')
const credential = text('The whole value of the customer’s `Authorization` header.')
const challenge = text('The value of `WWW-Authenticate` for your own 402.')
const requestId = (description: string) => Type.String({ pattern: '^[\\x20-\\x7e]{1,128}$', description })

export const CreatePaymentParams = strict(
  {
    nodeId: text('A ready node of this account, which receives the money.'),
    amountSat: amountSat('The price.'),
    description: readableText('What the customer pays for: not blank; no control, bidirectional or zero-width characters.'),
    resource: Type.Optional(readableText('What the payment is bound to, by the same rules. The description if absent.')),
    protocol: Type.Optional(Protocol),
  },
  {
    $id: 'CreatePaymentParams',
    description: 'What to charge for. `protocol` is `mpp` if absent.',
    examples: [{ nodeId: 'node_01hgw2bbg0000000000a', amountSat: 21, description: 'One joke', protocol: 'mpp' }],
  },
)

export const CreatedPayment = named(
  { id, protocol: Protocol, status: Type.Literal('payment_required'), challenge },
  {
    $id: 'CreatedPayment',
    description: 'A payment and its challenge. Keep the id: validating needs it.',
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

const paidFields = {
  id,
  protocol: Protocol,
  status: Type.Literal('paid'),
  receipt: Type.Optional(text('MPP only: the value of `Payment-Receipt` for your own answer.')),
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
    resource: Type.Optional(readableText('Compared with the description of a payment that has no resource.')),
    description: Type.Optional(readableText('The description it was created with.')),
    amountSat: Type.Optional(amountSat('Exactly this price.')),
    minAmountSat: Type.Optional(amountSat('At least this price: for prices that change between quote and payment.')),
  },
  {
    $id: 'ExpectedTerms',
    minProperties: 1,
    description:
      'What this request sells; a field that is absent is not compared. A payment on other terms is refused and stays unused.',
    examples: [{ resource: 'GET /joke', amountSat: 21 }],
  },
)

export const ValidatePaymentParams = strict(
  { credential, expect: Type.Optional(ExpectedTerms) },
  {
    $id: 'ValidatePaymentParams',
    description: 'The customer’s credential, and what it should have paid for.',
    examples: [{ credential: 'Payment eyJjaGFsbGVuZ2UiOnt9fQ', expect: { amountSat: 21 } }],
  },
)

export const RedeemPaymentParams = strict(
  {
    credential,
    requestId: Type.Optional(
      requestId('Your id of this attempt. The same again gets the same answer, so that a lost answer can be asked for again.'),
    ),
    singleUse: Type.Optional(flag('L402: deliver once, as MPP always does.')),
    expect: Type.Optional(ExpectedTerms),
    holdSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600,
        description:
          'The claim lapses after this time unless it is confirmed as delivered. Without it the claim is final at once.',
      }),
    ),
  },
  {
    $id: 'RedeemPaymentParams',
    description: 'The customer’s credential, and what it should buy.',
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

const termsFields = {
  nodeId: text('The node that is paid.'),
  amountSat: Type.Integer({ description: 'The price.' }),
  description: text('What the customer pays for.'),
  resource: nullable(text('What the payment is bound to, if it is not its description.')),
}
const termsExample = { nodeId: 'node_01hgw2bbg0000000000a', amountSat: 21, description: 'One joke', resource: 'GET /joke' }
export const RedeemedPayment = named(
  { ...paidFields, ...termsFields, redeemedAt: timestamp('When the delivery was claimed.') },
  {
    $id: 'RedeemedPayment',
    description: 'A payment whose delivery this request has claimed: deliver now.',
    examples: [{ ...paidExample, ...termsExample, redeemedAt: 1767225630 }],
  },
)

export const ClaimedDelivery = strict(
  { id, requestId: requestId('The one that redeemed it.') },
  { $id: 'ClaimedDelivery', description: 'A delivery, and the request that claimed it.' },
)
export const ConfirmDeliveriesParams = strict(
  { deliveries: Type.Array(ClaimedDelivery, { minItems: 1, maxItems: 100, description: 'What was delivered.' }) },
  {
    $id: 'ConfirmDeliveriesParams',
    description: 'Deliveries that were claimed with `holdSeconds` and are done.',
    examples: [{ deliveries: [{ id: 'pay_01hgw2bbg0000000000a', requestId: 'c0ffee' }] }],
  },
)
export const DeliveryResult = named(
  {
    id,
    requestId: text('As given.'),
    result: Type.Enum(['delivered', 'not_claimed'], { description: 'Whether this request held the claim.' }),
  },
  { $id: 'DeliveryResult', description: 'What became of one confirmation.' },
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
    requestId: requestId('The one that holds the claim. It can never claim this payment again.'),
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        pattern: READABLE_OR_EMPTY,
        description: 'Why it was not delivered, for the activity log.',
      }),
    ),
  },
  {
    $id: 'ReleasePaymentParams',
    description: 'Which claim to give back.',
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
  expiresAt: timestamp('Until when it can be paid.'),
  settledAt: nullable(timestamp('When the node received the money.')),
  paidAt: nullable(timestamp('When a credential was first validated.')),
  redeemedAt: nullable(timestamp('When its delivery was claimed; null if it was not, or was released.')),
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
  description: '`held`: claimed and not confirmed yet. `done`: final or confirmed.',
})
export type DeliveryState = Static<typeof DeliveryState>

/** Of a list whose `limit` is absent. */
export const DEFAULT_PAGE_SIZE = 20

export const ListPaymentsParams = strict(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, default: DEFAULT_PAGE_SIZE, description: 'How many to return at most.' }),
    ),
    cursor: Type.Optional(text('`nextCursor` of the page before.')),
    status: Type.Optional(
      Type.Enum(['payment_required', 'paid', 'expired', 'settled'], {
        $id: 'PaymentStatusFilter',
        description: '`settled`: the node has the money, and no credential was validated.',
      }),
    ),
    delivery: Type.Optional(DeliveryState),
    nodeId: Type.Optional(text('Only payments to this node.')),
  },
  { $id: 'ListPaymentsParams', description: 'Which payments to list.' },
)
