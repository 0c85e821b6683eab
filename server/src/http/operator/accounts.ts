import type { FastifyInstance } from 'fastify'
import {
  addCredit,
  createAccount,
  getAccount,
  listAccountActivity,
  listAccounts,
} from '../../../../contract/src/operator/accounts.ts'
import { changeAccountKey, createAccountKey, revokeAccountKey } from '../../../../contract/src/operator/keys.ts'
import type { RouteDeps } from '../deps.ts'
import { requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

const ACTOR = 'operator'
const MOST_ACTIVITY = 1_000

export function operatorRoutes({ accounts, credit, keys, limits, config }: RouteDeps, token: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(token, limits))

    addRoute(app, createAccount, async ({ body }) => accounts.create({ ...body, name: body.name.trim() }, ACTOR))
    addRoute(app, listAccounts, async () => ({ accounts: await accounts.list() }))
    addRoute(app, getAccount, async ({ params }) => accounts.get(params.id))
    addRoute(app, listAccountActivity, async ({ params }) => ({ activity: await accounts.activity(params.id, MOST_ACTIVITY) }))
    addRoute(app, addCredit, async ({ params, body }) => credit.add(params.id, body.amountSat, body.reason, ACTOR))
    addRoute(app, createAccountKey, async ({ params, body }) =>
      keys.create(params.id, body.name.trim(), body.scopes, config.maxKeysPerAccount, ACTOR),
    )
    addRoute(app, changeAccountKey, async ({ params, body }) => keys.change(params.id, params.keyId, body, ACTOR))
    addRoute(app, revokeAccountKey, async ({ params }) => {
      await keys.change(params.id, params.keyId, 'revoke', ACTOR)
    })
  }
}
