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

export const ApiKey = named(
  { id, accountId: text('The account it belongs to, `acct_…`.'), scopes },
  {
    $id: 'ApiKey',
    description: 'The key a request was made with. The secret is never shown again.',
    examples: [
      { id: 'key_01hgw2bbg0000000000a', accountId: 'acct_01hgw2bbg0000000000a', scopes: ['nodes:read', 'gateway:write'] },
    ],
  },
)
export type ApiKey = Static<typeof ApiKey>

export const CreateApiKeyParams = strict(
  {
    name: personGivenName('A name to recognize it by.'),
    scopes: Type.Array(Scope, { maxItems: 10, description: '`nodes:read` is added if missing.' }),
  },
  { $id: 'CreateApiKeyParams', description: 'A new API key.', examples: [{ name: 'shop', scopes: ['gateway:write'] }] },
)
export const ChangeApiKeyParams = strict(
  { disabled: flag('A disabled key is refused until it is enabled again.') },
  { $id: 'ChangeApiKeyParams', description: 'Whether the key is disabled.' },
)
export const CreatedApiKey = named(
  { id, name, scopes, key: text('The key itself, shown only here.') },
  { $id: 'CreatedApiKey', description: 'A new key. Store it: it cannot be retrieved later.' },
)
export type CreatedApiKey = Static<typeof CreatedApiKey>
export const ApiKeyDetails = named(
  {
    id,
    name,
    prefix: text('The first characters of the key, to recognize it by.'),
    scopes,
    disabled: flag('Whether requests with this key are refused.'),
    createdAt: timestamp('When it was created.'),
    lastUsedAt: nullable(timestamp('When it was last used, accurate to about ten seconds.')),
  },
  { $id: 'ApiKeyDetails', description: 'A key as its owner sees it, without the secret.' },
)
export type ApiKeyDetails = Static<typeof ApiKeyDetails>

export const getApiKey = operation({
  method: 'GET',
  path: '/v1/api-key',
  operationId: 'getApiKey',
  tag: 'API keys',
  summary: 'Get the current API key',
  description: 'Returns the key this request was made with, its account and its scopes. Works with any valid key.',
  caller: 'apiKey',
  status: 200,
  response: ApiKey,
  errors: [],
})
