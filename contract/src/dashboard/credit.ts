import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { count, cursorQuery, flag, NextCursor, named, nullable, strict, text, timestamp } from '../schemas.ts'

export const MAX_TOP_UP_SAT = 10_000_000

const summaryFields = {
  balanceSat: Type.Integer({ description: 'The balance in satoshis, rounded down.' }),
  balanceMsat: Type.Integer({ description: 'The exact balance.' }),
  unpostedMsat: Type.Integer({ description: 'Usage that is not in the ledger yet; already subtracted from both balances.' }),
  nodesThatCost: count('Nodes that are being charged for.'),
  runwaySeconds: nullable(Type.Integer({ description: 'How long the credit will last; null while nothing is charged for.' })),
  warning: Type.Enum(['none', 'week', 'day', 'empty'], { description: 'How soon the credit runs out.' }),
  stopsAt: nullable(timestamp('When nodes will be stopped; null while there is credit.')),
  canTopUp: flag('Whether credit can be bought here.'),
}
export const CreditSummary = named(summaryFields, { $id: 'CreditSummary', description: 'The account’s credit.' })
export type CreditSummary = Static<typeof CreditSummary>
export const CreditEntry = named(
  {
    id: Type.Integer({ description: 'Ascending.' }),
    amountMsat: Type.Integer({ description: 'Positive if added, negative if deducted.' }),
    balanceAfterMsat: Type.Integer({ description: 'The balance after this entry.' }),
    kind: text('The kind of entry, such as `operator` or `signup`.'),
    reason: text('An explanation for people.'),
    reference: nullable(text('Id of the related object, if any.')),
    createdAt: timestamp('When it was entered.'),
  },
  { $id: 'CreditEntry', description: 'One ledger entry.' },
)
export type CreditEntry = Static<typeof CreditEntry>
export const Credit = named(
  { ...summaryFields, entries: Type.Array(CreditEntry), nextCursor: NextCursor },
  { $id: 'Credit', description: 'The account’s credit and one page of its ledger, newest first.' },
)
export type Credit = Static<typeof Credit>
export const CreateTopUpParams = strict(
  { amountSat: Type.Integer({ minimum: 1, maximum: MAX_TOP_UP_SAT, description: 'How much credit to buy.' }) },
  { $id: 'CreateTopUpParams', description: 'A purchase of credit.' },
)
export const TopUp = named(
  {
    paymentHash: text('Payment hash in hex, which identifies the top-up.'),
    amountSat: Type.Integer({ description: 'How much credit it buys.' }),
    invoice: text('A BOLT 11 invoice.'),
    expiresAt: timestamp('When the invoice expires.'),
    settledAt: nullable(timestamp('When it was paid.')),
  },
  { $id: 'TopUp', description: 'An invoice that adds credit when it is paid.' },
)
export type TopUp = Static<typeof TopUp>

const ofPerson = { tag: 'Dashboard', caller: 'session' } as const

export const getCredit = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/credit',
  operationId: 'getCredit',
  summary: 'Get the credit and the ledger',
  query: cursorQuery,
  status: 200,
  response: Credit,
  errors: [],
})
export const createTopUp = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/credit/top-ups',
  operationId: 'createTopUp',
  summary: 'Buy credit',
  body: CreateTopUpParams,
  status: 201,
  response: TopUp,
  errors: ['not_found', 'limit_reached', 'payment_service_unavailable'],
})
export const getTopUp = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/credit/top-ups/{paymentHash}',
  operationId: 'getTopUp',
  summary: 'Check whether a top-up was paid',
  params: Type.Object({ paymentHash: text('Payment hash of the top-up, in hex.') }),
  status: 200,
  response: TopUp,
  errors: ['not_found'],
})
