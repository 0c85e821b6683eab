import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  addCredit,
  createAccount,
  getAccount,
  listAccountActivity,
  listAccounts,
} from '../../../../contract/src/operator/accounts.ts'
import { changeAccountKey, createAccountKey, revokeAccountKey, rotateAccountKey } from '../../../../contract/src/operator/keys.ts'
import type { Repeatable } from '../../idempotency.ts'
import { type OperatorDeps, requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

const ACTOR = 'operator'
const MOST_ACTIVITY = 1_000

export function operatorRoutes(deps: OperatorDeps) {
  const { accounts, credit, keys, config } = deps
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(deps))

    addRoute(app, createAccount, async ({ body }) => accounts.create({ ...body, name: body.name.trim() }, ACTOR))
    addRoute(app, listAccounts, async ({ query }) => accounts.list(query))
    addRoute(app, getAccount, async ({ params }) => accounts.detail(params.id))
    addRoute(app, listAccountActivity, async ({ params }) => ({ activity: await accounts.activity(params.id, MOST_ACTIVITY) }))
    addRoute(app, addCredit, async (request) => {
      const { params, body } = request
      return credit.add(params.id, body.amountSat, body.reason, ACTOR, repeatableOf(request, params.id))
    })
    const callFor = (accountId: string) => ({ accountId, actor: ACTOR })
    addRoute(app, createAccountKey, async ({ params, body }) => keys.create(callFor(params.id), body, config.maxKeysPerAccount))
    addRoute(app, changeAccountKey, async ({ params, body }) => keys.change(callFor(params.id), params.keyId, body))
    addRoute(app, rotateAccountKey, async ({ params, body }) => keys.rotate(callFor(params.id), params.keyId, body))
    addRoute(app, revokeAccountKey, async ({ params }) => keys.revoke(callFor(params.id), params.keyId))
  }
}

/**
 * The response contains no secret, so sealing it with the Idempotency-Key is enough. The operator token is not available:
 * requests with a session do not contain it.
 */
function repeatableOf({ headers, body }: Pick<FastifyRequest, 'headers' | 'body'>, accountId: string): Repeatable {
  const key = headers['idempotency-key']?.toString()
  return { key, callerId: ACTOR, secret: key ?? '', route: `POST /operator/v1/accounts/${accountId}/credit`, body }
}
