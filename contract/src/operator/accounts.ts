import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { anyObject, named, nullable, personGivenName, strict, text, timestamp } from '../schemas.ts'

const MAX_CREDIT_SAT = 9_007_199_254

export const AccountId = Type.Object({ id: text('Id of an account, `acct_…`.') })

export const Account = named(
  {
    id: text('Id of the account, `acct_…`.'),
    name: text('As its owner chose; two accounts may have the same.'),
    emails: Type.Array(Type.String(), { description: 'Who signs in to it.' }),
    creditSat: Type.Integer({ description: 'Its balance, rounded down.' }),
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
      Type.Integer({ minimum: 0, maximum: MAX_CREDIT_SAT, description: 'Its first credit. `SIGNUP_CREDIT_SAT` if absent.' }),
    ),
  },
  { $id: 'CreateAccountParams', description: 'A new account.', examples: [{ name: 'Kiosk', creditSat: 10000 }] },
)
export const AddCreditParams = strict(
  {
    amountSat: Type.Integer({ minimum: -MAX_CREDIT_SAT, maximum: MAX_CREDIT_SAT, description: 'Negative to take credit away.' }),
    reason: personGivenName('For the ledger.'),
  },
  {
    $id: 'AddCreditParams',
    description: 'A change of an account’s credit.',
    examples: [{ amountSat: 5000, reason: 'Goodwill' }],
  },
)
export const LedgerEntry = named(
  {
    id: Type.Integer({ description: 'Ascending.' }),
    amountSat: Type.Integer({ description: 'What was added or taken.' }),
    kind: text('Where it comes from: `operator`, `signup`, …'),
    reason: text('As given.'),
    createdAt: timestamp('When it was entered.'),
  },
  { $id: 'LedgerEntry', description: 'One entry of an account’s ledger.' },
)

const activityFields = {
  at: timestamp('When it happened.'),
  actor: text('Who did it: a key, a person, the operator or the service.'),
  action: text('What was done, such as `node.created`.'),
  target: nullable(text('To what, by its id.')),
  detail: anyObject('More about it.'),
}
export const Activity = named(activityFields, { $id: 'Activity', description: 'One line of an account’s log.' })
export const ActivityList = named(
  { activity: Type.Array(Activity) },
  { $id: 'ActivityList', description: 'What happened in an account, newest first.' },
)
export const NumberedActivity = named(
  { id: Type.Integer({ description: 'Ascending.' }), ...activityFields },
  { $id: 'NumberedActivity', description: 'One line of an account’s log, with the number that pages go by.' },
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
  summary: 'List what happened in an account, newest first',
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
  summary: 'Add credit to an account, or take it away',
  params: AccountId,
  body: AddCreditParams,
  status: 201,
  response: LedgerEntry,
  errors: ['not_found'],
})
