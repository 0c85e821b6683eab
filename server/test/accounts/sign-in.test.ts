import { beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { originsOf } from '../../src/http/hooks/session.ts'
import type { Database } from '../../src/store/db.ts'
import { forgetOldLinks } from '../../src/store/people/links.ts'
import { forgetEndedSessions } from '../../src/store/people/people.ts'
import { Browser, cookiesOf, newEmail, PASSWORD } from '../support/browser.ts'
import {
  type Answer,
  eventually,
  type Server,
  Server as ServerProcess,
  send,
  startServer,
  temporaryDirectory,
} from '../support/server.ts'

/** Everybody's own address, so that no test's failures count against another's. */
let server: Server
/** The same people, served by another process. */
let replica: Server
let sql: Database
/** Somebody who stays signed in throughout: a password takes a tenth of a second to hash. */
let known: { browser: Browser; email: string }

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  // Behind one address, as replicas are: the origin is the first one's.
  const together = { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1', PUBLIC_URL: server.url }
  replica = new ServerProcess({ env: { ...together, REGISTRATION: 'invite' } })
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
const activityOf = async (email: string): Promise<string[]> =>
  (
    await sql<{ action: string }[]>`
      SELECT a.action FROM activity a JOIN people p ON p.account_id = a.account_id AND a.actor = p.id WHERE p.email = ${email} ORDER BY a.id`
  ).map(({ action }) => action)

describe('signing up', () => {
  test('makes a person and an account with its first credit, and signs in', async () => {
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
      // Asked through a proxy, by somebody elsewhere.
      operatorTokenFile: null,
      version: '0.1.0',
      nodePriceSatPerDay: 100,
      retentionDays: 30,
    })
    const account = (await server.operator('GET', `/accounts/${me.account.id}`)).json()
    expect(account).toMatchObject({ name: 'ann.smith', creditSat: 10_000 })
  })

  test('/me answers a stranger too', async () => {
    expect(await aBrowser().me()).toMatchObject({ user: null, account: null, registration: 'open', isSandbox: true })
  })

  test('an address is one person’s, in whatever case; who has it can sign in in any', async () => {
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

  test('of twenty who take one address at once, one gets it, and there is one account more', async () => {
    const email = newEmail()
    const [before] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM accounts`
    const answers = await Promise.all(Array.from({ length: 20 }, () => aBrowser().signUp(email)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 400)])
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
    ['an account of somebody’s choice', { email: 'a@example.com', password: PASSWORD, accountId: 'acct_x' }, /"accountId"/],
    ['a role', { email: 'a@example.com', password: PASSWORD, emailVerified: true }, /"emailVerified"/],
    ['nothing', {}, /"email" is missing/],
  ])('refuses %s', async (_title, body, sentence) => {
    const answer = await aBrowser().post('/auth/sign-up/email', body)
    expect(errorOf(answer)).toEqual([400, 'bad_request'])
    expect(answer.json().error.message).toMatch(sentence)
  })

  test('a password of 10 and one of 128 characters, spaces and all, are taken as they are', async () => {
    for (const password of [' '.repeat(10), '😀'.repeat(64)]) {
      const email = newEmail()
      expect((await aBrowser().signUp(email, password)).status).toBe(200)
      expect((await aBrowser().signIn(email, password)).status).toBe(200)
    }
  })

  test('whatever fails in between, there is no account without a person and no person without an account', async () => {
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

describe('the session’s cookie', () => {
  test('is for the server alone: http-only, same site, the whole host, seven days', async () => {
    const [cookie, device, ...others] = cookiesOf(await aBrowser().signUp(newEmail()))
    expect(others).toEqual([])
    expect(device?.name).toBe('boltyard.device')
    expect(device?.attributes.sort()).toEqual(['HttpOnly', 'Max-Age=34560000', 'Path=/', 'SameSite=Lax'])
    expect(cookie?.name).toBe('boltyard.session_token')
    expect(cookie?.attributes.sort()).toEqual(['HttpOnly', 'Max-Age=604800', 'Path=/', 'SameSite=Lax'])
  })

  test('security 19: with an https PUBLIC_URL all cookies are Secure and for this very host, in their names too', async () => {
    const https = new ServerProcess({ env: { ...server.sharedStoreEnv, ROLE: 'api', PUBLIC_URL: 'https://pay.example.com' } })
    await https.launch()
    await https.printed(/^boltyard ready https:\/\/pay.example.com\n/m)
    const { email } = known
    const browser = new Browser(server)
    browser.server = https
    browser.origin = 'https://pay.example.com'
    const cookies = [
      ...cookiesOf(await browser.signIn(email)),
      ...cookiesOf(await browser.get('/auth/passkey/generate-register-options')),
    ]
    expect(cookies.map(({ name }) => name)).toEqual([
      '__Host-boltyard.session_token',
      '__Host-boltyard.device',
      expect.stringMatching(/^__Host-boltyard\.better-auth-passkey/),
    ])
    // Browsers refuse such a name with a Domain, with another Path, or without Secure.
    for (const { attributes } of cookies) {
      expect(attributes).toEqual(expect.arrayContaining(['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure']))
      expect(attributes.some((attribute) => /^domain/i.test(attribute))).toBe(false)
    }
    expect((await browser.me()).user.email).toBe(email)
    await https.stop()
  })

  test('what signs in is in no body', async () => {
    const { browser, email } = await aPerson()
    const value = decodeURIComponent(browser.cookies.get('boltyard.session_token') ?? '')
    const [token = ''] = value.split('.')
    expect(token.length).toBeGreaterThan(20)
    const answers = [
      await browser.signIn(email),
      await browser.get('/me'),
      await browser.get('/auth/get-session'),
      await browser.get('/auth/list-sessions'),
      await browser.post('/auth/change-password', { currentPassword: PASSWORD, newPassword: 'another horse' }),
    ]
    for (const answer of answers) {
      expect(answer.status).toBe(200)
      // The name of a field of /me, which holds a path.
      expect(answer.text.replace('"operatorTokenFile":null', '')).not.toMatch(/token/i)
      expect(answer.text).not.toContain(token)
    }
  })

  test.each([
    ['another signature', (value: string) => `${value.slice(0, -8)}AAAA%3D`],
    ['no signature', (value: string) => value.split('.')[0] ?? ''],
    ['another token', (value: string) => `x${value}`],
    ['nothing', () => ''],
    ['rubbish', () => '%00%ff.%'],
    ['half an escape', () => '%'],
    ['a very long one', () => 'x'.repeat(8_000)],
  ])('with %s it is nobody’s', async (_title, change) => {
    const { browser } = known
    const cookie = `boltyard.session_token=${change(browser.cookies.get('boltyard.session_token') ?? '')}`
    const answer = await send(server.port, 'GET', '/dashboard/api/me', { headers: { cookie } })
    expect([answer.status, answer.json().user]).toEqual([200, null])
    const refused = await send(server.port, 'GET', '/dashboard/api/auth/list-sessions', { headers: { cookie } })
    expect(errorOf(refused)).toEqual([401, 'unauthorized'])
  })

  test('ends when its time is over, and is prolonged when it is used', async () => {
    const { browser, email } = await aPerson()
    const set = (end: string) =>
      sql`UPDATE people_sessions SET expires_at = now() + ${end}::interval WHERE person_id = (SELECT id FROM people WHERE email = ${email})`
    const left = async (): Promise<number> => {
      const rows = await sql<{ hours: number }[]>`
        SELECT extract(epoch FROM expires_at - now())::float8 / 3600 AS hours FROM people_sessions
        WHERE person_id = (SELECT id FROM people WHERE email = ${email})`
      return rows[0]?.hours ?? 0
    }
    await set('6 days 12 hours')
    expect(cookiesOf(await browser.get('/me'))).toEqual([])
    expect(await left()).toBeCloseTo(156, 0)
    await set('2 days')
    const [cookie] = cookiesOf(await browser.get('/auth/list-sessions'))
    expect(cookie?.attributes).toContain('Max-Age=604800')
    expect(await left()).toBeCloseTo(168, 0)
    await set('-1 second')
    expect(await isSignedIn(browser)).toBe(false)
    expect(errorOf(await browser.get('/auth/list-sessions'))).toEqual([401, 'unauthorized'])
    expect(await activityOf(email)).toEqual(['account.created', 'person.signed_up'])
  })

  test('does not outlive a session that has ended, wherever the cookie was copied to', async () => {
    const { browser } = await aPerson()
    const { cookie } = browser
    expect((await browser.post('/auth/sign-out')).status).toBe(200)
    expect([...browser.cookies.keys()]).toEqual(['boltyard.device'])
    const copied = await send(server.port, 'GET', '/dashboard/api/auth/list-sessions', { headers: { cookie } })
    expect(errorOf(copied)).toEqual([401, 'unauthorized'])
  })

  test('is good at every replica', async () => {
    const { browser, email } = await aPerson()
    const { cookie } = browser
    const isGood = async (): Promise<boolean> =>
      (await send(server.port, 'GET', '/dashboard/api/me', { headers: { cookie } })).json().user !== null
    browser.server = replica
    expect((await browser.me()).user.email).toBe(email)
    expect(await isGood()).toBe(true)
    expect((await browser.post('/auth/sign-out')).status).toBe(200)
    expect(await isGood()).toBe(false)
  })
})

describe('a crowd at the door', () => {
  const from = (address: string) => ({ 'x-forwarded-for': address })

  test('a crowd of strangers at one address is slowed down, somebody who is known is not', async () => {
    const { browser } = await aPerson()
    const ask = (one: Browser) => one.get('/auth/passkey/generate-authenticate-options', { headers: from('192.0.2.5') })
    const statuses = await Promise.all(Array.from({ length: 61 }, async () => (await ask(aBrowser())).status))
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
    const signUp = await aBrowser().post('/auth/sign-up/email', { email: newEmail(), password: PASSWORD }, from('192.0.2.5'))
    expect(errorOf(signUp)).toEqual([429, 'rate_limited'])
    expect((await browser.get('/auth/list-sessions', { headers: from('192.0.2.5') })).status).toBe(200)
  })
})

describe('leaving', () => {
  test('sign-out ends this session and no other', async () => {
    const { browser, email } = await aPerson()
    const other = aBrowser()
    await other.signIn(email)
    expect((await browser.post('/auth/sign-out')).json()).toEqual({ success: true })
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([false, true])
    expect((await browser.post('/auth/sign-out')).status).toBe(200)
  })

  test('everywhere: all sessions, this one too', async () => {
    const { browser, email } = await aPerson()
    const others = [aBrowser(), aBrowser()]
    for (const other of others) await other.signIn(email)
    const stranger = (await aPerson()).browser
    expect((await browser.post('/auth/revoke-sessions')).status).toBe(200)
    expect([...browser.cookies.keys()]).toEqual(['boltyard.device'])
    for (const one of [browser, ...others]) expect(await isSignedIn(one)).toBe(false)
    expect(await isSignedIn(stranger)).toBe(true)
  })

  test('everywhere else: all sessions but this one', async () => {
    const { browser, email } = await aPerson()
    const other = aBrowser()
    await other.signIn(email)
    const list = async () => (await browser.get('/auth/list-sessions')).json().sessions
    expect((await list()).map(({ method, isCurrent }: any) => [method, isCurrent])).toEqual([
      ['password', false],
      ['sign-up', true],
    ])
    expect((await browser.post('/auth/revoke-other-sessions')).status).toBe(200)
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([true, false])
    expect(await list()).toHaveLength(1)
  })

  test('a changed password ends every other session, and the old one opens nothing', async () => {
    const { browser, email } = await aPerson()
    const other = aBrowser()
    await other.signIn(email)
    const { cookie } = browser
    const change = await browser.post('/auth/change-password', { currentPassword: PASSWORD, newPassword: 'better horse' })
    expect([change.status, change.json().user.email]).toEqual([200, email])
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([true, false])
    const old = await send(server.port, 'GET', '/dashboard/api/me', { headers: { cookie } })
    expect(old.json().user).toBeNull()
    expect((await aBrowser().signIn(email)).status).toBe(401)
    expect((await aBrowser().signIn(email, 'better horse')).status).toBe(200)
  })

  test('a password that is changed by halves is not changed', async () => {
    const { browser, email } = await aPerson()
    await sql.unsafe(`
      CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
      CREATE TRIGGER keep BEFORE INSERT ON people_sessions FOR EACH ROW WHEN (NEW.method = 'password change') EXECUTE FUNCTION keep()`)
    const change = await browser.post('/auth/change-password', { currentPassword: PASSWORD, newPassword: 'better horse' })
    await sql.unsafe('DROP TRIGGER keep ON people_sessions; DROP FUNCTION keep')
    expect(errorOf(change)).toEqual([500, 'internal_error'])
    expect(await isSignedIn(browser)).toBe(true)
    expect((await aBrowser().signIn(email)).status).toBe(200)
  })

  test('C47: what a person did is in the activity log, and who it was', async () => {
    const { browser, email } = await aPerson()
    const other = aBrowser()
    await other.signIn(email)
    await other.signIn(email, 'wrong horse', { 'x-forwarded-for': '192.0.2.99' })
    await browser.post('/auth/change-password', { currentPassword: PASSWORD, newPassword: 'better horse' })
    await browser.post('/auth/sign-out')
    await browser.signIn(email, 'better horse')
    await browser.post('/auth/revoke-sessions')
    expect(await activityOf(email)).toEqual([
      'account.created',
      'person.signed_up',
      'person.signed_in',
      'person.password_changed',
      'person.signed_out',
      'person.signed_in',
      'person.signed_out',
    ])
  })
})

describe('somebody else’s page', () => {
  const foreign: [title: string, headers: Record<string, string | undefined>][] = [
    ['no origin', { origin: undefined }],
    ['another origin', { origin: 'https://evil.example' }],
    ['the origin null', { origin: 'null' }],
    ['another port of this host', { origin: 'http://127.0.0.1:1' }],
    ['this host by another name', { origin: 'http://localhost' }],
    ['our origin within another', { origin: 'http://127.0.0.1.evil.example' }],
    ['a form’s content type', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['another form’s content type', { 'content-type': 'multipart/form-data; boundary=x' }],
    ['plain text', { 'content-type': 'text/plain' }],
    ['a content type that begins like JSON', { 'content-type': 'application/jsonx' }],
  ]

  test.each(foreign)('with %s changes nothing', async (_title, headers) => {
    const { browser, email } = known
    const before = await sql`SELECT * FROM people_identities ORDER BY id`
    const tries = [
      await browser.post('/auth/sign-out', {}, headers),
      await browser.post('/auth/revoke-sessions', {}, headers),
      await browser.post('/auth/change-password', { currentPassword: PASSWORD, newPassword: 'their horse' }, headers),
      await browser.post('/auth/update-user', { name: 'Mallory' }, headers),
      await browser.post('/auth/sign-in/email', { email, password: PASSWORD }, headers),
      await browser.post('/link/accept', { token: 'x' }, headers),
    ]
    for (const answer of tries) {
      expect(errorOf(answer)).toEqual([401, 'unauthorized'])
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    expect(await isSignedIn(browser)).toBe(true)
    expect((await browser.me()).user.name).not.toBe('Mallory')
    expect(await sql`SELECT * FROM people_identities ORDER BY id`).toEqual(before)
  })

  test('dashboard: on one’s own machine the page may be at localhost as well as at 127.0.0.1; elsewhere only at PUBLIC_URL', async () => {
    const browser = aBrowser()
    browser.origin = `http://localhost:${server.port}`
    expect((await browser.signIn(known.email)).status).toBe(200)
    expect((await browser.post('/auth/sign-out', {}, { origin: `https://localhost:${server.port}` })).status).toBe(401)
    expect((await browser.post('/auth/sign-out')).status).toBe(200)
    const originsAt = (env: Record<string, string>) => originsOf(readConfig(env))
    expect(originsAt({ PORT: '80' })).toEqual(['http://127.0.0.1', 'http://localhost'])
    expect(originsAt({ HOST: '::1' })).toEqual(['http://[::1]:8402', 'http://localhost:8402'])
    expect(originsAt({ PUBLIC_URL: 'https://yard.example' })).toEqual(['https://yard.example'])
    expect(originsAt({ HOST: '0.0.0.0', PUBLIC_URL: 'http://127.0.0.1:8402' })).toEqual(['http://127.0.0.1:8402'])
  })

  test('gets no permission to read either', async () => {
    const { browser } = known
    const answer = await browser.get('/me', { headers: { origin: 'https://evil.example' } })
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})

describe('REGISTRATION', () => {
  test('invite and off: nobody signs up by themselves; who is here signs in', async () => {
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
      'REGISTRATION: cannot be open with phoenixd as processes: the accounts of strangers would share this host',
    ],
  ])('%j is refused', async (env, line) => {
    const one = new ServerProcess({ env: env as Record<string, string>, dataDir: temporaryDirectory() })
    await one.launch()
    expect((await one.exited).code).toBe(78)
    expect(one.stderr.trim()).toBe(line)
  })
})

describe('passkeys', () => {
  test('what a browser needs to make one is for who is signed in', async () => {
    expect(errorOf(await aBrowser().get('/auth/passkey/generate-register-options'))).toEqual([401, 'unauthorized'])
    const { browser, email } = await aPerson()
    const options = (await browser.get('/auth/passkey/generate-register-options')).json()
    expect(options).toMatchObject({ rp: { id: 'localhost', name: 'Boltyard' }, user: { name: email }, attestation: 'none' })
    expect(options.challenge.length).toBeGreaterThan(20)
  })

  test('a session of more than a day ago makes none: one has to sign in again first', async () => {
    const { browser, email } = await aPerson()
    await sql`UPDATE people_sessions SET created_at = now() - interval '25 hours' WHERE person_id = (SELECT id FROM people WHERE email = ${email})`
    const answer = await browser.get('/auth/passkey/generate-register-options')
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
    ['transports that are none', { id: 'AAAA', rawId: 'AAAA', type: 'public-key', response: { transports: { join: 1 } } }],
  ]
  test.each(rubbish)('%s is no passkey, to make one or to sign in with', async (_title, response) => {
    const { browser } = known
    await browser.get('/auth/passkey/generate-register-options')
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

  test('C44: passkeys that open nothing count as failures', async () => {
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

  test('C47: one that was added is in the list and in the log; another person’s is as good as none', async () => {
    const { browser, email } = await aPerson()
    const stranger = (await aPerson()).browser
    const [person] = await sql<{ id: string }[]>`SELECT id FROM people WHERE email = ${email}`
    await sql`
      INSERT INTO people_passkeys (id, person_id, name, public_key, credential_id, counter, device_type, backed_up)
      VALUES ('pk1', ${person?.id ?? ''}, 'Laptop', 'AAAA', 'cred1', 0, 'singleDevice', false)`
    expect((await browser.get('/auth/passkey/list-user-passkeys')).json()).toEqual({
      passkeys: [{ id: 'pk1', name: 'Laptop', deviceType: 'singleDevice', backedUp: false, createdAt: expect.any(Number) }],
    })
    const none = await stranger.post('/auth/passkey/delete-passkey', { id: 'none' })
    for (const path of ['delete', 'update'] as const) {
      const answer = await stranger.post(`/auth/passkey/${path}-passkey`, {
        id: 'pk1',
        ...(path === 'update' ? { name: 'x' } : {}),
      })
      expect([answer.status, answer.text]).toEqual([404, none.text])
    }
    expect((await browser.post('/auth/passkey/update-passkey', { id: 'pk1', name: 'Old laptop' })).json().name).toBe('Old laptop')
    expect((await browser.post('/auth/passkey/delete-passkey', { id: 'pk1' })).status).toBe(200)
    expect((await browser.get('/auth/passkey/list-user-passkeys')).json()).toEqual({ passkeys: [] })
  })
})

describe('what is not for a page', () => {
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

  test.each(POSTS)('no body upsets %s', async (path) => {
    const { browser } = known
    const headers = { origin: browser.origin, 'content-type': 'application/json', 'x-forwarded-for': '192.0.2.60' }
    // What takes nothing may be asked without a body: it does its work, and who asks is not signed in any more.
    const takesNothing = ['/auth/sign-out', '/auth/revoke-sessions', '/auth/revoke-other-sessions'].includes(path)
    for (const body of BODIES.filter((one) => one !== '' || !takesNothing)) {
      const answer = await send(server.port, 'POST', `/dashboard/api${path}`, {
        headers: { ...headers, cookie: browser.cookie },
        body,
      })
      expect([400, 401, 404, 429], `${path} ${String(body).slice(0, 80)}: ${answer.text}`).toContain(answer.status)
      expect(answer.json().error).toEqual({ code: expect.any(String), message: expect.any(String) })
    }
    const body = JSON.stringify({ email: 'a@example.com', password: 'x'.repeat(70_000) })
    const large = await send(server.port, 'POST', `/dashboard/api${path}`, {
      headers: { ...headers, cookie: browser.cookie },
      body,
    })
    expect(errorOf(large)).toEqual([413, 'payload_too_large'])
    expect(await isSignedIn(browser)).toBe(true)
  })

  test('no query upsets anything', async () => {
    const { browser } = known
    for (const path of ['/auth/get-session', '/auth/list-sessions', '/auth/passkey/list-user-passkeys'])
      expect(errorOf(await browser.get(`${path}?disableCookieCache=x`))).toEqual([400, 'bad_request'])
    for (const query of ['name=%00', 'name=', 'authenticatorAttachment=x', 'context=x', 'name=a&name=b'])
      expect((await browser.get(`/auth/passkey/generate-register-options?${query}`)).status).toBe(400)
  })

  test('a name is all that a person can change of themselves', async () => {
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

describe('a service of its own', () => {
  let own: Server
  beforeAll(async () => {
    own = await startServer({ store: 'embedded', env: { LOG_LEVEL: 'trace' } })
  })

  test('no password, token or cookie is in the log or in any table', async () => {
    const browser = new Browser(own)
    const [password, changed] = ['a-very-secret-password', 'another-secret-password']
    await browser.signUp('ann@example.com', password)
    await browser.signUp('ann@example.com', password)
    await browser.signIn('ann@example.com', 'a-wrong-secret-password')
    const first = decodeURIComponent(browser.cookie)
    await browser.post('/auth/change-password', { currentPassword: password, newPassword: changed })
    await browser.get('/auth/passkey/generate-register-options')
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

  test('what is over is forgotten', async () => {
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

  test('killed in the middle of a sign-up: nothing of it is left, and it can be repeated', async () => {
    const store = own.sql()
    await store.unsafe(`
      CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(4); RETURN NEW; END $$;
      CREATE TRIGGER slow BEFORE INSERT ON people_identities FOR EACH ROW EXECUTE FUNCTION slow()`)
    const signUp = new Browser(own).signUp('late@example.com').catch(() => 'killed')
    const waits = async () =>
      (await store`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`).length > 0
    await eventually(waits, 'the sign-up to be half done')
    await own.kill()
    expect(await signUp).toBe('killed')
    await eventually(async () => !(await waits()), 'PostgreSQL to notice', 25_000)
    await store.unsafe('DROP TRIGGER slow ON people_identities')
    expect(await store`SELECT 1 FROM people WHERE email LIKE 'late%'`).toHaveLength(0)
    expect(await store`SELECT 1 FROM accounts WHERE name = 'late'`).toHaveLength(0)
    await own.start()
    expect((await new Browser(own).signUp('late@example.com')).status).toBe(200)
  })

  test('while the store is away nobody is told that they are signed out: 503, and afterwards all is as before', async () => {
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

  test('a new master key signs everybody out, and passwords are good as before', async () => {
    const browser = new Browser(own)
    await browser.signIn('bob@example.com')
    expect(await isSignedIn(browser)).toBe(true)
    const previous = own.masterKey
    await own.restart('SIGTERM', { MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), MASTER_KEY_PREVIOUS: previous })
    expect(await isSignedIn(browser)).toBe(false)
    expect((await browser.signIn('bob@example.com')).status).toBe(200)
  })
})
