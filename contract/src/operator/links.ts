import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { boundedText, NoParams, named, nullable, strict, text, timestamp } from '../schemas.ts'
import { AccountId } from './accounts.ts'

export const SignInLink = named(
  {
    url: text('Works once, for anyone who has it; an invitation may be limited to one email address.'),
    expiresAt: timestamp('When it stops working.'),
    kind: Type.Enum(['sign-in', 'claim', 'invitation'], {
      description:
        '`sign-in`: anyone who uses it is signed in as the owner of the account. `claim`: the account has no owner, and the person who uses the link becomes the owner. `invitation`: a new account.',
    }),
    email: nullable(
      text(
        'The address of the person it signs in, or the only address that can sign up with the invitation; null if the person chooses one.',
      ),
    ),
  },
  { $id: 'SignInLink', description: 'A link for you to pass on: the service does not send email.' },
)
export type OneLink = Static<typeof SignInLink>
export const EmailParams = strict(
  { email: boundedText('Email address of the person to sign in.') },
  { $id: 'EmailParams', description: 'The person to sign in.', examples: [{ email: 'ann@example.com' }] },
)
export const InviteParams = strict(
  { email: Type.Optional(boundedText('If present, only this email address can sign up with the link.')) },
  { $id: 'InviteParams', description: 'The person to invite.', examples: [{ email: 'ann@example.com' }] },
)

const newLink = { method: 'POST', tag: 'Operator', caller: 'operator', status: 201, response: SignInLink } as const

export const createAccountSignInLink = operation({
  ...newLink,
  path: '/operator/v1/accounts/{id}/sign-in-link',
  operationId: 'createAccountSignInLink',
  summary: 'Create a sign-in link for an account',
  description: 'Signs in the owner of the account. If it has no owner, the person who uses the link becomes the owner.',
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
  errors: ['account_exists'],
})
