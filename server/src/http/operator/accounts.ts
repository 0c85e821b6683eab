import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { createAccount, getAccount } from '../../accounts/accounts.ts'
import { addCredit } from '../../accounts/credit/credit.ts'
import { SCOPES } from '../../accounts/keys/keys.ts'
import { type AccountRow, listAccounts, listActivity } from '../../store/accounts.ts'
import type { EntryRow } from '../../store/credit.ts'
import type { RouteDeps } from '../deps.ts'
import { requireOperator } from '../hooks/auth.ts'
import { ErrorBody, Name, strict, Timestamp } from '../schemas.ts'

const MAX_CREDIT_SAT = 9_007_199_254
const ACTOR = 'operator'

const AccountView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  // A name is what its owner chose, and two may be alike; the email is what tells them apart.
  emails: Type.Array(Type.String()),
  creditSat: Type.Integer(),
  createdAt: Timestamp,
})
const NewAccount = strict({ name: Name, creditSat: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_CREDIT_SAT })) })
const Credit = strict({ amountSat: Type.Integer({ minimum: -MAX_CREDIT_SAT, maximum: MAX_CREDIT_SAT }), reason: Name })
const CreditView = Type.Object({
  id: Type.Integer(),
  amountSat: Type.Integer(),
  kind: Type.String(),
  reason: Type.String(),
  createdAt: Timestamp,
})
export const NewKey = strict({ name: Name, scopes: Type.Array(Type.Enum(SCOPES), { maxItems: 10 }) })
export const KeyChange = strict({ disabled: Type.Boolean() })
export const CreatedKey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  scopes: Type.Array(Type.String()),
  key: Type.String(),
})
export const KeyView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String(),
  scopes: Type.Array(Type.String()),
  disabled: Type.Boolean(),
  createdAt: Timestamp,
  lastUsedAt: Type.Union([Timestamp, Type.Null()]),
})
const Activity = Type.Object({
  activity: Type.Array(
    Type.Object({
      at: Timestamp,
      actor: Type.String(),
      action: Type.String(),
      target: Type.Union([Type.String(), Type.Null()]),
      detail: Type.Object({}, { additionalProperties: true }),
    }),
  ),
})
const Id = Type.Object({ id: Type.String() })
const KeyId = Type.Object({ id: Type.String(), keyId: Type.String() })

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
    const errors = { 400: ErrorBody, 401: ErrorBody, 404: ErrorBody }
    const security = [{ operator: [] }]

    app.post<{ Body: Static<typeof NewAccount> }>(
      '/accounts',
      { schema: { summary: 'Make an account', security, body: NewAccount, response: { 201: AccountView, ...errors } } },
      async ({ body: { name, creditSat = config.signupCreditSat } }, reply) => {
        const account = await createAccount(sql, { name: name.trim(), creditSat, actor: ACTOR, isSelfRegistered: false })
        return reply.code(201).send(accountView(account))
      },
    )
    app.get(
      '/accounts',
      {
        schema: {
          summary: 'All accounts',
          security,
          response: { 200: Type.Object({ accounts: Type.Array(AccountView) }), ...errors },
        },
      },
      async () => ({ accounts: (await listAccounts(sql)).map(accountView) }),
    )
    app.get<{ Params: Static<typeof Id> }>(
      '/accounts/:id',
      { schema: { summary: 'One account', security, params: Id, response: { 200: AccountView, ...errors } } },
      async ({ params }) => accountView(await getAccount(sql, params.id)),
    )
    app.get<{ Params: Static<typeof Id>; Querystring: { limit: number } }>(
      '/accounts/:id/activity',
      {
        schema: {
          summary: 'What happened in an account, newest first',
          security,
          params: Id,
          response: { 200: Activity, ...errors },
        },
      },
      async ({ params }) => {
        await getAccount(sql, params.id)
        return { activity: await listActivity(sql, params.id, 1000) }
      },
    )
    app.post<{ Params: Static<typeof Id>; Body: Static<typeof Credit> }>(
      '/accounts/:id/credit',
      { schema: { summary: 'Add or take credit', security, params: Id, body: Credit, response: { 201: CreditView, ...errors } } },
      async ({ params, body }, reply) =>
        reply.code(201).send(creditView(await addCredit(sql, params.id, body.amountSat, body.reason, ACTOR))),
    )
    app.post<{ Params: Static<typeof Id>; Body: Static<typeof NewKey> }>(
      '/accounts/:id/keys',
      {
        schema: {
          summary: 'Make an API key; it is shown this once',
          security,
          params: Id,
          body: NewKey,
          response: { 201: CreatedKey, 409: ErrorBody, ...errors },
        },
      },
      async ({ params, body }, reply) =>
        reply.code(201).send(await keys.create(params.id, body.name.trim(), body.scopes, config.maxKeysPerAccount, ACTOR)),
    )
    app.patch<{ Params: Static<typeof KeyId>; Body: Static<typeof KeyChange> }>(
      '/accounts/:id/keys/:keyId',
      {
        schema: {
          summary: 'Disable or enable a key',
          security,
          params: KeyId,
          body: KeyChange,
          response: { 200: KeyView, ...errors },
        },
      },
      async ({ params, body }) => keys.change(params.id, params.keyId, body, ACTOR),
    )
    app.delete<{ Params: Static<typeof KeyId> }>(
      '/accounts/:id/keys/:keyId',
      { schema: { summary: 'Revoke a key for good', security, params: KeyId, response: { 204: Type.Null(), ...errors } } },
      async ({ params }, reply) => {
        await keys.change(params.id, params.keyId, 'revoke', ACTOR)
        return reply.code(204).send()
      },
    )
  }
}
