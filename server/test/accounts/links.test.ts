import { beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/db.ts'
import { Browser, newEmail, PASSWORD } from '../support/browser.ts'
import { type Answer, Server, startServer } from '../support/server.ts'

let server: Server
/** Another process on the same database, where registration is off. */
let closed: Server
let sql: Database

beforeAll(async () => {
  server = await startServer({
    store: 'embedded',
    env: { TRUST_PROXY: '1', REGISTRATION: 'invite', NODE_PRICE_SAT_PER_DAY: '0' },
  })
  const env = { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1', PUBLIC_URL: server.url, REGISTRATION: 'off' }
  closed = new Server({ env: { ...env, OPERATOR_TOKEN: server.operatorToken } })
  await closed.launch()
  await closed.printed(/^boltyard ready/m)
  sql = server.sql()
})

const tokenOf = (url: string): string => url.split('#')[1] ?? ''
const errorOf = (answer: Answer): [number, string] => [answer.status, answer.json().error.code]
async function newLink(path: string, json?: unknown): Promise<{ token: string; url: string; expiresAt: number }> {
  const answer = await server.operator('POST', path, json === undefined ? {} : { json })
  if (answer.status !== 201) throw new Error(answer.text)
  return { token: tokenOf(answer.json().url), ...answer.json() }
}
const inspect = (token: string, browser = new Browser(server)): Promise<Answer> => browser.post('/link/inspect', { token })
const accept = (browser: Browser, body: Record<string, unknown>): Promise<Answer> => browser.post('/link/accept', body)
async function aPerson(): Promise<{ browser: Browser; email: string; accountId: string }> {
  const [browser, email, { token }] = [new Browser(server), newEmail(), await newLink('/invitations')]
  const answer = await accept(browser, { token, email, password: PASSWORD })
  if (answer.status !== 200) throw new Error(answer.text)
  return { browser, email, accountId: (await browser.me()).account.id }
}
const actionsOf = async (accountId: string): Promise<string[]> =>
  (await server.operator('GET', `/accounts/${accountId}/activity`))
    .json()
    .activity.map((row: any) => `${row.actor} ${row.action}`)

/** The response to every invalid link. It is always the same, so that a caller cannot learn why a link is invalid. */
let notGood: string
async function expectNotGood(answer: Answer): Promise<void> {
  notGood ??= (await inspect('A'.repeat(43))).text
  expect([answer.status, answer.text]).toEqual([404, notGood])
  expect(answer.headers['set-cookie']).toBeUndefined()
}

describe('the link that is created at the first start', () => {
  test('gives the account that was created with it an owner, once', async () => {
    const { claimUrl, accountId, apiKey } = server.firstRun
    expect(claimUrl).toMatch(new RegExp(`^${server.url}/dashboard/link#[A-Za-z0-9_-]{43}$`))
    const token = tokenOf(claimUrl)
    expect((await new Browser(server).me()).hasUnclaimedAccount).toBe(true)
    const info = (await inspect(token)).json()
    expect(info).toMatchObject({ kind: 'claim', email: null, needsPassword: true, expiresAt: expect.any(Number) })
    expect(info.expiresAt - Date.now() / 1000).toBeCloseTo(30 * 86_400, -3)
    const browser = new Browser(server)
    const answer = await accept(browser, { token, email: 'Owner@Example.com', password: PASSWORD, name: 'The owner' })
    expect([answer.status, answer.json().user]).toEqual([
      200,
      { id: expect.stringMatching(/^person_/), email: 'owner@example.com', name: 'The owner' },
    ])
    expect(await browser.me()).toMatchObject({ user: { name: 'The owner' }, account: { id: accountId, name: 'default' } })
    expect((await server.send('GET', '/v1/api-key', { token: apiKey })).json().accountId).toBe(accountId)
    expect((await new Browser(server).me()).hasUnclaimedAccount).toBe(false)
    await expectNotGood(await inspect(token))
    await expectNotGood(await accept(new Browser(server), { token, email: newEmail(), password: PASSWORD }))
    expect((await new Browser(server).signIn('owner@example.com')).status).toBe(200)
  })

  test('is in first-run.json, and not printed unless the output is a terminal', async () => {
    const token = tokenOf(server.firstRun.claimUrl)
    expect(server.stderr + server.stdout).not.toContain(token)
    expect(server.stderr).not.toContain('dashboard/link')
  })
})

describe('an invitation', () => {
  test('creates a person with an email address of their choice, and an account with sign-up credit', async () => {
    const { token, url, expiresAt } = await newLink('/invitations')
    expect(url).toMatch(new RegExp(`^${server.url}/dashboard/link#[A-Za-z0-9_-]{43}$`))
    expect(expiresAt - Date.now() / 1000).toBeCloseTo(86_400, -2)
    expect((await inspect(token)).json()).toMatchObject({ kind: 'invitation', email: null, needsPassword: true, expiresAt })
    const browser = new Browser(server)
    expect((await accept(browser, { token, email: 'guest@example.com', password: PASSWORD })).status).toBe(200)
    const { account, user } = await browser.me()
    expect([account.name, user.name]).toEqual(['guest', 'guest'])
    expect((await server.operator('GET', `/accounts/${account.id}`)).json().creditSat).toBe(10_000)
    expect(await actionsOf(account.id)).toEqual([`${user.id} person.signed_up`, `${user.id} account.created`])
  })

  test('for one email address cannot be used with another', async () => {
    const { token } = await newLink('/invitations', { email: 'Fixed@Example.com' })
    expect((await inspect(token)).json()).toMatchObject({ kind: 'invitation', email: 'fixed@example.com', needsPassword: true })
    const browser = new Browser(server)
    const other = await accept(browser, { token, email: 'other@example.com', password: PASSWORD })
    expect([...errorOf(other), other.json().error.message]).toEqual([400, 'bad_request', 'This link is for fixed@example.com.'])
    expect((await accept(browser, { token, password: PASSWORD })).json().user.email).toBe('fixed@example.com')
  })

  test('C86: for the address of an account is refused, with what to do instead, and creates no link', async () => {
    const { email } = await aPerson()
    const links = await sql`SELECT token_hash FROM links ORDER BY token_hash`
    const answer = await server.operator('POST', '/invitations', { json: { email: email.toUpperCase() } })
    expect([...errorOf(answer), answer.json().error.message]).toEqual([
      409,
      'account_exists',
      expect.stringMatching(/^This person already has an account\. Use “Give access…” on it/),
    ])
    expect(await sql`SELECT token_hash FROM links ORDER BY token_hash`).toEqual(links)
  })

  test('C86: says so if an account with its email address was created since; without an address, it says nothing about accounts', async () => {
    const email = newEmail()
    const [first, second, open] = [
      await newLink('/invitations', { email }),
      await newLink('/invitations', { email }),
      await newLink('/invitations'),
    ]
    expect((await inspect(second.token)).json().hasAccount).toBe(false)
    expect((await accept(new Browser(server), { token: first.token, password: PASSWORD })).status).toBe(200)
    expect((await inspect(second.token)).json()).toMatchObject({ kind: 'invitation', email, hasAccount: true })
    expect((await inspect(open.token)).json().hasAccount).toBe(false)
    const refused = await accept(new Browser(server), { token: second.token, password: PASSWORD })
    expect([...errorOf(refused), refused.json().error.reason]).toEqual([400, 'bad_request', 'email_taken'])
  })

  test('stays valid if the email address is taken or a field is missing', async () => {
    const { email } = await aPerson()
    const { token } = await newLink('/invitations')
    const browser = new Browser(server)
    const accounts = await sql`SELECT id FROM accounts ORDER BY id`
    for (const body of [
      { token, password: PASSWORD },
      { token, email: newEmail() },
      { token, email: newEmail(), password: 'short' },
      { token, email: 'nonsense', password: PASSWORD },
      { token, email: `"quoted"@example.com`, password: PASSWORD },
      { token, email: newEmail(), password: '😀'.repeat(65) },
      { token, email: email.toUpperCase(), password: PASSWORD },
    ])
      expect(errorOf(await accept(browser, body))).toEqual([400, 'bad_request'])
    expect(await sql`SELECT id FROM accounts ORDER BY id`).toEqual(accounts)
    expect(browser.cookies.size).toBe(0)
    expect((await accept(browser, { token, email: newEmail(), password: PASSWORD })).status).toBe(200)
  })

  test('of twenty concurrent uses, one succeeds and creates one account', async () => {
    const { token } = await newLink('/invitations')
    const before = await sql`SELECT 1 FROM accounts`
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => accept(new Browser(server), { token, email: newEmail(), password: PASSWORD })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200)) await expectNotGood(answer)
    expect(await sql`SELECT 1 FROM accounts`).toHaveLength(before.length + 1)
    expect(await sql`SELECT 1 FROM people p LEFT JOIN accounts a ON a.id = p.account_id WHERE a.id IS NULL`).toHaveLength(0)
  })

  test('with REGISTRATION=off none can be created, and existing ones are invalid', async () => {
    const { token } = await newLink('/invitations')
    const browser = new Browser(server)
    browser.server = closed
    await expectNotGood(await inspect(token, browser))
    await expectNotGood(await accept(browser, { token, email: newEmail(), password: PASSWORD }))
    const answer = await closed.operator('POST', '/invitations')
    expect([...errorOf(answer), answer.json().error.message]).toEqual([
      400,
      'bad_request',
      expect.stringMatching(/REGISTRATION is off/),
    ])
  })
})

describe('a link to an account', () => {
  test('without an owner claims it, even with REGISTRATION=off', async () => {
    const { id } = await server.newAccount({ name: 'made by hand', creditSat: 5 })
    const { token } = await newLink(`/accounts/${id}/sign-in-link`)
    expect((await inspect(token)).json()).toMatchObject({ kind: 'claim', email: null, needsPassword: true })
    const browser = new Browser(server)
    browser.server = closed
    expect((await accept(browser, { token, email: newEmail(), password: PASSWORD })).status).toBe(200)
    const { account, user } = await browser.me()
    expect(account).toEqual({ id, name: 'made by hand' })
    expect((await server.operator('GET', `/accounts/${id}`)).json().creditSat).toBe(5)
    expect(await actionsOf(id)).toEqual([`${user.id} person.signed_up`, 'operator link.created', 'operator account.created'])
  })

  test('C86: says whom it signs in, also if the account has got an owner since the operator looked', async () => {
    const { id } = await server.newAccount()
    const create = async () => (await server.operator('POST', `/accounts/${id}/sign-in-link`)).json()
    const claim = await create()
    expect(claim).toMatchObject({ kind: 'claim', email: null })
    const email = newEmail()
    await accept(new Browser(server), { token: claim.url.split('#')[1], email, password: PASSWORD })
    expect(await create()).toMatchObject({ kind: 'sign-in', email })
    const invited = newEmail()
    expect((await server.operator('POST', '/invitations', { json: { email: invited } })).json()).toMatchObject({
      kind: 'invitation',
      email: invited,
    })
  })

  test('of two claims for one account, used concurrently, one succeeds and voids the other', async () => {
    const { id } = await server.newAccount()
    const links = await Promise.all([1, 2].map(() => newLink(`/accounts/${id}/sign-in-link`)))
    const answers = await Promise.all(
      links.map(({ token }) => accept(new Browser(server), { token, email: newEmail(), password: PASSWORD })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404])
    for (const { token } of links) await expectNotGood(await inspect(token))
    expect(await sql`SELECT 1 FROM people WHERE account_id = ${id}`).toHaveLength(1)
  })

  test('C47: signs its person in without a password, and ends no session', async () => {
    const { browser, email, accountId } = await aPerson()
    const { token } = await newLink(`/accounts/${accountId}/sign-in-link`)
    expect((await inspect(token)).json()).toMatchObject({ kind: 'sign-in', email, needsPassword: false })
    const other = new Browser(server)
    expect((await accept(other, { token })).json().user.email).toBe(email)
    expect((await other.me()).account.id).toBe(accountId)
    expect((await browser.me()).user.email).toBe(email)
    await expectNotGood(await accept(new Browser(server), { token }))
    const { user } = await other.me()
    expect((await actionsOf(accountId)).slice(0, 2)).toEqual([`${user.id} person.signed_in`, 'operator link.created'])
  })

  test('C47: sets a new password after the old one was forgotten; every other session ends', async () => {
    const { browser, email, accountId } = await aPerson()
    const { token } = await newLink(`/accounts/${accountId}/sign-in-link`)
    const other = new Browser(server)
    for (const wrong of [{ password: 'short' }, { name: 'Somebody new' }])
      expect(errorOf(await accept(other, { token, ...wrong }))).toEqual([400, 'bad_request'])
    expect(errorOf(await accept(other, { token, email: newEmail(), password: 'remembered' }))).toEqual([400, 'bad_request'])
    expect((await accept(other, { token, password: 'remembered' })).status).toBe(200)
    expect([(await browser.me()).user, (await other.me()).user.email]).toEqual([null, email])
    expect((await new Browser(server).signIn(email)).status).toBe(401)
    expect((await new Browser(server).signIn(email, 'remembered')).status).toBe(200)
    expect((await actionsOf(accountId)).map((row) => row.split(' ')[1])).toEqual([
      'person.signed_in',
      'person.signed_in',
      'person.password_changed',
      'link.created',
      'person.signed_up',
      'account.created',
    ])
  })

  const aLinkTo = async (accountId: string): Promise<string> => (await newLink(`/accounts/${accountId}/sign-in-link`)).token
  test.each<[title: string, act: (browser: Browser, accountId: string) => Promise<Answer>]>([
    [
      'a changed password',
      (browser) => browser.post('/auth/change-password', { currentPassword: PASSWORD, newPassword: 'another battery' }),
    ],
    ['signing out everywhere', (browser) => browser.post('/auth/revoke-sessions')],
    ['signing out everywhere else', (browser) => browser.post('/auth/revoke-other-sessions')],
    [
      'a password set with another link',
      async (_browser, accountId) =>
        accept(new Browser(server), { token: await aLinkTo(accountId), password: 'another battery' }),
    ],
  ])('security 17: is voided by %s; links to other accounts are not', async (_title, act) => {
    const [mine, other] = [await aPerson(), await aPerson()]
    const [token, others] = [await aLinkTo(mine.accountId), await aLinkTo(other.accountId)]
    expect((await inspect(token)).status).toBe(200)
    expect((await act(mine.browser, mine.accountId)).status).toBe(200)
    await expectNotGood(await inspect(token))
    await expectNotGood(await accept(new Browser(server), { token }))
    expect((await inspect(others)).status).toBe(200)
    expect((await inspect(await aLinkTo(mine.accountId))).status).toBe(200)
  })

  test('security 24: the operator sees the owner of an account; people who sign up cannot take a reserved name', async () => {
    const { email, accountId } = await aPerson()
    expect((await server.operator('GET', `/accounts/${accountId}`)).json().emails).toEqual([email])
    expect(((await server.newAccount()) as { emails?: string[] }).emails).toEqual([])
    for (const address of ['Default@evil.example', 'treasury@evil.example', 'operator@evil.example']) {
      const [browser, { token }] = [new Browser(server), await newLink('/invitations')]
      expect((await accept(browser, { token, email: address, password: PASSWORD })).status).toBe(200)
      expect((await browser.me()).account.name).toBe(address.toLowerCase())
    }
    const { accounts } = (await server.operator('GET', '/accounts')).json()
    expect(accounts.filter(({ name }: { name: string }) => name === 'default')).toHaveLength(1)
    expect(accounts.find(({ id }: { id: string }) => id === accountId).emails).toEqual([email])
  })

  test('security 24: can be created with the owner’s email, in upper or lower case, but not with an unknown email', async () => {
    const { email, accountId } = await aPerson()
    const { token } = await newLink('/sign-in-links', { email: email.toUpperCase() })
    const browser = new Browser(server)
    expect((await accept(browser, { token })).status).toBe(200)
    expect((await browser.me()).account.id).toBe(accountId)
    const nobody = await server.operator('POST', '/sign-in-links', { json: { email: newEmail() } })
    expect([...errorOf(nobody), nobody.json().error.message]).toEqual([404, 'not_found', expect.stringMatching(/no account/)])
    expect(errorOf(await server.operator('POST', '/sign-in-links', { json: { email: 'x' } }))).toEqual([400, 'bad_request'])
  })

  test('is not created if the account is unknown', async () => {
    for (const id of ['acct_00000000000000000000', 'nonsense', 'acct_%00'])
      expect(errorOf(await server.operator('POST', `/accounts/${id}/sign-in-link`))).toEqual([404, 'not_found'])
  })
})

describe('an invalid link', () => {
  test('an unknown or expired token and the hash of a valid one get the same answer', async () => {
    const { token } = await newLink('/invitations')
    const [row] = await sql<{ hash: Buffer }[]>`SELECT token_hash AS hash FROM links ORDER BY created_at DESC LIMIT 1`
    const hash = Buffer.from(row?.hash ?? '')
    for (const nonsense of [
      '',
      'x',
      '\u0000',
      `${token} `,
      token.slice(1),
      token.toUpperCase(),
      hash.toString('hex'),
      hash.toString('base64url'),
    ]) {
      await expectNotGood(await inspect(nonsense))
      await expectNotGood(await accept(new Browser(server), { token: nonsense, email: newEmail(), password: PASSWORD }))
    }
    await sql`UPDATE links SET expires_at = now() WHERE token_hash = ${hash}`
    await expectNotGood(await inspect(token))
    await expectNotGood(await accept(new Browser(server), { token, email: newEmail(), password: PASSWORD }))
  })

  test('a page of another origin cannot use a link, which stays valid', async () => {
    const { token } = await newLink('/invitations')
    for (const origin of [undefined, 'null', 'https://evil.example']) {
      const answer = await new Browser(server).post('/link/accept', { token, email: newEmail(), password: PASSWORD }, { origin })
      expect(errorOf(answer)).toEqual([401, 'unauthorized'])
    }
    expect((await inspect(token)).status).toBe(200)
  })

  test('security 30: an address that tries many links gets a 429 before any look-up; other addresses do not', async () => {
    const { token } = await newLink('/invitations')
    const guesser = new Browser(server)
    for (let index = 0; index < 60; index++) await expectNotGood(await inspect('B'.repeat(43), guesser))
    expect(errorOf(await inspect(token, guesser))).toEqual([429, 'rate_limited'])
    expect(errorOf(await accept(guesser, { token, email: newEmail(), password: PASSWORD }))).toEqual([429, 'rate_limited'])
    expect((await inspect(token)).status).toBe(200)
  })

  test('only the operator can create a link', async () => {
    for (const path of ['/invitations', '/sign-in-links', `/accounts/${server.firstRun.accountId}/sign-in-link`])
      for (const token of ['', 'x'.repeat(40), server.firstRun.apiKey])
        expect(errorOf(await server.operator('POST', path, { token, headers: { 'x-forwarded-for': '192.0.2.80' } }))).toEqual([
          401,
          'unauthorized',
        ])
    for (const body of ['[]', 'null', '{"email":1}', '{"email":"x"}', '{"kind":"claim"}', '{"email":"a\\u0000@example.com"}']) {
      const headers = { 'content-type': 'application/json' }
      expect(errorOf(await server.operator('POST', '/invitations', { body, headers }))).toEqual([400, 'bad_request'])
    }
  })

  test('the token is in no table and in no log, before and after it is used', async () => {
    const links = [await newLink('/invitations'), await newLink('/invitations')]
    await accept(new Browser(server), { token: links[0]?.token, email: newEmail(), password: PASSWORD })
    const tables = await sql<{ name: string }[]>`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`
    const rows = await Promise.all(
      tables.map(async ({ name }) => (await sql`SELECT t::text AS row FROM ${sql(name)} t`).map(({ row }) => row)),
    )
    const everything = rows.flat().join('\n') + server.stderr + server.stdout
    for (const { token } of links)
      for (const form of [token, Buffer.from(token, 'base64url').toString('hex'), Buffer.from(token).toString('hex')])
        expect(everything).not.toContain(form)
  })
})
