import { type Static, Type } from 'typebox'
import { operation } from './operation.ts'
import { flag, named, nullable, personGivenName, strict, text, timestamp } from './schemas.ts'

export const Scope = Type.Enum(['nodes:read', 'nodes:write', 'gateway:write', 'events:read', 'webhooks:write'], {
  $id: 'Scope',
  description: 'What a key may do. Every key has `nodes:read`.',
})
export type Scope = Static<typeof Scope>

const id = text('Id of the key, `key_…`.')
const scopes = Type.Array(Scope, { description: 'What the key may do.' })
const name = text('Name of the key.')
const expiresAt = nullable(timestamp('When the key expires: from then on it is refused. Null: never.'))
const MOST_OVERLAP_SECONDS = 72 * 3600
/** The end of the year 9999. */
const LATEST = 253_402_300_799
const futureExpiry = Type.Integer({
  minimum: 1,
  maximum: LATEST,
  description: 'When the key expires, in the future. Unix seconds.',
})

export const ApiKey = named(
  {
    id,
    accountId: text('The account it belongs to, `acct_…`.'),
    scopes,
    expiresAt,
    secretExpiresAt: nullable(
      timestamp('When the secret this request used stops working, because the key was rotated. Null for the current secret.'),
    ),
  },
  {
    $id: 'ApiKey',
    description: 'The key a request was made with. The secret is never shown again.',
    examples: [
      {
        id: 'key_01hgw2bbg0000000000a',
        accountId: 'acct_01hgw2bbg0000000000a',
        scopes: ['nodes:read', 'gateway:write'],
        expiresAt: null,
        secretExpiresAt: null,
      },
    ],
  },
)
export type ApiKey = Static<typeof ApiKey>

export const CreateApiKeyParams = strict(
  {
    name: personGivenName('A name to recognize it by.'),
    scopes: Type.Array(Scope, { maxItems: 10, description: '`nodes:read` is added if missing.' }),
    expiresAt: Type.Optional(futureExpiry),
  },
  { $id: 'CreateApiKeyParams', description: 'A new API key.', examples: [{ name: 'shop', scopes: ['gateway:write'] }] },
)
export const ChangeApiKeyParams = strict(
  {
    disabled: Type.Optional(flag('A disabled key is refused until it is enabled again.')),
    name: Type.Optional(personGivenName('A new name.')),
    scopes: Type.Optional(
      Type.Array(Scope, { maxItems: 10, description: 'All scopes of the key from now on. `nodes:read` is added if missing.' }),
    ),
    expiresAt: Type.Optional(nullable(futureExpiry)),
  },
  {
    $id: 'ChangeApiKeyParams',
    description: 'What to change about the key. `expiresAt` null: the key never expires.',
    minProperties: 1,
    examples: [{ disabled: true }],
  },
)
export const RotateApiKeyParams = strict(
  {
    endOverlap: Type.Optional(
      Type.Boolean({
        description:
          'While a secret from before the last rotation still works, another rotation with an overlap is refused unless this is true, because it stops that secret at once.',
      }),
    ),
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MOST_OVERLAP_SECONDS,
        description: 'How long the current secret keeps working, up to 72 hours. By default, it stops at once.',
      }),
    ),
  },
  { $id: 'RotateApiKeyParams', description: 'How to replace the secret.', examples: [{ overlapSeconds: 3600 }] },
)
export const CreatedApiKey = named(
  { id, name, scopes, expiresAt, key: text('The key itself, shown only here.') },
  { $id: 'CreatedApiKey', description: 'A new key. Store it: it cannot be retrieved later.' },
)
export type CreatedApiKey = Static<typeof CreatedApiKey>
const details = {
  id,
  name,
  prefix: text('The first characters of the key, to recognize it by.'),
  scopes,
  disabled: flag('Whether requests with this key are refused.'),
  createdAt: timestamp('When it was created.'),
  lastUsedAt: nullable(timestamp('When it was last used, accurate to about ten seconds.')),
  expiresAt,
  isExpired: flag('Whether it has expired.'),
  rotatedAt: nullable(timestamp('When its secret was last replaced.')),
  previousSecretUntil: nullable(
    timestamp('Until when the secret before the last rotation works. Null if it does not work any more.'),
  ),
}
export const ApiKeyDetails = named(details, {
  $id: 'ApiKeyDetails',
  description: 'A key as its owner sees it, without the secret.',
})
export type ApiKeyDetails = Static<typeof ApiKeyDetails>
export const RotatedApiKey = named(
  { ...details, key: text('The new secret, shown only here.') },
  { $id: 'RotatedApiKey', description: 'The key with its new secret. Store it: it cannot be retrieved later.' },
)
export type RotatedApiKey = Static<typeof RotatedApiKey>

export const getApiKey = operation({
  method: 'GET',
  path: '/v1/api-key',
  operationId: 'getApiKey',
  tag: 'API keys',
  summary: 'Get the current API key',
  description:
    'Returns the key this request was made with, its account, its scopes and when it stops working. Works with any valid key.',
  caller: 'apiKey',
  status: 200,
  response: ApiKey,
  errors: [],
})
