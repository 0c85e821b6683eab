import type { FastifyInstance } from 'fastify'
import {
  changeOwnKey,
  createOwnKey,
  getOverview,
  listOwnActivity,
  listOwnKeys,
  revokeOwnKey,
} from '../../../../contract/src/dashboard/account.ts'
import { createTopUp, getCredit, getTopUp } from '../../../../contract/src/dashboard/credit.ts'
import { badCursor } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { callOf } from './calls.ts'

const PAGE = 50

/** The account: earnings and costs, keys and activity. */
export function dashboardAccountRoutes({ accounts, credit, config, keys, topUps }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, getOverview, async ({ person }) => accounts.overview(person.accountId))
    addRoute(app, listOwnActivity, async ({ person, query }) => {
      const rows = await accounts.activity(person.accountId, PAGE + 1, numberIn(query.cursor))
      return paged('activity', rows)
    })

    addRoute(app, getCredit, async ({ person, query }) => {
      const before = numberIn(query.cursor)
      const { summary, entries } = await credit.ledger(person.accountId, before, PAGE + 1)
      return { ...summary, ...paged('entries', entries) }
    })
    addRoute(app, createTopUp, async ({ person, body }) => topUps.create(person.accountId, body.amountSat))
    addRoute(app, getTopUp, async ({ person, params }) => topUps.find(person.accountId, params.paymentHash))

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

/** Pages continue from the id of the last row: rows that are added meanwhile do not cause others to be repeated or skipped. */
function numberIn(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  if (!/^[1-9]\d{0,14}$/.test(cursor)) throw badCursor()
  return Number(cursor)
}

/** One extra row shows whether there is a next page. */
function paged<N extends string, R extends { id: number }>(name: N, rows: R[]): Record<N, R[]> & { nextCursor: string | null } {
  const page = rows.slice(0, PAGE)
  const nextCursor = rows.length > PAGE ? String(page.at(-1)?.id) : null
  return { [name]: page, nextCursor } as Record<N, R[]> & { nextCursor: string | null }
}
