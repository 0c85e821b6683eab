import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { count, cursorQuery, flag, NextCursor, named, nullable, strict, text, timeParam, timestamp } from '../schemas.ts'

export const MAX_TOP_UP_SAT = 10_000_000

const summaryFields = {
  balanceSat: Type.Integer({ description: 'The balance in satoshis, rounded down.' }),
  balanceMsat: Type.Integer({ description: 'The exact balance.' }),
  unpostedMsat: Type.Integer({ description: 'Usage that is not in the ledger yet; already subtracted from both balances.' }),
  nodesThatCost: count('Nodes that are being charged for.'),
  runwaySeconds: nullable(Type.Integer({ description: 'How long the credit will last; null while nothing is charged for.' })),
  warning: Type.Enum(['none', 'week', 'day', 'empty'], { description: 'How soon the credit runs out.' }),
  stopsAt: nullable(timestamp('When nodes will be stopped; null while there is credit.')),
  graceHours: count('How many hours nodes keep running after the credit is used up.'),
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
    nodeId: nullable(text('The node whose usage it is.')),
    nodeName: nullable(text('The name of that node, also if it was deleted.')),
    createdAt: timestamp('When it was entered.'),
  },
  { $id: 'CreditEntry', description: 'One ledger entry.' },
)
export type CreditEntry = Static<typeof CreditEntry>
const UnpostedUsage = Type.Object(
  {
    nodeId: text('The node.'),
    nodeName: nullable(text('Its name; null if it is not known any more.')),
    since: timestamp('The start of the time that is not in the ledger yet.'),
    minutes: count('How many minutes are charged.'),
    amountMsat: count('What they cost.'),
    isRunning: flag('Whether it is still being charged.'),
  },
  { description: 'Usage of one node that is not in the ledger yet.' },
)
export const Credit = named(
  {
    ...summaryFields,
    unposted: Type.Array(UnpostedUsage, { description: 'What `unpostedMsat` consists of.' }),
    matching: nullable(
      Type.Object(
        { count: count('How many entries.'), amountMsat: Type.Integer({ description: 'Their sum.' }) },
        {
          description:
            'All entries that match the filter, not only those of this page; null without a filter, and on later pages.',
        },
      ),
    ),
    entries: Type.Array(CreditEntry),
    nextCursor: NextCursor,
  },
  { $id: 'Credit', description: 'The account’s credit and one page of its ledger, newest first.' },
)
export type Credit = Static<typeof Credit>
export const LEDGER_KINDS = ['usage', 'top_up', 'operator', 'signup'] as const
const period = {
  from: Type.Optional(timeParam('Only what happened at this time or later.')),
  to: Type.Optional(timeParam('Only what happened before this time.')),
}
const ledgerFilter = {
  kind: Type.Optional(Type.Enum([...LEDGER_KINDS], { description: 'Only entries of this kind.' })),
  ...period,
}
const usageQuery = strict({
  from: timeParam('Only what was charged since this time, rounded down to a quarter hour. At most 92 days ago.'),
})
export const CreditUsage = named(
  {
    nodes: Type.Array(
      Type.Object({
        nodeId: text('The node.'),
        nodeName: nullable(text('Its name, also if it was deleted.')),
        isDeleted: flag('Whether it was deleted.'),
        amountMsat: count('What it cost.'),
        minutes: count('How long it was charged.'),
      }),
      { description: 'Most expensive first.' },
    ),
    quarterHours: Type.Array(
      Type.Object({ at: timestamp('Start of the quarter hour.'), amountMsat: count('What all nodes cost.') }),
      {
        description:
          'Cost per quarter hour, by the time it was posted to the ledger, at most about an hour after the usage. Unposted usage counts as posted now. Quarter hours without cost are left out.',
      },
    ),
  },
  { $id: 'CreditUsage', description: 'What nodes have cost since a given time, including usage that is not in the ledger yet.' },
)
export type CreditUsage = Static<typeof CreditUsage>
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
  query: strict({ ...cursorQuery.properties, ...ledgerFilter }),
  status: 200,
  response: Credit,
  errors: [],
})
export const getCreditUsage = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/credit/usage',
  operationId: 'getCreditUsage',
  summary: 'Get what each node cost in a period',
  query: usageQuery,
  status: 200,
  response: CreditUsage,
  errors: [],
})
export const exportLedger = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/credit/ledger.csv',
  operationId: 'exportLedger',
  summary: 'Export the ledger as CSV, oldest first',
  query: strict(ledgerFilter),
  status: 200,
  errors: [],
})
export const exportCreditUsage = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/credit/usage.csv',
  operationId: 'exportCreditUsage',
  summary: 'Export what each node cost in a period as CSV, most expensive first',
  query: usageQuery,
  status: 200,
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
