import { type Static, Type } from 'typebox'
import { ApiKeyDetails, ChangeApiKeyParams, CreateApiKeyParams, CreatedApiKey } from '../api-keys.ts'
import { operation } from '../operation.ts'
import { count, flag, NoParams, named, text, timestamp } from '../schemas.ts'
import { CreditSummary } from './credit.ts'

const quarterHour = Type.Object({
  at: timestamp('Start of the quarter hour.'),
  sat: Type.Integer({ description: 'Amount received.' }),
})
export const Overview = named(
  {
    credit: CreditSummary,
    nodes: Type.Object({
      ready: count('Ready and responding.'),
      silent: count('Ready, but did not respond to the last check.'),
      total: count('All nodes.'),
    }),
    received: Type.Object(
      { now: timestamp('Current time of the service.'), quarterHours: Type.Array(quarterHour) },
      { description: 'Gateway payments received in the last 8 days, by quarter hour. Empty quarter hours are left out.' },
    ),
    funnel: Type.Object(
      { issued: count('Challenges issued.'), settled: count('Payments received.'), paid: count('Credentials validated.') },
      { description: 'Counts for the last 7 days.' },
    ),
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
  summary: 'Disable or enable an API key',
  params: KeyId,
  body: ChangeApiKeyParams,
  status: 200,
  response: ApiKeyDetails,
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
