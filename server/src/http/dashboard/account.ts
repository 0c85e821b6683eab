import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { creditSummary, creditWithEntries } from '../../accounts/credit/credit.ts'
import { MAX_TOP_UP_SAT } from '../../accounts/credit/top-ups.ts'
import { listActivity } from '../../store/accounts.ts'
import { overviewOf } from '../../store/overview.ts'
import type { RouteDeps } from '../deps.ts'
import { CreatedKey, KeyChange, KeyView, NewKey } from '../operator/accounts.ts'
import { nullable, strict, Timestamp } from '../schemas.ts'
import { badCursor } from '../v1/payments.ts'
import { callOf } from './routes.ts'

const CreditSummary = Type.Object({
  balanceSat: Type.Integer(),
  balanceMsat: Type.Integer(),
  unpostedMsat: Type.Integer(),
  nodesThatCost: Type.Integer(),
  runwaySeconds: nullable(Type.Integer()),
  warning: Type.Enum(['none', 'week', 'day', 'empty']),
  stopsAt: nullable(Timestamp),
  canTopUp: Type.Boolean(),
})
const Credit = Type.Object({
  ...CreditSummary.properties,
  entries: Type.Array(
    Type.Object({
      id: Type.Integer(),
      amountMsat: Type.Integer(),
      balanceAfterMsat: Type.Integer(),
      kind: Type.String(),
      reason: Type.String(),
      reference: nullable(Type.String()),
      createdAt: Timestamp,
    }),
  ),
  nextCursor: nullable(Type.String()),
})
const NewTopUp = strict({ amountSat: Type.Integer({ minimum: 1, maximum: MAX_TOP_UP_SAT }) })
const TopUp = Type.Object({
  paymentHash: Type.String(),
  amountSat: Type.Integer(),
  invoice: Type.String(),
  expiresAt: Timestamp,
  settledAt: nullable(Timestamp),
})
const TopUpId = Type.Object({ paymentHash: Type.String() })
const Overview = Type.Object({
  credit: CreditSummary,
  nodes: Type.Object({ ready: Type.Integer(), silent: Type.Integer(), total: Type.Integer() }),
  received: Type.Object({ now: Timestamp, quarterHours: Type.Array(Type.Object({ at: Timestamp, sat: Type.Integer() })) }),
  funnel: Type.Object({ issued: Type.Integer(), settled: Type.Integer(), paid: Type.Integer() }),
  checklist: Type.Object({
    hasNode: Type.Boolean(),
    hasKey: Type.Boolean(),
    hasChallenge: Type.Boolean(),
    hasPaidRequest: Type.Boolean(),
  }),
})
const Activity = Type.Object({
  activity: Type.Array(
    Type.Object({
      id: Type.Integer(),
      at: Timestamp,
      actor: Type.String(),
      action: Type.String(),
      target: nullable(Type.String()),
      detail: Type.Object({}, { additionalProperties: true }),
    }),
  ),
  nextCursor: nullable(Type.String()),
})
const Cursor = strict({ cursor: Type.Optional(Type.String()) })
const KeyId = Type.Object({ id: Type.String() })
type Id = { Params: Static<typeof KeyId> }
type Paged = { Querystring: Static<typeof Cursor> }

const PAGE = 50

/** The account: what it earned and owes, its keys, what happened in it. */
export function dashboardAccountRoutes({ sql, config, keys, topUps }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/overview', { schema: { response: { 200: Overview } } }, async ({ person: { accountId } }) => {
      const [overview, credit] = await Promise.all([overviewOf(sql, accountId), creditSummary(sql, config, accountId)])
      return { credit, ...overview }
    })
    app.get<Paged>('/activity', { schema: { querystring: Cursor, response: { 200: Activity } } }, async ({ person, query }) => {
      const rows = await listActivity(sql, person.accountId, PAGE + 1, numberIn(query.cursor))
      return paged('activity', rows)
    })

    app.get<Paged>('/credit', { schema: { querystring: Cursor, response: { 200: Credit } } }, async ({ person, query }) => {
      const before = numberIn(query.cursor)
      const { summary, entries } = await creditWithEntries(sql, config, person.accountId, before, PAGE + 1)
      return { ...summary, ...paged('entries', entries) }
    })
    app.post<{ Body: Static<typeof NewTopUp> }>(
      '/credit/top-ups',
      { schema: { body: NewTopUp, response: { 201: TopUp } } },
      async ({ person, body }, reply) => reply.code(201).send(await topUps.create(person.accountId, body.amountSat)),
    )
    app.get<{ Params: Static<typeof TopUpId> }>(
      '/credit/top-ups/:paymentHash',
      { schema: { params: TopUpId, response: { 200: TopUp } } },
      async ({ person, params }) => topUps.find(person.accountId, params.paymentHash),
    )

    app.get('/keys', { schema: { response: { 200: Type.Object({ keys: Type.Array(KeyView) }) } } }, async ({ person }) => ({
      keys: await keys.list(person.accountId),
    }))
    app.post<{ Body: Static<typeof NewKey> }>(
      '/keys',
      { schema: { body: NewKey, response: { 201: CreatedKey } } },
      async (request, reply) => {
        const { accountId, actor } = callOf(request)
        const { name, scopes } = request.body
        return reply.code(201).send(await keys.create(accountId, name.trim(), scopes, config.maxKeysPerAccount, actor))
      },
    )
    app.patch<Id & { Body: Static<typeof KeyChange> }>(
      '/keys/:id',
      { schema: { params: KeyId, body: KeyChange, response: { 200: KeyView } } },
      async (request) => {
        const { accountId, actor } = callOf(request)
        return keys.change(accountId, request.params.id, request.body, actor)
      },
    )
    app.delete<Id>(
      '/keys/:id',
      { schema: { params: KeyId, body: strict({}), response: { 204: Type.Null() } } },
      async (request, reply) => {
        const { accountId, actor } = callOf(request)
        await keys.change(accountId, request.params.id, 'revoke', actor)
        return reply.code(204).send()
      },
    )
  }
}

/** Pages go by the id of their last row: what is added meanwhile neither repeats a row nor hides one. */
function numberIn(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  if (!/^[1-9]\d{0,14}$/.test(cursor)) throw badCursor()
  return Number(cursor)
}

/** One more than a page holds tells whether there is a next one. */
function paged<N extends string, R extends { id: number }>(name: N, rows: R[]): Record<N, R[]> & { nextCursor: string | null } {
  const page = rows.slice(0, PAGE)
  const nextCursor = rows.length > PAGE ? String(page.at(-1)?.id) : null
  return { [name]: page, nextCursor } as Record<N, R[]> & { nextCursor: string | null }
}
