import { beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import type { Database } from '../../src/store/db.ts'
import { forgetOldLinks } from '../../src/store/people/links.ts'
import { forgetEndedSessions } from '../../src/store/people/people.ts'
import { Browser, newEmail, PASSWORD } from '../support/browser.ts'
import { lockingTransaction } from '../support/database.ts'
import { type Answer, eventually, PROCESS, Server, send, startServer, temporaryDirectory } from '../support/server.ts'

/** Trusts a proxy, so that each browser can have its own address and failures in one test do not count in another. */
let server: Server
/** Another process on the same database, and so with the same people. */
let replica: Server
let sql: Database
/** Someone who stays signed in throughout, because each sign-in takes a tenth of a second to hash the password. */
let known: { browser: Browser; email: string }

beforeAll(async () => {
  server = await startServer({ env: { ROLE: 'api', TRUST_PROXY: '1' } })
  // Both processes have the same public URL, like replicas behind a load balancer.
  const together = { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1', PUBLIC_URL: server.url }
  replica = new Server({ env: { ...together, REGISTRATION: 'invite' } })
  await replica.launch()
  await replica.printed(/^boltyard ready/m)
  sql = server.sql()
  known = await aPerson()
})

const aBrowser = (): Browser => new Browser(server)
function onReplica(): Browser {
  const browser = new Browser(server)
  browser.server = replica
  return browser
}
async function aPerson(): Promise<{ browser: Browser; email: string }> {
  const browser = aBrowser()
  const email = newEmail()
  const answer = await browser.signUp(email)
  if (answer.status !== 200) throw new Error(answer.text)
  return { browser, email }
}
const isSignedIn = async (browser: Browser): Promise<boolean> => (await browser.me()).user !== null
const errorOf = (answer: Answer): [number, string] => [answer.status, answer.json().error.code]

describe('signing up', () => {
  test('creates a person and an account with sign-up credit, and signs in', async () => {
    const browser = aBrowser()
    const answer = await browser.signUp('Ann.Smith@Example.com')
    expect(answer.status).toBe(200)
    expect(answer.json()).toEqual({
      user: { id: expect.stringMatching(/^person_/), email: 'ann.smith@example.com', name: 'ann.smith' },
    })
    const me = await browser.me()
    expect(me).toEqual({
      user: answer.json().user,
      account: { id: expect.stringMatching(/^acct_[0-9a-z]{20}$/), name: 'ann.smith' },
      isSandbox: true,
      registration: 'open',
      publicUrl: server.url,
      origins: [server.url, server.url.replace('127.0.0.1', 'localhost')],
      hasUnclaimedAccount: false,
      // Only shown to browsers on the same machine; this request came through a proxy.
      operatorTokenFile: null,
      version: '0.1.0',
      nodePriceSatPerDay: 100,
      retentionDays: 30,
    })
    const account = (await server.operator('GET', `/accounts/${me.account.id}`)).json()
    expect(account).toMatchObject({ name: 'ann.smith', creditSat: 10_000 })
  })

  test('/me also responds without a session', async () => {
    expect(await aBrowser().me()).toMatchObject({ user: null, account: null, registration: 'open', isSandbox: true })
  })

  test('an email address belongs to one person, in upper or lower case, and works in either', async () => {
    const { email } = await aPerson()
    const again = await aBrowser().signUp(email.toUpperCase())
    expect([again.status, again.json().error]).toEqual([
      400,
      { code: 'bad_request', message: 'An account with this email address already exists.', reason: 'email_taken' },
    ])
    expect((await aBrowser().signIn(email.toUpperCase())).status).toBe(200)
    await expect(sql`UPDATE people SET email = upper(email) WHERE email = ${email}`).resolves.toBeDefined()
    const { id } = await server.newAccount()
    await expect(sql`INSERT INTO people (id, account_id, email, name) VALUES ('x', ${id}, ${email}, 'x')`).rejects.toThrow(
      /people_email/,
    )
  })

  test('of ten concurrent sign-ups with one email address, one succeeds and creates one account', async () => {
    const email = newEmail()
    const [before] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM accounts`
    const answers = await Promise.all(Array.from({ length: 10 }, () => aBrowser().signUp(email)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 400)])
    const [after] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM accounts`
    expect(after?.count).toBe((before?.count ?? 0) + 1)
  })

  test.each([
    ['a short password', { email: 'a@example.com', password: '123456789' }, /10 to 128/],
    ['a long password', { email: 'a@example.com', password: 'x'.repeat(129) }, /10 to 128/],
    ['a common password', { email: 'a@example.com', password: 'Qwertyuiop' }, /too common/],
    ['no address', { email: 'a.example.com', password: PASSWORD }, /email address/],
    ['an address with a NUL', { email: 'a\u0000@example.com', password: PASSWORD }, /email address/],
    ['a name with a NUL', { email: 'a@example.com', password: PASSWORD, name: 'a\u0000' }, /"name"/],
    ['an account that the caller chooses', { email: 'a@example.com', password: PASSWORD, accountId: 'acct_x' }, /"accountId"/],
    ['a role', { email: 'a@example.com', password: PASSWORD, emailVerified: true }, /"emailVerified"/],
    ['nothing', {}, /"email" is missing/],
  ])('refuses %s', async (_title, body, sentence) => {
    const answer = await aBrowser().post('/auth/sign-up/email', body)
    expect(errorOf(answer)).toEqual([400, 'bad_request'])
    expect(answer.json().error.message).toMatch(sentence)
  })

  test('passwords of 10 and of 128 characters, including spaces, are accepted unchanged', async () => {
    for (const password of [' '.repeat(10), '😀'.repeat(64)]) {
      const email = newEmail()
      expect((await aBrowser().signUp(email, password)).status).toBe(200)
      expect((await aBrowser().signIn(email, password)).status).toBe(200)
    }
  })

  test('whatever step fails, there is no account without a person and no person without an account', async () => {
    const accounts = async (): Promise<number> => (await sql`SELECT 1 FROM accounts`).length
    const [before, email] = [await accounts(), newEmail()]
    await sql.unsafe(`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
      CREATE TRIGGER fail BEFORE INSERT ON people_identities FOR EACH ROW EXECUTE FUNCTION fail()`)
    expect(errorOf(await aBrowser().signUp(email))).toEqual([500, 'internal_error'])
    await sql.unsafe('DROP TRIGGER fail ON people_identities')
    expect(await accounts()).toBe(before)
    expect((await aBrowser().signUp(email)).status).toBe(200)
    expect(await sql`SELECT 1 FROM people p LEFT JOIN people_identities i ON i.person_id = p.id WHERE i.id IS NULL`).toHaveLength(
      0,
    )
  })
})

describe('many sign-ins at once', () => {
  const from = (address: string) => ({ 'x-forwarded-for': address })

  test('many strangers at one address are slowed down; a known person is not', async () => {
    const { browser } = await aPerson()
    const ask = (one: Browser) => one.get('/auth/passkey/generate-authenticate-options', { headers: from('192.0.2.5') })
    const statuses = await Promise.all(Array.from({ length: 61 }, async () => (await ask(aBrowser())).status))
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
    const signUp = await aBrowser().post('/auth/sign-up/email', { email: newEmail(), password: PASSWORD }, from('192.0.2.5'))
    expect(errorOf(signUp)).toEqual([429, 'rate_limited'])
    expect((await browser.get('/auth/list-sessions', { headers: from('192.0.2.5') })).status).toBe(200)
  })
})

describe('REGISTRATION', () => {
  test('invite and off: no one can sign up without an invitation; existing people can sign in', async () => {
    const { email } = known
    const browser = onReplica()
    expect((await browser.me()).registration).toBe('invite')
    expect(errorOf(await browser.signUp(newEmail()))).toEqual([401, 'unauthorized'])
    expect(browser.cookies.size).toBe(0)
    expect((await browser.signIn(email)).status).toBe(200)
  })

  test.each([
    [{}, 'open'],
    [{ HOST: '127.0.0.1', REGISTRATION: 'off' }, 'off'],
    [{ HOST: '0.0.0.0', PUBLIC_URL: 'https://pay.example.com' }, 'invite'],
    [{ HOST: '0.0.0.0', PUBLIC_URL: 'https://pay.example.com', REGISTRATION: 'open' }, 'open'],
    [{ NODE_SOFTWARE: 'phoenixd', NODE_VERSIONS: '0.8.0=/bin/true' }, 'invite'],
  ])('%j means %s', (env, registration) => {
    expect(readConfig(env).registration).toBe(registration)
  })

  test.each([
    [{ REGISTRATION: 'maybe' }, 'REGISTRATION: must be one of open, invite, off'],
    [
      { REGISTRATION: 'open', NODE_SOFTWARE: 'phoenixd', NODE_VERSIONS: '0.8.0=/bin/true' },
      'REGISTRATION: cannot be open when phoenixd runs as local processes: strangers’ nodes would share this host',
    ],
  ])('%j is refused', async (env, line) => {
    const one = new Server({ command: PROCESS, env: env as Record<string, string>, dataDir: temporaryDirectory() })
    await one.launch()
    expect((await one.exited).code).toBe(78)
    expect(one.stderr.trim()).toBe(line)
  })
})

describe('passkeys', () => {
  test('the options to create one require a session', async () => {
    expect(errorOf(await aBrowser().post('/auth/passkey/generate-register-options'))).toEqual([401, 'unauthorized'])
    const { browser, email } = await aPerson()
    const options = (await browser.post('/auth/passkey/generate-register-options', { password: PASSWORD })).json()
    expect(options).toMatchObject({ rp: { id: 'localhost', name: 'Boltyard' }, user: { name: email }, attestation: 'none' })
    expect(options.challenge.length).toBeGreaterThan(20)
  })

  test('a session older than a day cannot create one without signing in again', async () => {
    const { browser, email } = await aPerson()
    await sql`UPDATE people_sessions SET created_at = now() - interval '25 hours' WHERE person_id = (SELECT id FROM people WHERE email = ${email})`
    const answer = await browser.post('/auth/passkey/generate-register-options', { password: PASSWORD })
    expect([...errorOf(answer), answer.json().error.message]).toEqual([
      401,
      'unauthorized',
      expect.stringMatching(/Sign in again/),
    ])
    expect(await isSignedIn(browser)).toBe(true)
  })

  const rubbish: [title: string, response: unknown][] = [
    ['nothing', {}],
    ['no object', 'x'],
    ['an empty answer', { id: 'AAAA', rawId: 'AAAA', type: 'public-key', response: {} }],
    [
      'bytes',
      {
        id: 'AAAA',
        rawId: 'AAAA',
        type: 'public-key',
        response: { clientDataJSON: 'AAAA', attestationObject: 'AAAA', authenticatorData: 'AAAA', signature: 'AAAA' },
      },
    ],
    ['an id with a NUL', { id: 'A\u0000', rawId: 'A', type: 'public-key', response: {} }],
    ['an id that is an object', { id: { $ne: '' }, rawId: 'A', type: 'public-key', response: {} }],
    ['invalid transports', { id: 'AAAA', rawId: 'AAAA', type: 'public-key', response: { transports: { join: 1 } } }],
  ]
  test.each(rubbish)('%s is refused, when creating a passkey and when signing in', async (_title, response) => {
    const { browser } = known
    await browser.post('/auth/passkey/generate-register-options', { password: PASSWORD })
    const made = await browser.post('/auth/passkey/verify-registration', { response })
    expect(made.status).toBe(400)
    const stranger = aBrowser()
    await stranger.get('/auth/passkey/generate-authenticate-options')
    const answer = await stranger.post('/auth/passkey/verify-authentication', { response }, { 'x-forwarded-for': '192.0.2.50' })
    expect([400, 401]).toContain(answer.status)
    expect(await isSignedIn(stranger)).toBe(false)
    expect((await browser.get('/auth/passkey/list-user-passkeys')).json()).toEqual({ passkeys: [] })
  })

  test('without a challenge, or with one that was used, nothing is verified', async () => {
    const [, [, response]] = rubbish.slice(2) as [unknown, [string, unknown]]
    const stranger = aBrowser()
    const verify = () => stranger.post('/auth/passkey/verify-authentication', { response }, { 'x-forwarded-for': '192.0.2.51' })
    expect(errorOf(await verify())).toEqual([400, 'bad_request'])
    await stranger.get('/auth/passkey/generate-authenticate-options')
    expect(errorOf(await verify())).toEqual([401, 'unauthorized'])
    expect(errorOf(await verify())).toEqual([400, 'bad_request'])
  })

  test('C44: invalid passkeys count as failures', async () => {
    const response = { id: 'AAAA', rawId: 'AAAA', type: 'public-key', response: {} }
    const statuses: number[] = []
    for (let index = 0; index < 31; index++) {
      const stranger = aBrowser()
      await stranger.get('/auth/passkey/generate-authenticate-options')
      const answer = await stranger.post('/auth/passkey/verify-authentication', { response }, { 'x-forwarded-for': '192.0.2.52' })
      statuses.push(answer.status)
    }
    expect(statuses).toEqual([...Array.from({ length: 30 }, () => 401), 429])
  })

  test('C47: an added passkey is in the list and in the log; another person’s passkey is unknown', async () => {
    const { browser, email } = await aPerson()
    const stranger = (await aPerson()).browser
    const [person] = await sql<{ id: string }[]>`SELECT id FROM people WHERE email = ${email}`
    await sql`
      INSERT INTO people_passkeys (id, person_id, name, public_key, credential_id, counter, device_type, backed_up)
      VALUES ('pk1', ${person?.id ?? ''}, 'Laptop', 'AAAA', 'cred1', 0, 'singleDevice', false)`
    expect((await browser.get('/auth/passkey/list-user-passkeys')).json()).toEqual({
      passkeys: [{ id: 'pk1', name: 'Laptop', deviceType: 'singleDevice', backedUp: false, createdAt: expect.any(Number) }],
    })
    const none = await stranger.post('/auth/passkey/delete-passkey', { id: 'none', password: PASSWORD })
    for (const path of ['delete', 'update'] as const) {
      const answer = await stranger.post(`/auth/passkey/${path}-passkey`, {
        id: 'pk1',
        ...(path === 'update' ? { name: 'x' } : { password: PASSWORD }),
      })
      expect([answer.status, answer.text]).toEqual([404, none.text])
    }
    expect((await browser.post('/auth/passkey/update-passkey', { id: 'pk1', name: 'Old laptop' })).json().name).toBe('Old laptop')
    expect((await browser.post('/auth/passkey/delete-passkey', { id: 'pk1', password: PASSWORD })).status).toBe(200)
    expect((await browser.get('/auth/passkey/list-user-passkeys')).json()).toEqual({ passkeys: [] })
  })
})

describe('the routes for signing in offer only what pages need', () => {
  test.each([
    ['GET', '/auth/ok'],
    ['GET', '/auth/error'],
    ['POST', '/auth/sign-in/social'],
    ['POST', '/auth/request-password-reset'],
    ['POST', '/auth/reset-password'],
    ['POST', '/auth/send-verification-email'],
    ['GET', '/auth/verify-email'],
    ['POST', '/auth/change-email'],
    ['POST', '/auth/delete-user'],
    ['GET', '/auth/delete-user/callback'],
    ['POST', '/auth/link-social'],
    ['GET', '/auth/list-accounts'],
    ['POST', '/auth/unlink-account'],
    ['POST', '/auth/revoke-session'],
    ['POST', '/auth/update-session'],
    ['POST', '/auth/refresh-token'],
    ['POST', '/auth/get-access-token'],
    ['GET', '/auth/account-info'],
    ['POST', '/auth/start-session'],
    ['POST', '/auth/startSession'],
    ['POST', '/auth/verify-password'],
    ['POST', '/auth/set-password'],
    ['GET', '/auth/callback/google'],
  ])('%s %s does not exist', async (method, path) => {
    const { browser } = known
    const answer = method === 'GET' ? await browser.get(path) : await browser.post(path)
    expect([answer.status, answer.json()]).toEqual([404, { error: { code: 'not_found', message: 'This path does not exist.' } }])
    expect(answer.headers['x-request-id']).toBeDefined()
  })

  test('another method is 405', async () => {
    expect(errorOf(await aBrowser().get('/auth/sign-in/email'))).toEqual([405, 'method_not_allowed'])
  })

  const POSTS = [
    '/auth/sign-up/email',
    '/auth/sign-in/email',
    '/auth/sign-out',
    '/auth/change-password',
    '/auth/update-user',
    '/auth/revoke-sessions',
    '/auth/revoke-other-sessions',
    '/auth/passkey/generate-register-options',
    '/auth/passkey/verify-registration',
    '/auth/passkey/verify-authentication',
    '/auth/passkey/update-passkey',
    '/auth/passkey/delete-passkey',
    '/link/inspect',
    '/link/accept',
  ]
  const deep = `${'['.repeat(100)}${']'.repeat(100)}`
  const BODIES: (string | Buffer)[] = [
    'null',
    '[]',
    '"x"',
    '1',
    '{',
    '',
    deep,
    '{"__proto__":{"email":"x"}}',
    '{"constructor":{"prototype":{}}}',
    '{"email":null,"password":null,"name":null,"token":null,"id":null,"response":null}',
    '{"email":{"$ne":""},"password":{"$ne":""},"token":{"$ne":""}}',
    '{"email":["a@example.com"],"password":["12345678"]}',
    '{"email":"a@example.com\\u0000","password":"\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000","token":"\\u0000"}',
    '{"email":"\\ud800@example.com","password":"12345678","token":"\\ud800"}',
    `{"email":"${'a'.repeat(10_000)}@example.com","password":"12345678"}`,
    `{"email":"a@example.com","password":"${'x'.repeat(60_000)}"}`,
    '{"email":"a@example.com","password":"12345678","callbackURL":"https://evil.example"}',
    '{"token":"x","email":"a@example.com","password":"12345678","kind":"claim"}',
    Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  ]

  test.each(POSTS)('no body causes an internal error at %s', async (path) => {
    const { browser } = known
    const headers = { origin: browser.origin, 'content-type': 'application/json', 'x-forwarded-for': '192.0.2.60' }
    // Routes without input accept an empty body, and would sign the caller out.
    const takesNothing = ['/auth/sign-out', '/auth/revoke-sessions', '/auth/revoke-other-sessions'].includes(path)
    for (const body of BODIES.filter((one) => one !== '' || !takesNothing)) {
      const answer = await send(server.port, 'POST', `/dashboard/api${path}`, {
        headers: { ...headers, cookie: browser.cookie },
        body,
      })
      expect([400, 401, 404, 429], `${path} ${String(body).slice(0, 80)}: ${answer.text}`).toContain(answer.status)
      expect(answer.json().error).toMatchObject({ code: expect.any(String), message: expect.any(String) })
    }
    const body = JSON.stringify({ email: 'a@example.com', password: 'x'.repeat(70_000) })
    const large = await send(server.port, 'POST', `/dashboard/api${path}`, {
      headers: { ...headers, cookie: browser.cookie },
      body,
    })
    expect(errorOf(large)).toEqual([413, 'payload_too_large'])
    expect(await isSignedIn(browser)).toBe(true)
  })

  test('no query causes an internal error', async () => {
    const { browser } = known
    for (const path of ['/auth/get-session', '/auth/list-sessions', '/auth/passkey/list-user-passkeys'])
      expect(errorOf(await browser.get(`${path}?disableCookieCache=x`))).toEqual([400, 'bad_request'])
    for (const field of [
      { name: '\u0000' },
      { name: '' },
      { authenticatorAttachment: 'x' },
      { context: 'x' },
      { name: ['a', 'b'] },
    ])
      expect(
        (await browser.post('/auth/passkey/generate-register-options', { ...field, password: PASSWORD })).status,
        JSON.stringify(field),
      ).toBe(400)
  })

  test('a person can change only their name', async () => {
    const { browser, email } = await aPerson()
    expect((await browser.post('/auth/update-user', { name: 'Ann' })).status).toBe(200)
    expect((await browser.me()).user).toMatchObject({ name: 'Ann', email })
    for (const body of [
      { email: 'x@example.com' },
      { accountId: 'acct_x' },
      { image: 'x' },
      { emailVerified: true },
      { name: '' },
    ])
      expect(errorOf(await browser.post('/auth/update-user', body))).toEqual([400, 'bad_request'])
  })
})

describe('with a separate service', () => {
  let own: Server
  beforeAll(async () => {
    own = await startServer({ command: PROCESS, store: 'embedded', env: { LOG_LEVEL: 'trace', NODE_PRICE_SAT_PER_DAY: '0' } })
  })

  test('no password, token or cookie is in the log or in any table', async () => {
    const browser = new Browser(own)
    const [password, changed] = ['a-very-secret-password', 'another-secret-password']
    await browser.signUp('ann@example.com', password)
    await browser.signUp('ann@example.com', password)
    await browser.signIn('ann@example.com', 'a-wrong-secret-password')
    const first = decodeURIComponent(browser.cookie)
    await browser.post('/auth/change-password', { currentPassword: password, newPassword: changed })
    await browser.post('/auth/passkey/generate-register-options', { password: changed })
    const second = decodeURIComponent(browser.cookie)
    await browser.post('/auth/passkey/verify-registration', { response: { id: 'AAAA', response: { clientDataJSON: 'AAAA' } } })
    await browser.get('/auth/passkey/generate-authenticate-options')
    const third = decodeURIComponent(browser.cookie)
    const token = (cookie: string): string[] => (/session_token=([^;]+)/.exec(cookie)?.[1] ?? '').split('.')
    const challenge = (cookie: string): string => /passkey=([^;.]+)/.exec(cookie)?.[1] ?? ''
    const passwords = [password, changed, 'a-wrong-secret-password']
    const secrets = [...passwords, challenge(second), challenge(third), ...token(first), ...token(second)]
    for (const secret of secrets) expect(secret.length).toBeGreaterThan(10)
    const store = own.sql()
    const tables = await store<{ name: string }[]>`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`
    expect(tables.length).toBeGreaterThan(10)
    const rows = await Promise.all(
      tables.map(async ({ name }) => (await store`SELECT t::text AS row FROM ${store(name)} t`).map(({ row }) => row)),
    )
    const everything = rows.flat().join('\n') + own.stderr + own.stdout
    expect(everything).toContain('ann@example.com')
    expect(own.stderr).toContain('/dashboard/api/auth/sign-in/email')
    for (const secret of secrets) {
      expect(everything).not.toContain(secret)
      expect(everything).not.toContain(Buffer.from(secret).toString('hex'))
      expect(everything).not.toContain(Buffer.from(secret).toString('base64'))
    }
    expect(own.stderr).not.toContain('ann@example.com')
  })

  test('expired sessions, challenges and links are deleted', async () => {
    const store = own.sql()
    const tables = ['people_sessions', 'people_verifications', 'links']
    for (const table of tables) {
      expect((await store`SELECT 1 FROM ${store(table)}`).length).toBeGreaterThan(0)
      await store`UPDATE ${store(table)} SET expires_at = now() - interval '1 minute'`
    }
    await forgetEndedSessions(store)
    await forgetOldLinks(store)
    for (const table of tables) expect(await store`SELECT 1 FROM ${store(table)}`).toHaveLength(0)
  })

  test('after a kill in the middle of a sign-up, nothing is left and it can be repeated', async () => {
    const store = own.sql()
    await store.unsafe(`
      CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
      CREATE TRIGGER wait BEFORE INSERT ON people_identities FOR EACH ROW EXECUTE FUNCTION wait()`)
    await lockingTransaction(store, async (transaction) => {
      await transaction`SELECT pg_advisory_xact_lock(1)`
      const signUp = new Browser(own).signUp('late@example.com').catch(() => 'killed')
      const waits = async () =>
        (await store`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`).length > 0
      await eventually(waits, 'the sign-up to be half done')
      await own.kill()
      expect(await signUp).toBe('killed')
    })
    // Waits for the table's lock, which PostgreSQL releases once it has noticed that the client is gone.
    await store.unsafe('DROP TRIGGER wait ON people_identities')
    expect(await store`SELECT 1 FROM people WHERE email LIKE 'late%'`).toHaveLength(0)
    expect(await store`SELECT 1 FROM accounts WHERE name = 'late'`).toHaveLength(0)
    await own.start()
    expect((await new Browser(own).signUp('late@example.com')).status).toBe(200)
  })

  test('while the store is down, the answer is 503 and not "signed out"; afterwards everything works as before', async () => {
    const browser = new Browser(own)
    await browser.signUp('bob@example.com')
    const { giveBack } = await own.takeStoreAway()
    for (const answer of [
      await browser.get('/me'),
      await browser.get('/auth/list-sessions'),
      await browser.signIn('bob@example.com'),
      await browser.signUp('eve@example.com'),
      await browser.post('/auth/change-password', { currentPassword: PASSWORD, newPassword: 'better horse' }),
    ])
      expect(errorOf(answer)).toEqual([503, 'service_unavailable'])
    giveBack()
    await eventually(async () => (await own.send('GET', '/readyz')).status === 200, 'the store to be back')
    expect((await browser.me()).user.email).toBe('bob@example.com')
  })

  test('a new master key signs everyone out, and passwords still work', async () => {
    const browser = new Browser(own)
    await browser.signIn('bob@example.com')
    expect(await isSignedIn(browser)).toBe(true)
    const previous = own.masterKey
    await own.restart('SIGTERM', { MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), MASTER_KEY_PREVIOUS: previous })
    expect(await isSignedIn(browser)).toBe(false)
    expect((await browser.signIn('bob@example.com')).status).toBe(200)
  })
})
