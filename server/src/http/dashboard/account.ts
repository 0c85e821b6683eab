import type { FastifyInstance } from 'fastify'
import { changeOwnKey, createOwnKey, getOverview, listOwnKeys, revokeOwnKey } from '../../../../contract/src/dashboard/account.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { callOf } from './calls.ts'

/** The account: its overview and its keys. */
export function dashboardAccountRoutes({ accounts, config, keys }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, getOverview, async ({ person }) => accounts.overview(person.accountId))
    addRoute(app, listOwnKeys, async ({ person }) => ({ keys: await keys.list(person.accountId) }))
    addRoute(app, createOwnKey, async (request) => {
      const { accountId, actor } = callOf(request)
      const { name, scopes } = request.body
      return keys.create(accountId, name.trim(), scopes, config.maxKeysPerAccount, actor)
    })
    addRoute(app, changeOwnKey, async (request) => {
      const { accountId, actor } = callOf(request)
      return keys.change(accountId, request.params.id, request.body, actor)
    })
    addRoute(app, revokeOwnKey, async (request) => {
      const { accountId, actor } = callOf(request)
      await keys.change(accountId, request.params.id, 'revoke', actor)
    })
  }
}
