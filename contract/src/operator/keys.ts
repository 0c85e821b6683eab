import { Type } from 'typebox'
import {
  ApiKeyDetails,
  ChangeApiKeyParams,
  CreateApiKeyParams,
  CreatedApiKey,
  RotateApiKeyParams,
  RotatedApiKey,
} from '../api-keys.ts'
import { operation } from '../operation.ts'
import { text } from '../schemas.ts'
import { AccountId } from './accounts.ts'

const KeyOfAccount = Type.Object({ ...AccountId.properties, keyId: text('Id of one of its keys, `key_…`.') })
const ofOperator = { tag: 'Operator', caller: 'operator' } as const

export const createAccountKey = operation({
  ...ofOperator,
  method: 'POST',
  path: '/operator/v1/accounts/{id}/keys',
  operationId: 'createAccountKey',
  summary: 'Create an API key for an account',
  description: 'The key is returned only in this response.',
  params: AccountId,
  body: CreateApiKeyParams,
  status: 201,
  response: CreatedApiKey,
  errors: ['not_found', 'limit_reached'],
})
export const changeAccountKey = operation({
  ...ofOperator,
  method: 'PATCH',
  path: '/operator/v1/accounts/{id}/keys/{keyId}',
  operationId: 'changeAccountKey',
  summary: 'Change, disable or enable an API key',
  params: KeyOfAccount,
  body: ChangeApiKeyParams,
  status: 200,
  response: ApiKeyDetails,
  errors: ['not_found'],
})
export const rotateAccountKey = operation({
  ...ofOperator,
  method: 'POST',
  path: '/operator/v1/accounts/{id}/keys/{keyId}/rotate',
  operationId: 'rotateAccountKey',
  summary: 'Replace the secret of an API key',
  description:
    'The new secret is returned only in this response. The current secret keeps working for the overlap. While a secret from before the last rotation still works, another rotation with an overlap is refused unless `endOverlap` is true, because it stops that secret at once. Programs may still use that secret, for example if the response with its replacement was lost.',
  params: KeyOfAccount,
  body: RotateApiKeyParams,
  status: 200,
  response: RotatedApiKey,
  errors: ['not_found'],
})
export const revokeAccountKey = operation({
  ...ofOperator,
  method: 'DELETE',
  path: '/operator/v1/accounts/{id}/keys/{keyId}',
  operationId: 'revokeAccountKey',
  summary: 'Revoke an API key permanently',
  params: KeyOfAccount,
  status: 204,
  errors: ['not_found'],
})
