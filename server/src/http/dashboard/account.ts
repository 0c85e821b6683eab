import type { FastifyInstance } from 'fastify'
import {
  changeOwnKey,
  createOwnKey,
  getOverview,
  listOwnKeys,
  revokeOwnKey,
  rotateOwnKey,
} from '../../../../contract/src/dashboard/account.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { callOf } from './calls.ts'

/** The account: its overview and its keys. */
export function dashboardAccountRoutes({ accounts, config, keys }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, getOverview, async ({ person, query }) => accounts.overview(person.accountId, query.from))
    addRoute(app, listOwnKeys, async ({ person }) => ({ keys: await keys.list(person.accountId) }))
    addRoute(app, createOwnKey, async (request) => keys.create(callOf(request), request.body, config.maxKeysPerAccount))
    addRoute(app, changeOwnKey, async (request) => keys.change(callOf(request), request.params.id, request.body))
    addRoute(app, rotateOwnKey, async (request) => keys.rotate(callOf(request), request.params.id, request.body))
    addRoute(app, revokeOwnKey, async (request) => keys.revoke(callOf(request), request.params.id))
  }
}
