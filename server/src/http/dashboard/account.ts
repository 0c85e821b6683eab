import type { FastifyInstance } from 'fastify'
import {
  changeOwnKey,
  createOwnKey,
  getOverview,
  listOwnActivity,
  listOwnKeys,
  revokeOwnKey,
  rotateOwnKey,
} from '../../../../contract/src/dashboard/account.ts'
import { createTopUp, getCredit, getTopUp } from '../../../../contract/src/dashboard/credit.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { callOf, numberIn, paged } from './calls.ts'

const PAGE = 50

/** The account: earnings and costs, keys and activity. */
export function dashboardAccountRoutes({ accounts, credit, config, keys, topUps }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, getOverview, async ({ person }) => accounts.overview(person.accountId))
    addRoute(app, listOwnActivity, async ({ person, query }) => {
      const rows = await accounts.activity(person.accountId, PAGE + 1, numberIn(query.cursor))
      return paged('activity', rows, PAGE)
    })

    addRoute(app, getCredit, async ({ person, query }) => {
      const before = numberIn(query.cursor)
      const { summary, entries } = await credit.ledger(person.accountId, before, PAGE + 1)
      return { ...summary, ...paged('entries', entries, PAGE) }
    })
    addRoute(app, createTopUp, async ({ person, body }) => topUps.create(person.accountId, body.amountSat))
    addRoute(app, getTopUp, async ({ person, params }) => topUps.find(person.accountId, params.paymentHash))

    addRoute(app, listOwnKeys, async ({ person }) => ({ keys: await keys.list(person.accountId) }))
    addRoute(app, createOwnKey, async (request) => keys.create(callOf(request), request.body, config.maxKeysPerAccount))
    addRoute(app, changeOwnKey, async (request) => keys.change(callOf(request), request.params.id, request.body))
    addRoute(app, rotateOwnKey, async (request) => keys.rotate(callOf(request), request.params.id, request.body))
    addRoute(app, revokeOwnKey, async (request) => keys.revoke(callOf(request), request.params.id))
  }
}
