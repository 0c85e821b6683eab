import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { listActivitySubjects, listOwnActivity } from '../../../../contract/src/dashboard/activity.ts'
import {
  createTopUp,
  exportCreditUsage,
  exportLedger,
  getCredit,
  getCreditUsage,
  getTopUp,
} from '../../../../contract/src/dashboard/credit.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'
import { numberIn, paged } from './calls.ts'

const PAGE = 50
const csvHeaders = (name: string) => ({
  'content-type': 'text/csv; charset=utf-8; header=present',
  'content-disposition': `attachment; filename="${name}"`,
})

/** The activity, credit and top-ups of the account. */
export function dashboardCreditRoutes({ accounts, credit, topUps }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, listOwnActivity, async ({ person, query: { cursor, folded = false, hourStartMinute = '0', ...filter } }) =>
      accounts.searchActivity(person.accountId, filter, {
        before: numberIn(cursor),
        isFolded: folded,
        hourStartSeconds: Number(hourStartMinute) * 60,
      }),
    )
    addRoute(app, listActivitySubjects, async ({ person }) => accounts.activitySubjects(person.accountId))

    addRoute(app, getCredit, async ({ person, query: { cursor, ...filter } }) => {
      const ledger = await credit.ledger(person.accountId, numberIn(cursor), PAGE + 1, filter)
      const { summary, unposted, matching, entries } = ledger
      return { ...summary, unposted, matching, ...paged('entries', entries, PAGE) }
    })
    addRoute(app, getCreditUsage, async ({ person, query }) => credit.usage(person.accountId, query.from))
    addRoute(app, exportCreditUsage, async ({ person, query }, reply) => {
      const csv = await credit.usageCsv(person.accountId, query.from)
      return reply.headers(csvHeaders('usage.csv')).send(csv)
    })
    addRoute(app, exportLedger, async ({ person, query }, reply) =>
      reply.headers(csvHeaders('ledger.csv')).send(Readable.from(credit.csv(person.accountId, query))),
    )
    addRoute(app, createTopUp, async ({ person, body }) => topUps.create(person.accountId, body.amountSat))
    addRoute(app, getTopUp, async ({ person, params }) => topUps.find(person.accountId, params.paymentHash))
  }
}
