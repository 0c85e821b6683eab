import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import {
  anyObject,
  boundedText,
  count,
  flag,
  NextCursor,
  named,
  nullable,
  personGivenName,
  strict,
  text,
  timestamp,
} from '../schemas.ts'
import { pagingFields } from './paging.ts'

const MAX_CREDIT_SAT = 9_007_199_254

export const AccountId = Type.Object({ id: text('Id of an account, `acct_…`.') })

const accountFields = {
  id: text('Id of the account, `acct_…`.'),
  name: text('The name its owner chose. Not unique.'),
  emails: Type.Array(Type.String(), { description: 'Email addresses that can sign in to it.' }),
  creditSat: Type.Integer({ description: 'Its balance in satoshis, rounded down.' }),
  createdAt: timestamp('When it was created.'),
  signInMethods: Type.Array(Type.Enum(['password', 'passkey']), {
    description: 'How its owner can sign in. Empty without an owner.',
  }),
  nodes: count('Its nodes that are not deleted.'),
  isTreasury: flag('Whether its node receives what people pay for credit.'),
}
const accountExample = {
  id: 'acct_01hgw2bbg0000000000a',
  name: 'Kiosk',
  emails: ['ann@example.com'],
  creditSat: 10000,
  createdAt: 1767225600,
  signInMethods: ['password'],
  nodes: 1,
  isTreasury: false,
}
export const Account = named(accountFields, {
  $id: 'Account',
  description: 'An account, as the operator sees it.',
  examples: [accountExample],
})
export const AccountDetail = named(
  {
    ...accountFields,
    creditLeftSat: Type.Integer({
      description: 'What its owner sees as the balance: `creditSat` minus usage that is not in the ledger yet, rounded down.',
    }),
    runwaySeconds: nullable(count('How long that lasts for the nodes that are charged now; null if none is.')),
    stopsAt: nullable(timestamp('When its nodes will be stopped, because its credit is used up; null while there is credit.')),
  },
  {
    $id: 'AccountDetail',
    description: 'One account, as the operator sees it.',
    examples: [{ ...accountExample, creditLeftSat: 9998, runwaySeconds: 8_638_000, stopsAt: null }],
  },
)
export type OperatorAccount = Static<typeof Account>
export type OperatorAccountDetail = Static<typeof AccountDetail>
export const AccountList = named(
  { accounts: Type.Array(Account), nextCursor: NextCursor },
  { $id: 'AccountList', description: 'Accounts.' },
)
const accountQuery = strict({
  search: Type.Optional(boundedText('Part of a name or email address, or the id of an account or of one of its nodes.')),
  ...pagingFields,
})
export const CreateAccountParams = strict(
  {
    name: personGivenName('Its name.'),
    creditSat: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MAX_CREDIT_SAT, description: 'Its initial credit. Defaults to `SIGNUP_CREDIT_SAT`.' }),
    ),
  },
  { $id: 'CreateAccountParams', description: 'A new account.', examples: [{ name: 'Kiosk', creditSat: 10000 }] },
)
export const AddCreditParams = strict(
  {
    amountSat: Type.Integer({ minimum: -MAX_CREDIT_SAT, maximum: MAX_CREDIT_SAT, description: 'Negative to deduct credit.' }),
    reason: personGivenName('The reason, for the ledger.'),
  },
  {
    $id: 'AddCreditParams',
    description: 'A change to an account’s credit.',
    examples: [{ amountSat: 5000, reason: 'Goodwill' }],
  },
)
export const LedgerEntry = named(
  {
    id: Type.Integer({ description: 'Ascending.' }),
    amountSat: Type.Integer({ description: 'Positive if added, negative if deducted.' }),
    kind: text('The kind of entry, such as `operator` or `signup`.'),
    reason: text('The reason that was given.'),
    createdAt: timestamp('When it was entered.'),
    creditSat: Type.Integer({ description: 'The account’s balance after this entry, rounded down.' }),
  },
  { $id: 'LedgerEntry', description: 'One entry of an account’s ledger.' },
)
export type LedgerEntry = Static<typeof LedgerEntry>

const activityFields = {
  at: timestamp('When it happened.'),
  actor: text('Who did it: a key, a person, the operator or the service.'),
  action: text('What was done, such as `node.created`.'),
  target: nullable(text('Id of the affected object.')),
  detail: anyObject('Further details.'),
}
export const Activity = named(activityFields, { $id: 'Activity', description: 'One entry of an account’s activity log.' })
export const ActivityList = named(
  { activity: Type.Array(Activity) },
  { $id: 'ActivityList', description: 'An account’s activity log, newest first.' },
)
export const NumberedActivity = named(
  { id: Type.Integer({ description: 'Ascending.' }), ...activityFields },
  { $id: 'NumberedActivity', description: 'One entry of an account’s activity log, with the number used for paging.' },
)
export type NumberedActivity = Static<typeof NumberedActivity>

const ofOperator = { tag: 'Operator', caller: 'operator' } as const

export const createAccount = operation({
  ...ofOperator,
  method: 'POST',
  path: '/operator/v1/accounts',
  operationId: 'createAccount',
  summary: 'Create an account',
  body: CreateAccountParams,
  status: 201,
  response: Account,
  errors: [],
})
export const listAccounts = operation({
  ...ofOperator,
  method: 'GET',
  path: '/operator/v1/accounts',
  operationId: 'listAccounts',
  summary: 'List accounts',
  description: 'All of them in one response, unless `limit` is given.',
  query: accountQuery,
  status: 200,
  response: AccountList,
  errors: [],
})
export const getAccount = operation({
  ...ofOperator,
  method: 'GET',
  path: '/operator/v1/accounts/{id}',
  operationId: 'getAccount',
  summary: 'Get an account',
  params: AccountId,
  status: 200,
  response: AccountDetail,
  errors: ['not_found'],
})
export const listAccountActivity = operation({
  ...ofOperator,
  method: 'GET',
  path: '/operator/v1/accounts/{id}/activity',
  operationId: 'listAccountActivity',
  summary: 'List the activity of an account, newest first',
  params: AccountId,
  status: 200,
  response: ActivityList,
  errors: ['not_found'],
})
export const addCredit = operation({
  ...ofOperator,
  method: 'POST',
  path: '/operator/v1/accounts/{id}/credit',
  operationId: 'addCredit',
  summary: 'Add or deduct an account’s credit',
  params: AccountId,
  takesIdempotencyKey: true,
  body: AddCreditParams,
  status: 201,
  response: LedgerEntry,
  errors: ['not_found', 'operation_in_progress', 'idempotency_conflict'],
})
