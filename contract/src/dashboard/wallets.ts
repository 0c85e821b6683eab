import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { READABLE_OR_EMPTY } from '../readable-text.ts'
import { amountSat, count, flag, NodeId, named, nullable, strict, text, timestamp } from '../schemas.ts'

export const NodeLive = named(
  {
    isReachable: flag('Whether the node responds now.'),
    balanceSat: nullable(Type.Integer({ description: 'Null, never zero, if unknown.' })),
    feeCreditSat: nullable(Type.Integer({ description: 'Received, and reserved for the fee of the first channel.' })),
    channels: nullable(Type.Object({ usable: count('Open and usable.'), total: count('All channels.') })),
    inboundSat: nullable(Type.Integer({ description: 'How much it can receive without buying liquidity.' })),
    blockHeight: nullable(Type.Integer({ description: 'The last block the node has seen.' })),
    version: nullable(text('The version it runs.')),
  },
  {
    $id: 'NodeLive',
    description: 'The node’s current state, as reported by the node itself. Values it does not report are null.',
  },
)
export type NodeLive = Static<typeof NodeLive>
export const NodePayment = named(
  {
    direction: Type.Enum(['in', 'out'], { description: 'Received or sent.' }),
    paymentHash: nullable(text('Hex.')),
    amountSat: Type.Integer({ description: 'Without fees.' }),
    feeMsat: Type.Integer({ description: 'The fee the node paid.' }),
    description: nullable(text('Description of the invoice.')),
    isPaid: flag('Whether the payment is complete.'),
    createdAt: timestamp('When it was created.'),
    expiresAt: nullable(timestamp('When the invoice expires or expired; null if sent or unknown.')),
    completedAt: nullable(timestamp('When it was paid.')),
    gatewayPaymentId: nullable(text('The gateway payment it belongs to.')),
  },
  { $id: 'NodePayment', description: 'One payment from the node’s own records.' },
)
export type NodePayment = Static<typeof NodePayment>
export const NodePaymentList = named(
  { payments: Type.Array(NodePayment) },
  { $id: 'NodePaymentList', description: 'The newest payments of a node.' },
)
export const CreateInvoiceParams = strict(
  {
    amountSat: Type.Optional(amountSat('If absent, the payer chooses the amount.')),
    // May be empty, unlike a gateway payment's: this invoice goes to someone the owner knows, not to a customer.
    description: Type.String({ maxLength: 500, pattern: READABLE_OR_EMPTY, description: 'May be empty.' }),
  },
  { $id: 'CreateInvoiceParams', description: 'The invoice to create.' },
)
export const NodeInvoice = named(
  { paymentHash: text('Hex.'), invoice: text('A BOLT 11 invoice.') },
  { $id: 'NodeInvoice', description: 'An invoice of a node.' },
)
export type NodeInvoice = Static<typeof NodeInvoice>
export const NodeInvoiceState = named(
  { isPaid: flag('Whether it was paid.'), receivedSat: Type.Integer({ description: 'The amount received.' }) },
  { $id: 'NodeInvoiceState', description: 'Whether an invoice of a node was paid.' },
)
export type NodeInvoiceState = Static<typeof NodeInvoiceState>
export const SendPaymentParams = strict(
  {
    invoice: Type.String({ minLength: 1, maxLength: 4200, description: 'A BOLT 11 invoice.' }),
    amountSat: Type.Optional(amountSat('Required if the invoice has no amount.')),
  },
  { $id: 'SendPaymentParams', description: 'The invoice to pay from a node.' },
)
export const NodeSent = named(
  {
    outcome: Type.Enum(['sent', 'already_sent', 'failed', 'unknown'], {
      description:
        '`already_sent`: an earlier request had paid this invoice, and this one sent nothing. `unknown`: the node has not reported the outcome yet.',
    }),
    reason: nullable(text('Why it failed.')),
    amountSat: nullable(Type.Integer({ description: 'The amount sent.' })),
    feeSat: nullable(Type.Integer({ description: 'The fee paid.' })),
  },
  { $id: 'NodeSent', description: 'The outcome of a payment from a node.' },
)
export type NodeSent = Static<typeof NodeSent>

const InvoiceOfNode = Type.Object({ ...NodeId.properties, paymentHash: text('Payment hash of the invoice, in hex.') })
const ofNode = { tag: 'Dashboard', caller: 'session', params: NodeId } as const

export const getNodeLive = operation({
  ...ofNode,
  method: 'GET',
  path: '/dashboard/api/nodes/{nodeId}/live',
  operationId: 'getNodeLive',
  summary: 'Get a node’s balance and channels',
  status: 200,
  response: NodeLive,
  errors: ['node_not_found'],
})
export const listNodePayments = operation({
  ...ofNode,
  method: 'GET',
  path: '/dashboard/api/nodes/{nodeId}/payments',
  operationId: 'listNodePayments',
  summary: 'List a node’s own payments, newest first',
  status: 200,
  response: NodePaymentList,
  errors: ['node_not_found', 'payment_service_unavailable'],
})
export const createNodeInvoice = operation({
  ...ofNode,
  method: 'POST',
  path: '/dashboard/api/nodes/{nodeId}/invoices',
  operationId: 'createNodeInvoice',
  summary: 'Create an invoice',
  body: CreateInvoiceParams,
  status: 201,
  response: NodeInvoice,
  errors: ['node_not_found', 'payment_service_unavailable'],
})
export const getNodeInvoice = operation({
  ...ofNode,
  method: 'GET',
  path: '/dashboard/api/nodes/{nodeId}/invoices/{paymentHash}',
  operationId: 'getNodeInvoice',
  summary: 'Check whether an invoice was paid',
  params: InvoiceOfNode,
  status: 200,
  response: NodeInvoiceState,
  errors: ['node_not_found', 'not_found', 'payment_service_unavailable'],
})
export const sendNodePayment = operation({
  ...ofNode,
  method: 'POST',
  path: '/dashboard/api/nodes/{nodeId}/pay',
  operationId: 'sendNodePayment',
  summary: 'Pay an invoice from a node',
  description: 'Only with `accessMode` `full`.',
  body: SendPaymentParams,
  status: 200,
  response: NodeSent,
  errors: ['node_not_found', 'invalid_node_state', 'payment_service_unavailable'],
})
