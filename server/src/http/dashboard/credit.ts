import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { listActivitySubjects, listOwnActivity } from '../../../../contract/src/dashboard/activity.ts'
import { createTopUp, exportLedger, getCredit, getCreditUsage, getTopUp } from '../../../../contract/src/dashboard/credit.ts'
import { badCursor } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'

const PAGE = 50

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
      // One extra row shows whether there is a next page.
      const entries = ledger.entries.slice(0, PAGE)
      const nextCursor = ledger.entries.length > PAGE ? String(entries.at(-1)?.id) : null
      return { ...ledger.summary, unposted: ledger.unposted, matching: ledger.matching, entries, nextCursor }
    })
    addRoute(app, getCreditUsage, async ({ person, query }) => credit.usage(person.accountId, query.from))
    addRoute(app, exportLedger, async ({ person }, reply) =>
      reply
        .headers({
          'content-type': 'text/csv; charset=utf-8; header=present',
          'content-disposition': 'attachment; filename="ledger.csv"',
        })
        .send(Readable.from(credit.csv(person.accountId))),
    )
    addRoute(app, createTopUp, async ({ person, body }) => topUps.create(person.accountId, body.amountSat))
    addRoute(app, getTopUp, async ({ person, params }) => topUps.find(person.accountId, params.paymentHash))
  }
}

/** Pages continue from the id of the last row: rows that are added meanwhile do not cause others to be repeated or skipped. */
function numberIn(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  if (!/^[1-9]\d{0,14}$/.test(cursor)) throw badCursor()
  return Number(cursor)
}
