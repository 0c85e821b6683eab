import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { boundedText, count, flag, NoParams, named, nullable, personGivenName, strict, text, timestamp } from '../schemas.ts'

/** Two-factor sign-in, sessions, the email address, and the name and deletion of an account. */

const ofPerson = { tag: 'Dashboard', caller: 'session' } as const
const password = Type.Optional(boundedText('The current password. Not needed within ten minutes of signing in with a passkey.'))
const Code = strict(
  { code: boundedText('Six digits from the authenticator app, or a recovery code.') },
  { $id: 'CodeParams', description: 'Proof of the second factor.' },
)

export const Security = named(
  {
    twoFactor: Type.Object({
      isOn: flag('A code is asked for after the password.'),
      since: nullable(timestamp('When it was turned on.')),
      recoveryCodesLeft: count('Recovery codes that have not been used.'),
    }),
    hasRecentPasskey: flag('This session began with a passkey within the last ten minutes, so no password is asked for.'),
  },
  { $id: 'Security', description: 'How the person signs in.' },
)
export type Security = Static<typeof Security>
export const TwoFactorSetup = named(
  { secret: text('In base 32, to type into the app.'), uri: text('The same as an `otpauth:` URI, for a QR code.') },
  {
    $id: 'TwoFactorSetup',
    description: 'What the authenticator app needs. Two-factor sign-in is not on until a code confirms it.',
  },
)
export type TwoFactorSetup = Static<typeof TwoFactorSetup>
export const RecoveryCodes = named(
  { recoveryCodes: Type.Array(Type.String()) },
  { $id: 'RecoveryCodes', description: 'New recovery codes, shown once. Earlier codes no longer work.' },
)
export const AccountDeletion = named(
  {
    isPossible: flag('The account has no nodes, no data of deleted ones, and no open invoice for credit.'),
    existing: count('Nodes that have not been deleted.'),
    retained: count('Deleted nodes whose data is still kept.'),
    dueAt: nullable(timestamp('When the data of the last of them is due for removal.')),
    creditSat: Type.Integer({ description: 'Credit that would be lost, in sats.' }),
    topUpUntil: nullable(
      timestamp('Until when an open invoice for credit can be paid. The account cannot be deleted before that.'),
    ),
    explanation: text('When the account can be deleted.'),
  },
  { $id: 'AccountDeletion', description: 'Whether the account can be deleted.' },
)
export type AccountDeletion = Static<typeof AccountDeletion>

export const getSecurity = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/security',
  operationId: 'getSecurity',
  summary: 'Get your sign-in methods',
  status: 200,
  response: Security,
  errors: [],
})
export const changeOwnEmail = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/security/email',
  operationId: 'changeOwnEmail',
  summary: 'Change the email address',
  body: strict(
    { email: boundedText('The new address, to sign in with.'), password },
    { $id: 'ChangeEmailParams', description: 'A new address.' },
  ),
  status: 200,
  response: named({ email: text('The new address.') }, { $id: 'ChangedEmail', description: 'The address to sign in with.' }),
  errors: [],
})
export const endOwnSession = operation({
  ...ofPerson,
  method: 'DELETE',
  path: '/dashboard/api/security/sessions/{id}',
  operationId: 'endOwnSession',
  summary: 'Sign out one session',
  params: Type.Object({ id: text('Id of a session.') }),
  body: NoParams,
  status: 204,
  errors: ['not_found'],
})
export const beginTwoFactor = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/security/two-factor',
  operationId: 'beginTwoFactor',
  summary: 'Start to set up two-factor sign-in',
  body: strict({ password }, { $id: 'BeginTwoFactorParams', description: 'Proof that the person asks for this.' }),
  status: 200,
  response: TwoFactorSetup,
  errors: [],
})
export const confirmTwoFactor = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/security/two-factor/confirm',
  operationId: 'confirmTwoFactor',
  summary: 'Turn two-factor sign-in on with a first code',
  body: Code,
  status: 200,
  response: RecoveryCodes,
  errors: [],
})
export const endTwoFactor = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/security/two-factor/off',
  operationId: 'endTwoFactor',
  summary: 'Turn two-factor sign-in off',
  body: Code,
  status: 204,
  errors: [],
})
export const replaceRecoveryCodes = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/security/recovery-codes',
  operationId: 'replaceRecoveryCodes',
  summary: 'Replace the recovery codes',
  body: Code,
  status: 200,
  response: RecoveryCodes,
  errors: [],
})
export const renameAccount = operation({
  ...ofPerson,
  method: 'PATCH',
  path: '/dashboard/api/account',
  operationId: 'renameAccount',
  summary: 'Change the name of the account',
  body: strict({ name: personGivenName('The new name.') }, { $id: 'RenameAccountParams', description: 'A new name.' }),
  status: 200,
  response: named({ name: text('The new name.') }, { $id: 'RenamedAccount', description: 'The account’s name.' }),
  errors: [],
})
export const getAccountDeletion = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/account/deletion',
  operationId: 'getAccountDeletion',
  summary: 'Check whether the account can be deleted',
  status: 200,
  response: AccountDeletion,
  errors: [],
})
export const deleteAccount = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/account/deletion',
  operationId: 'deleteAccount',
  summary: 'Delete the account',
  body: strict(
    { name: boundedText('The name of the account, typed by the person.'), password },
    { $id: 'DeleteAccountParams', description: 'Proof that the person means it.' },
  ),
  status: 204,
  errors: ['invalid_node_state'],
})
