import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { count, NextCursor, named, nullable, strict, text, timestamp } from '../schemas.ts'

const day = Type.String({ description: 'A day in UTC, such as 2026-11-17.' })

export const ApiRequest = named(
  {
    id: Type.Integer({ description: 'Number of the entry.' }),
    at: timestamp('When the response was sent.'),
    keyId: text('The key that was used, `key_…`.'),
    keyName: nullable(text('Its name.')),
    method: text('HTTP method.'),
    route: text('Pattern of the path, without ids and query.'),
    status: Type.Integer({ description: 'HTTP status of the response.' }),
    errorCode: nullable(text('Code of the error, if the response was one.')),
    errorMeaning: nullable(text('What the code means.')),
    durationMs: Type.Number({ description: 'Milliseconds until the response was sent.' }),
    requestId: text('The `X-Request-Id` of the response.'),
  },
  { $id: 'ApiRequest', description: 'A request that was made with an API key.' },
)
export type ApiRequest = Static<typeof ApiRequest>
export const ApiRequestPage = named(
  { requests: Type.Array(ApiRequest), nextCursor: NextCursor },
  { $id: 'ApiRequestPage', description: 'One page of the log of API requests, newest first. It covers the last 7 days.' },
)
export const KeyUsage = named(
  {
    today: day,
    since: Type.String({ description: 'The first day on which requests were counted, in UTC.' }),
    days: Type.Array(
      Type.Object({
        keyId: text('Id of the key.'),
        day,
        requests: count('All requests.'),
        errors: count('Those with a status of 400 or above.'),
      }),
      { description: 'Days without requests are left out.' },
    ),
  },
  { $id: 'KeyUsage', description: 'How often each key was used in the last 30 days.' },
)
export type KeyUsage = Static<typeof KeyUsage>

const ofPerson = { tag: 'Dashboard', caller: 'session' } as const

export const listOwnRequests = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/requests',
  operationId: 'listOwnRequests',
  summary: 'List requests made with API keys, newest first',
  query: strict({
    cursor: Type.Optional(text('`nextCursor` of the previous page.')),
    keyId: Type.Optional(text('Only requests with this key.')),
    statusClass: Type.Optional(Type.Integer({ enum: [2, 4, 5], description: 'Only statuses of this class: 4 for 400–499.' })),
    route: Type.Optional(Type.String({ maxLength: 200, pattern: '^[ -~]+$', description: 'Only this pattern.' })),
    requestId: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9._-]{1,64}$', description: 'Only this request id.' })),
  }),
  status: 200,
  response: ApiRequestPage,
  errors: [],
})
export const getKeyUsage = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/key-usage',
  operationId: 'getKeyUsage',
  summary: 'How often each key was used, per day',
  status: 200,
  response: KeyUsage,
  errors: [],
})
