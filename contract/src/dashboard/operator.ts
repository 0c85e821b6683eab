import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { flag, NoParams, named, nullable, strict, timestamp } from '../schemas.ts'

export const OperatorSession = named(
  {
    isConfigured: flag('The service has an operator token.'),
    isSignedIn: flag('This browser has a session of the operator.'),
    expiresAt: nullable(timestamp('When the session ends; null without one.')),
  },
  { $id: 'OperatorSession', description: 'The session of the operator’s pages.' },
)
export type OperatorSession = Static<typeof OperatorSession>
const StartOperatorSessionParams = strict(
  { token: Type.String({ minLength: 1, maxLength: 1000, description: 'The operator token.' }) },
  { $id: 'StartOperatorSessionParams', description: 'The operator token. The browser does not keep it.' },
)

const ofPage = { tag: 'Dashboard', caller: 'page', path: '/dashboard/api/operator/session' } as const

export const getOperatorSession = operation({
  ...ofPage,
  method: 'GET',
  operationId: 'getOperatorSession',
  summary: 'Get the session of the operator’s pages',
  status: 200,
  response: OperatorSession,
  errors: [],
})
export const startOperatorSession = operation({
  ...ofPage,
  method: 'POST',
  operationId: 'startOperatorSession',
  summary: 'Sign in as the operator',
  description: 'With the session’s cookie, the operator API accepts requests from the dashboard’s origin.',
  body: StartOperatorSessionParams,
  status: 200,
  response: OperatorSession,
  errors: ['not_found'],
})
export const endOperatorSession = operation({
  ...ofPage,
  method: 'DELETE',
  operationId: 'endOperatorSession',
  summary: 'Sign out as the operator',
  body: NoParams,
  status: 204,
  errors: [],
})
