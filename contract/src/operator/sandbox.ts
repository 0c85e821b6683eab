import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { amountSat, anyObject, named, strict, text } from '../schemas.ts'
import { IdOfNode } from './nodes.ts'

export const FundParams = strict(
  { amountSat: amountSat('The amount to add.') },
  { $id: 'FundParams', description: 'The amount to fund a sandbox node with.', examples: [{ amountSat: 100000 }] },
)
export const Funded = named(
  { balanceSat: Type.Integer({ description: 'Its new balance.' }) },
  { $id: 'Funded', description: 'A funded sandbox node.' },
)
export const PayInvoiceParams = strict(
  { invoice: Type.String({ minLength: 1, maxLength: 4096, description: 'A BOLT 11 invoice of this sandbox.' }) },
  { $id: 'PayInvoiceParams', description: 'The invoice to pay.' },
)
export const PaidInvoice = named(
  { paymentHash: text('Hex.'), preimage: text('The preimage in hex, which the payer learns by paying.') },
  { $id: 'PaidInvoice', description: 'A paid invoice.' },
)
export type PaidInvoice = Static<typeof PaidInvoice>
export const FaultParams = strict(
  { fault: Type.Enum(['crash', 'hang', 'peer_down', 'slow', 'none'], { description: '`none` ends the current fault.' }) },
  { $id: 'FaultParams', description: 'The fault to simulate.', examples: [{ fault: 'peer_down' }] },
)

const ofSandbox = { method: 'POST', tag: 'Sandbox', caller: 'operator', status: 200 } as const

export const fundSandboxNode = operation({
  ...ofSandbox,
  path: '/operator/v1/sandbox/nodes/{id}/fund',
  operationId: 'fundSandboxNode',
  summary: 'Fund a sandbox node',
  params: IdOfNode,
  body: FundParams,
  response: Funded,
  errors: ['node_not_found', 'payment_service_unavailable'],
})
export const paySandboxInvoice = operation({
  ...ofSandbox,
  path: '/operator/v1/sandbox/pay',
  operationId: 'paySandboxInvoice',
  summary: 'Pay a sandbox invoice as a customer would',
  body: PayInvoiceParams,
  response: PaidInvoice,
  errors: ['payment_service_unavailable'],
})
export const setSandboxFault = operation({
  ...ofSandbox,
  path: '/operator/v1/sandbox/nodes/{id}/fault',
  operationId: 'setSandboxFault',
  summary: 'Make a sandbox node fail',
  params: IdOfNode,
  body: FaultParams,
  response: anyObject('Empty.'),
  errors: ['node_not_found', 'payment_service_unavailable'],
})
