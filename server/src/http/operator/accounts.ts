import type { FastifyInstance } from 'fastify'
import {
  addCredit as addCreditOperation,
  createAccount as createAccountOperation,
  getAccount as getAccountOperation,
  listAccountActivity,
  listAccounts as listAccountsOperation,
} from '../../../../contract/src/operator/accounts.ts'
import { changeAccountKey, createAccountKey, revokeAccountKey } from '../../../../contract/src/operator/keys.ts'
import { createAccount, getAccount } from '../../accounts/accounts.ts'
import { addCredit } from '../../accounts/credit/credit.ts'
import { type AccountRow, listAccounts } from '../../store/accounts.ts'
import { listActivity } from '../../store/activity.ts'
import type { EntryRow } from '../../store/credit/credit.ts'
import type { RouteDeps } from '../deps.ts'
import { requireOperator } from '../hooks/auth.ts'
import { addRoute } from '../route.ts'

const ACTOR = 'operator'

const toSat = (msat: number): number => Math.floor(msat / 1000)
const accountView = ({ creditMsat, ...account }: AccountRow) => ({ ...account, creditSat: toSat(creditMsat) })
const creditView = ({ id, amountMsat, kind, reason, createdAt }: EntryRow) => ({
  id,
  amountSat: toSat(amountMsat),
  kind,
  reason,
  createdAt,
})

export function operatorRoutes({ sql, keys, limits, config }: RouteDeps, token: string) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireOperator(token, limits))

    addRoute(app, createAccountOperation, async ({ body: { name, creditSat = config.signupCreditSat } }) =>
      accountView(await createAccount(sql, { name: name.trim(), creditSat, actor: ACTOR, isSelfRegistered: false })),
    )
    addRoute(app, listAccountsOperation, async () => ({ accounts: (await listAccounts(sql)).map(accountView) }))
    addRoute(app, getAccountOperation, async ({ params }) => accountView(await getAccount(sql, params.id)))
    addRoute(app, listAccountActivity, async ({ params }) => {
      await getAccount(sql, params.id)
      return { activity: await listActivity(sql, params.id, 1000) }
    })
    addRoute(app, addCreditOperation, async ({ params, body }) =>
      creditView(await addCredit(sql, params.id, body.amountSat, body.reason, ACTOR)),
    )
    addRoute(app, createAccountKey, async ({ params, body }) =>
      keys.create(params.id, body.name.trim(), body.scopes, config.maxKeysPerAccount, ACTOR),
    )
    addRoute(app, changeAccountKey, async ({ params, body }) => keys.change(params.id, params.keyId, body, ACTOR))
    addRoute(app, revokeAccountKey, async ({ params }) => {
      await keys.change(params.id, params.keyId, 'revoke', ACTOR)
    })
  }
}
