import type { FastifyInstance } from 'fastify'
import {
  addCredit,
  createAccount,
  getAccount,
  listAccountActivity,
  listAccounts,
} from '../../../../contract/src/operator/accounts.ts'
import { changeAccountKey, createAccountKey, revokeAccountKey, rotateAccountKey } from '../../../../contract/src/operator/keys.ts'
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
    const callFor = (accountId: string) => ({ accountId, actor: ACTOR })
    addRoute(app, createAccountKey, async ({ params, body }) => keys.create(callFor(params.id), body, config.maxKeysPerAccount))
    addRoute(app, changeAccountKey, async ({ params, body }) => keys.change(callFor(params.id), params.keyId, body))
    addRoute(app, rotateAccountKey, async ({ params, body }) =>
      keys.rotate(callFor(params.id), params.keyId, body.overlapSeconds ?? 0),
    )
    addRoute(app, revokeAccountKey, async ({ params }) => keys.revoke(callFor(params.id), params.keyId))
  }
}
