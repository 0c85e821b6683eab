import { beforeAll, describe, expect, test } from 'vitest'
import { insertTopUp } from '../../src/store/credit/top-ups.ts'
import type { Database } from '../../src/store/db.ts'
import { Browser, newEmail, PASSWORD } from '../support/browser.ts'
import { type Answer, eventually, Server, startServer } from '../support/server.ts'

let server: Server
let replica: Server
let sql: Database

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  replica = new Server({ env: { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1', PUBLIC_URL: server.url } })
  await replica.launch()
  await replica.printed(/^boltyard ready/m)
  sql = server.sql()
})

const WRONG = 'wrong horse battery'
const aBrowser = (): Browser => new Browser(server)
async function aPerson() {
  const [browser, email] = [aBrowser(), newEmail()]
  expect((await browser.signUp(email)).status).toBe(200)
  const { account, user } = await browser.me()
  return { browser, email, accountId: account.id as string, userId: user.id as string, name: account.name as string }
}
const refusalOf = (answer: Answer): unknown[] => [answer.status, answer.json().error.reason]
const send = (browser: Browser, method: string, path: string, json: unknown = {}): Promise<Answer> =>
  server.send(method, `/dashboard/api${path}`, { json, headers: { cookie: browser.cookie, origin: browser.origin } })
/** As if the person had signed in with a passkey this long ago. */
const usePasskey = (userId: string, ago = '1 minute') =>
  sql`UPDATE people_sessions SET method = 'passkey', created_at = now() - ${ago}::interval WHERE person_id = ${userId}`
/** Waits until this many requests wait for a row that a test has locked. */
const untilWaiting = (count: number) =>
  eventually(async () => {
    const waiting = await sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    return waiting.length >= count
  }, `${count} requests to wait`)
const linkTo = async (email: string): Promise<string> => {
  const { url } = (await server.operator('POST', '/sign-in-links', { json: { email } })).json()
  return new URL(url).hash.slice(1)
}

describe('C88: the email address', () => {
  test('C88: it can be changed with the password or a recent passkey, not with an old one; links for the old address stop working', async () => {
    const { browser, email, userId } = await aPerson()
    const [next, last] = [newEmail(), newEmail()]
    const token = await linkTo(email)
    expect(refusalOf(await browser.post('/security/email', { email: next }))).toEqual([400, 'confirmation_required'])
    expect(refusalOf(await browser.post('/security/email', { email: next, password: WRONG }))).toEqual([400, 'wrong_password'])
    expect((await browser.post('/security/email', { email: 'nonsense', password: PASSWORD })).status).toBe(400)
    expect((await browser.post('/security/email', { email: next.toUpperCase(), password: PASSWORD })).json()).toEqual({
      email: next,
    })
    expect((await browser.me()).user.email).toBe(next)
    expect((await aBrowser().post('/link/accept', { token })).status).toBe(404)
    expect((await aBrowser().signIn(email)).status).toBe(401)
    expect((await aBrowser().signIn(next)).status).toBe(200)

    await usePasskey(userId, '11 minutes')
    expect(refusalOf(await browser.post('/security/email', { email: last }))).toEqual([400, 'confirmation_required'])
    await usePasskey(userId)
    expect((await browser.post('/security/email', { email: last })).status).toBe(200)
    const rows = await sql`SELECT action, detail FROM activity WHERE actor = ${userId} AND action = 'person.email_changed'`
    expect(rows).toHaveLength(2)
    expect(JSON.stringify(rows)).not.toContain('@')
  })

  test('C88: of two people who take the same address, one gets it, in any case', async () => {
    const [ann, bob] = await Promise.all([aPerson(), aPerson()])
    const wanted = newEmail()
    const answers = await Promise.all([
      ann.browser.post('/security/email', { email: wanted, password: PASSWORD }),
      bob.browser.post('/security/email', { email: wanted.replace('p', 'P'), password: PASSWORD }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
    const refused = answers.find(({ status }) => status === 400)
    expect(refused?.json().error.reason).toBe('email_taken')
  })

  test('C44: guesses of the password are limited here too', async () => {
    const { browser } = await aPerson()
    expect((await browser.post('/security/email', { email: newEmail(), password: WRONG })).status).toBe(400)
    await sql`UPDATE sign_in_failures SET failures = 9, paused_until = now() + interval '1 hour'`
    for (const path of ['/security/email', '/security/two-factor', '/account/deletion']) {
      const json = {
        password: PASSWORD,
        ...(path.endsWith('email') ? { email: newEmail() } : path.endsWith('n') ? { name: 'x' } : {}),
      }
      expect((await browser.post(path, json)).status).toBe(429)
    }
    await sql`DELETE FROM sign_in_failures`
  })
})

test('C88: the account’s name changes, but not to one that operators rely on', async () => {
  const { browser } = await aPerson()
  expect((await send(browser, 'PATCH', '/account', { name: ' Café ☕ ' })).json()).toEqual({ name: 'Café ☕' })
  expect((await browser.me()).account.name).toBe('Café ☕')
  for (const name of ['Default', 'treasury', ' operator '])
    expect((await send(browser, 'PATCH', '/account', { name })).status).toBe(400)
})

test('C88: sessions are listed with device, address and last use; one or all others are signed out, never another person’s', async () => {
  const { browser, email, userId } = await aPerson()
  const [phone, tablet] = [aBrowser(), aBrowser()]
  for (const other of [phone, tablet]) expect((await other.signIn(email, PASSWORD, { 'user-agent': 'Phone' })).status).toBe(200)
  phone.address = '192.0.2.9'
  await phone.me()
  const list = async () => (await browser.get('/auth/list-sessions')).json().sessions
  const sessions = await list()
  expect(sessions.map(({ isCurrent }: { isCurrent: boolean }) => isCurrent)).toEqual([false, false, true])
  const used = sessions.find(({ ipAddress }: { ipAddress: string }) => ipAddress === '192.0.2.9')
  expect(used).toMatchObject({ userAgent: 'Phone', method: 'password' })
  const [row] = await sql`SELECT unix_seconds(last_seen_at) AS at FROM people_sessions WHERE id = ${used.id}`
  expect(used.lastSeenAt).toBe(row?.at)

  const bob = await aPerson()
  for (const id of [used.id, 'nonsense', '%00'])
    expect((await send(bob.browser, 'DELETE', `/security/sessions/${id}`)).status).toBe(404)
  expect((await send(browser, 'DELETE', `/security/sessions/${used.id}`)).status).toBe(204)
  expect((await phone.me()).user).toBeNull()
  expect((await tablet.me()).user).not.toBeNull()
  expect((await browser.post('/auth/revoke-other-sessions')).status).toBe(200)
  expect((await tablet.me()).user).toBeNull()
  expect((await list()).map(({ isCurrent }: { isCurrent: boolean }) => isCurrent)).toEqual([true])
  expect(await sql`SELECT 1 FROM activity WHERE actor = ${userId} AND action = 'person.signed_out'`).toHaveLength(2)
})

test('C88: the last way in cannot be removed, not even by two removals at once', async () => {
  const { browser, userId } = await aPerson()
  const add = (id: string) => sql`
    INSERT INTO people_passkeys (id, person_id, name, public_key, credential_id, counter, device_type, backed_up)
    VALUES (${id}, ${userId}, 'x', 'x', ${id}, 0, 'singleDevice', false)`
  const remove = (id: string): Promise<Answer> => browser.post('/auth/passkey/delete-passkey', { id })
  const [one, two] = [`one-${userId}`, `two-${userId}`]
  await Promise.all([add(one), add(two)])
  await sql`UPDATE people_identities SET password_hash = NULL WHERE person_id = ${userId}`
  await usePasskey(userId)
  const pending = await sql.begin(async (tx) => {
    await tx`SELECT 1 FROM people WHERE id = ${userId} FOR UPDATE`
    const removals = [remove(one), remove(two)]
    await untilWaiting(2)
    return { removals }
  })
  const answers = await Promise.all(pending.removals)
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
  const [left] = await sql<{ id: string }[]>`SELECT id FROM people_passkeys WHERE person_id = ${userId}`
  expect((await remove(left?.id ?? '')).json().error.message).toMatch(/only way to sign in/)
  await sql`UPDATE people_identities SET password_hash = 'x' WHERE person_id = ${userId}`
  expect((await remove(left?.id ?? '')).status).toBe(200)
  expect((await remove(left?.id ?? '')).status).toBe(404)
})

describe('C88: deleting the account', () => {
  const deletionOf = async (browser: Browser) => (await browser.get('/account/deletion')).json()

  test('C88: it is refused while a node exists or is kept, and says when it will be possible', async () => {
    const { browser, accountId, name } = await aPerson()
    const headers = { cookie: browser.cookie, origin: browser.origin, 'idempotency-key': 'k'.repeat(30) }
    const { node } = (await server.send('POST', '/dashboard/api/nodes', { json: {}, headers })).json()
    const remove = () => browser.post('/account/deletion', { name, password: PASSWORD })
    expect(refusalOf(await remove())).toEqual([400, 'has_nodes'])
    expect(await deletionOf(browser)).toMatchObject({ isPossible: false, existing: 1, retained: 0 })
    await sql`
      UPDATE nodes SET deleted_at = '2099-01-01T12:00:00Z', desired_state = 'deleted', operation = NULL WHERE id = ${node.id}`
    const { dueAt, explanation, ...kept } = await deletionOf(browser)
    expect(kept).toMatchObject({ isPossible: false, existing: 0, retained: 1, topUpUntil: null })
    expect(dueAt).toBe(Date.parse('2099-01-31T12:00:00Z') / 1000)
    expect(explanation).toContain('until 2099-01-31 12:00 UTC')
    expect((await remove()).json().error).toMatchObject({ message: explanation, dueAt })
    expect((await browser.me()).account.id).toBe(accountId)
    // If its host is gone, a deleted node stays after the date of its removal. The message must not promise a date in the past.
    await sql`UPDATE nodes SET deleted_at = '2026-01-01T12:00:00Z' WHERE id = ${node.id}`
    expect((await deletionOf(browser)).explanation).toMatch(/about to be removed.*ask the operator/)
  })

  test('C88: it is refused while an invoice for credit can be paid; a deleted account gets neither invoices nor credit', async () => {
    const { browser, accountId, name } = await aPerson()
    const remove = () => browser.post('/account/deletion', { name, password: PASSWORD })
    const [treasury] = await sql<{ id: string }[]>`
      SELECT n.id FROM nodes n JOIN accounts a ON a.id = n.account_id WHERE a.is_treasury`
    const topUp = (hash: string) =>
      insertTopUp(sql, {
        paymentHash: Buffer.from(hash.padStart(64, '0'), 'hex'),
        accountId,
        nodeId: treasury?.id ?? '',
        amountSat: 1_000_000,
        invoice: `lnbcrt ${accountId} ${hash}`,
        expiresAtSeconds: Math.floor(Date.now() / 1000) + 3_600,
      })
    const made = await topUp(`${accountId.length.toString(16)}01`)
    expect(refusalOf(await remove())).toEqual([400, 'open_top_up'])
    expect(await deletionOf(browser)).toMatchObject({
      isPossible: false,
      topUpUntil: made?.expiresAt,
      creditSat: expect.any(Number),
      explanation: expect.stringContaining('can be paid until'),
    })
    // The invoice has expired, but the service will ask the treasury about it once more.
    await sql`UPDATE top_ups SET expires_at = now() - interval '1 second', ask_at = now() + interval '1 hour' WHERE account_id = ${accountId}`
    expect(refusalOf(await remove())).toEqual([400, 'open_top_up'])
    await sql`UPDATE top_ups SET ask_at = NULL WHERE account_id = ${accountId}`
    expect((await remove()).status).toBe(204)
    expect(await topUp('ff02')).toBeUndefined()
    const credit = { json: { amountSat: 1, reason: 'x' } }
    expect((await server.operator('POST', `/accounts/${accountId}/credit`, credit)).status).toBe(404)
  })

  test('C88: it asks for the name and the password, and then nothing of the account works, at any replica; the ledger stays', async () => {
    const { browser, email, accountId, userId, name } = await aPerson()
    const { key } = await server.newKey(['nodes:write', 'webhooks:write'], accountId)
    const use = (at: Server) => at.send('GET', '/v1/nodes', { token: key })
    await browser.post('/webhooks', { url: 'https://shop.example/hook' })
    const token = await linkTo(email)
    const other = aBrowser()
    await other.signIn(email)
    expect([(await use(server)).status, (await use(replica)).status]).toEqual([200, 200])

    expect((await browser.post('/account/deletion', { name: 'else', password: PASSWORD })).status).toBe(400)
    expect(refusalOf(await browser.post('/account/deletion', { name }))).toEqual([400, 'confirmation_required'])
    expect(refusalOf(await browser.post('/account/deletion', { name, password: WRONG }))).toEqual([400, 'wrong_password'])
    expect((await use(server)).status).toBe(200)
    expect((await browser.post('/account/deletion', { name, password: PASSWORD })).status).toBe(204)

    expect([(await use(server)).status, (await use(replica)).status]).toEqual([401, 401])
    expect([(await browser.me()).user, (await other.me()).user]).toEqual([null, null])
    expect((await aBrowser().signIn(email)).status).toBe(401)
    expect((await aBrowser().post('/link/accept', { token })).status).toBe(404)
    expect((await server.operator('POST', `/accounts/${accountId}/sign-in-link`)).status).toBe(404)
    expect((await server.operator('POST', `/accounts/${accountId}/keys`, { json: { name: 'x', scopes: [] } })).status).toBe(404)
    const [{ left } = { left: -1 }] = await sql<{ left: number }[]>`
      SELECT (SELECT count(*) FROM webhooks WHERE account_id = ${accountId} AND (deleted_at IS NULL OR secret <> ''))::int
        + (SELECT count(*) FROM links WHERE account_id = ${accountId})::int
        + (SELECT count(*) FROM people_sessions WHERE person_id = ${userId})::int AS left`
    expect(left).toBe(0)
    const account = (await server.operator('GET', `/accounts/${accountId}`)).json()
    expect(account).toMatchObject({ name: 'deleted account', emails: [] })
    expect(await sql`SELECT 1 FROM credit_entries WHERE account_id = ${accountId}`).not.toEqual([])
    // The address is free again.
    expect((await aBrowser().signUp(email)).status).toBe(200)
  })

  test('C88: of a deletion and nodes that are created at the same time, either the account or the nodes exist', async () => {
    const { browser, accountId, name, userId } = await aPerson()
    await usePasskey(userId)
    const { key } = await server.newKey(['nodes:write'], accountId)
    const create = () => server.send('POST', '/v1/nodes', { json: {}, token: key })
    const [made, deleted] = await Promise.all([create(), browser.post('/account/deletion', { name })])
    const [row] = await sql<{ nodes: number; isClosed: boolean }[]>`
      SELECT (SELECT count(*) FROM nodes WHERE account_id = a.id)::int AS nodes, closed_at IS NOT NULL AS "isClosed"
      FROM accounts a WHERE id = ${accountId}`
    expect([row?.isClosed, row?.nodes]).toEqual(deleted.status === 204 ? [true, 0] : [false, 1])
    expect(made.status === 202).toBe(deleted.status !== 204)
  })

  test('C88: nodes, keys and webhooks whose creation began before the deletion are not created after it', async () => {
    const { browser, accountId } = await aPerson()
    const { key } = await server.newKey(['nodes:write'], accountId)
    const { begun } = await sql.begin(async (tx) => {
      await tx`UPDATE accounts SET closed_at = now() WHERE id = ${accountId}`
      const begun = [
        server.send('POST', '/v1/nodes', { json: {}, token: key }),
        browser.post('/webhooks', { url: 'https://shop.example/hook' }),
        server.operator('POST', `/accounts/${accountId}/keys`, { json: { name: 'x', scopes: [] } }),
      ]
      await untilWaiting(3)
      return { begun }
    })
    expect((await Promise.all(begun)).map(({ status }) => status)).toEqual([401, 401, 404])
  })
})
