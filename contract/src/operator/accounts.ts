import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { anyObject, named, nullable, personGivenName, strict, text, timestamp } from '../schemas.ts'

const MAX_CREDIT_SAT = 9_007_199_254

export const AccountId = Type.Object({ id: text('Id of an account, `acct_…`.') })

export const Account = named(
  {
    id: text('Id of the account, `acct_…`.'),
    name: text('The name its owner chose. Not unique.'),
    emails: Type.Array(Type.String(), { description: 'Email addresses that can sign in to it.' }),
    creditSat: Type.Integer({ description: 'Its balance in satoshis, rounded down.' }),
    createdAt: timestamp('When it was created.'),
  },
  {
    $id: 'Account',
    description: 'An account, as the operator sees it.',
    examples: [
      { id: 'acct_01hgw2bbg0000000000a', name: 'Kiosk', emails: ['ann@example.com'], creditSat: 10000, createdAt: 1767225600 },
    ],
  },
)
export const AccountList = named({ accounts: Type.Array(Account) }, { $id: 'AccountList', description: 'All accounts.' })
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
  },
  { $id: 'LedgerEntry', description: 'One entry of an account’s ledger.' },
)

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
  summary: 'List all accounts',
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
  response: Account,
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
  body: AddCreditParams,
  status: 201,
  response: LedgerEntry,
  errors: ['not_found'],
})
