import type { FastifyInstance } from 'fastify'
import { getKeyUsage, listOwnRequests } from '../../../../contract/src/dashboard/developers.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { numberIn, paged } from './calls.ts'

const PAGE = 50

/** The log of API requests, and how often each key was used. */
export function dashboardDeveloperRoutes({ requests }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, listOwnRequests, async ({ person, query: { cursor, route, ...filter } }) => {
      const pattern = route === undefined ? {} : { route: toPattern(route) }
      const rows = await requests.list(person.accountId, { ...filter, ...pattern }, PAGE + 1, numberIn(cursor))
      const page = rows.map((row) => ({ ...row, route: fromPattern(row.route) }))
      return paged('requests', page, PAGE)
    })
    addRoute(app, getKeyUsage, async ({ person }) => requests.usage(person.accountId))
  }
}

/** The API's documentation writes parameters as {id}, the router as :id. */
const fromPattern = (pattern: string): string => pattern.replace(/:(\w+)/g, '{$1}')
const toPattern = (route: string): string => route.replace(/\{(\w+)\}/g, ':$1')
