import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { count, cursorQuery, flag, NextCursor, named, nullable, strict, text, timestamp } from '../schemas.ts'

export const MAX_TOP_UP_SAT = 10_000_000

const summaryFields = {
  balanceSat: Type.Integer({ description: 'Whole satoshis, rounded down.' }),
  balanceMsat: Type.Integer({ description: 'The same, exactly.' }),
  unpostedMsat: Type.Integer({ description: 'Usage that is not in the ledger yet; already subtracted from both balances.' }),
  nodesThatCost: count('Nodes that are charged for now.'),
  runwaySeconds: nullable(Type.Integer({ description: 'How long the credit lasts; null when nothing costs.' })),
  warning: Type.Enum(['none', 'week', 'day', 'empty'], { description: 'How soon it runs out.' }),
  stopsAt: nullable(timestamp('When nodes will be stopped; null while there is credit.')),
  canTopUp: flag('Whether credit can be bought here.'),
}
export const CreditSummary = named(summaryFields, { $id: 'CreditSummary', description: 'The account’s credit.' })
export type CreditSummary = Static<typeof CreditSummary>
export const CreditEntry = named(
  {
    id: Type.Integer({ description: 'Ascending.' }),
    amountMsat: Type.Integer({ description: 'Added, or taken if negative.' }),
    balanceAfterMsat: Type.Integer({ description: 'The balance after it.' }),
    kind: text('Where it comes from.'),
    reason: text('In words.'),
    reference: nullable(text('What it is about, by its id.')),
    createdAt: timestamp('When it was entered.'),
  },
  { $id: 'CreditEntry', description: 'One entry of the ledger.' },
)
export type CreditEntry = Static<typeof CreditEntry>
export const Credit = named(
  { ...summaryFields, entries: Type.Array(CreditEntry), nextCursor: NextCursor },
  { $id: 'Credit', description: 'The account’s credit, and one page of its ledger, newest first.' },
)
export type Credit = Static<typeof Credit>
export const CreateTopUpParams = strict(
  { amountSat: Type.Integer({ minimum: 1, maximum: MAX_TOP_UP_SAT, description: 'How much credit to buy.' }) },
  { $id: 'CreateTopUpParams', description: 'A purchase of credit.' },
)
export const TopUp = named(
  {
    paymentHash: text('Hex; its id.'),
    amountSat: Type.Integer({ description: 'What it buys.' }),
    invoice: text('A BOLT 11 invoice.'),
    expiresAt: timestamp('When the invoice expires.'),
    settledAt: nullable(timestamp('When it was paid.')),
  },
  { $id: 'TopUp', description: 'An invoice that becomes credit when it is paid.' },
)
export type TopUp = Static<typeof TopUp>

const ofPerson = { tag: 'Dashboard', caller: 'session' } as const

export const getCredit = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/credit',
  operationId: 'getCredit',
  summary: 'Get the credit and its ledger',
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
  summary: 'Ask whether credit was paid for',
  params: Type.Object({ paymentHash: text('Of the top-up, hex.') }),
  status: 200,
  response: TopUp,
  errors: ['not_found'],
})
