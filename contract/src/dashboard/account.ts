import { type Static, Type } from 'typebox'
import {
  ApiKeyDetails,
  ChangeApiKeyParams,
  CreateApiKeyParams,
  CreatedApiKey,
  RotateApiKeyParams,
  RotatedApiKey,
} from '../api-keys.ts'
import { operation } from '../operation.ts'
import { count, flag, NoParams, named, strict, text, timeParam } from '../schemas.ts'
import { CreditSummary } from './credit.ts'
import { GatewayPayment } from './payments.ts'

export const Overview = named(
  {
    credit: CreditSummary,
    nodes: Type.Object({
      ready: count('Ready and responding.'),
      silent: count('Ready, but did not respond to the last check.'),
      starting: count('Being set up or started.'),
      stopped: count('Stopped.'),
      failed: count('Failed.'),
      total: count('All nodes.'),
    }),
    recent: Type.Array(GatewayPayment, { description: 'The payments that were received last, newest first.' }),
    funnel: Type.Object(
      { issued: count('Challenges issued.'), settled: count('Payments received.'), paid: count('Credentials validated.') },
      { description: 'Counts for the last 7 days.' },
    ),
    attention: Type.Object({
      unclaimedPayments: count('Payments received in the last 7 days for which no credential was validated.'),
      failedDeliveries: count('Payments of the last 7 days whose delivery failed or was not confirmed.'),
      failingWebhooks: count('Enabled webhooks whose last deliveries failed.'),
      disabledWebhooks: count('Webhooks that were disabled because they failed.'),
      updates: count('Nodes with an update that nobody has requested yet.'),
    }),
    checklist: Type.Object({
      hasNode: flag('A node was created.'),
      hasKey: flag('A key was created.'),
      hasChallenge: flag('A challenge was issued.'),
      hasPaidRequest: flag('A request was paid.'),
    }),
  },
  { $id: 'Overview', description: 'The first page of the dashboard.' },
)
export type Overview = Static<typeof Overview>
export const ApiKeyList = named(
  { keys: Type.Array(ApiKeyDetails) },
  { $id: 'ApiKeyList', description: 'The account’s keys, without revoked ones.' },
)
const KeyId = Type.Object({ id: text('Id of a key, `key_…`.') })

const ofPerson = { tag: 'Dashboard', caller: 'session' } as const

export const getOverview = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/overview',
  operationId: 'getOverview',
  summary: 'Get the overview',
  query: strict({
    from: Type.Optional(timeParam('Count payments since this time, at most 8 days ago. Default: 7 days ago.')),
  }),
  status: 200,
  response: Overview,
  errors: [],
})
export const listOwnKeys = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/keys',
  operationId: 'listOwnKeys',
  summary: 'List API keys',
  status: 200,
  response: ApiKeyList,
  errors: [],
})
export const createOwnKey = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/keys',
  operationId: 'createOwnKey',
  summary: 'Create an API key',
  body: CreateApiKeyParams,
  status: 201,
  response: CreatedApiKey,
  errors: ['limit_reached'],
})
export const changeOwnKey = operation({
  ...ofPerson,
  method: 'PATCH',
  path: '/dashboard/api/keys/{id}',
  operationId: 'changeOwnKey',
  summary: 'Change, disable or enable an API key',
  params: KeyId,
  body: ChangeApiKeyParams,
  status: 200,
  response: ApiKeyDetails,
  errors: ['not_found'],
})
export const rotateOwnKey = operation({
  ...ofPerson,
  method: 'POST',
  path: '/dashboard/api/keys/{id}/rotate',
  operationId: 'rotateOwnKey',
  summary: 'Replace the secret of an API key',
  params: KeyId,
  body: RotateApiKeyParams,
  status: 200,
  response: RotatedApiKey,
  errors: ['not_found'],
})
export const revokeOwnKey = operation({
  ...ofPerson,
  method: 'DELETE',
  path: '/dashboard/api/keys/{id}',
  operationId: 'revokeOwnKey',
  summary: 'Revoke an API key',
  params: KeyId,
  body: NoParams,
  status: 204,
  errors: ['not_found'],
})
