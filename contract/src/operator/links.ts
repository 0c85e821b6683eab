import { Type } from 'typebox'
import { operation } from '../operation.ts'
import { boundedText, NoParams, named, strict, text, timestamp } from '../schemas.ts'
import { AccountId } from './accounts.ts'

export const SignInLink = named(
  { url: text('Anyone who has it can use it once.'), expiresAt: timestamp('Until when it works.') },
  { $id: 'SignInLink', description: 'A link to hand over yourself: the service sends no mail.' },
)
export const EmailParams = strict(
  { email: boundedText('Who signs in with it.') },
  { $id: 'EmailParams', description: 'Whom to sign in.' },
)
export const InviteParams = strict(
  { email: Type.Optional(boundedText('Only this address can sign up with the link. Any address if absent.')) },
  { $id: 'InviteParams', description: 'Whom to invite.' },
)

const newLink = { method: 'POST', tag: 'Operator', caller: 'operator', status: 201, response: SignInLink } as const

export const createAccountSignInLink = operation({
  ...newLink,
  path: '/operator/v1/accounts/{id}/sign-in-link',
  operationId: 'createAccountSignInLink',
  summary: 'Create a sign-in link for an account',
  description: 'Signs in the person the account belongs to. If it has none, whoever uses the link becomes its owner.',
  params: AccountId,
  body: NoParams,
  errors: ['not_found'],
})
export const createSignInLink = operation({
  ...newLink,
  path: '/operator/v1/sign-in-links',
  operationId: 'createSignInLink',
  summary: 'Create a sign-in link by email address',
  body: EmailParams,
  errors: ['not_found'],
})
export const createInvitation = operation({
  ...newLink,
  path: '/operator/v1/invitations',
  operationId: 'createInvitation',
  summary: 'Create an invitation to sign up',
  body: InviteParams,
  errors: [],
})
