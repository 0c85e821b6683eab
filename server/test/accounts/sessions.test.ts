import { beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { originsOf } from '../../src/http/hooks/session.ts'
import type { Database } from '../../src/store/db.ts'
import { Browser, cookiesOf, newEmail, PASSWORD } from '../support/browser.ts'
import { type Answer, Server, send, startServer } from '../support/server.ts'

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

describe('the session’s cookie', () => {
  test('is http-only, same-site, for the whole host and valid for seven days', async () => {
    const [cookie, device, ...others] = cookiesOf(await aBrowser().signUp(newEmail()))
    expect(others).toEqual([])
    expect(device?.name).toBe('boltyard.device')
    expect(device?.attributes.sort()).toEqual(['HttpOnly', 'Max-Age=34560000', 'Path=/', 'SameSite=Lax'])
    expect(cookie?.name).toBe('boltyard.session_token')
    expect(cookie?.attributes.sort()).toEqual(['HttpOnly', 'Max-Age=604800', 'Path=/', 'SameSite=Lax'])
  })

  test('security 19: with an https PUBLIC_URL, all cookies are Secure, limited to this host, and named with the prefix __Host-', async () => {
    const https = new Server({ env: { ...server.sharedStoreEnv, ROLE: 'api', PUBLIC_URL: 'https://pay.example.com' } })
    await https.launch()
    await https.printed(/^boltyard ready https:\/\/pay.example.com\n/m)
    const { email } = known
    const browser = new Browser(server)
    browser.server = https
    browser.origin = 'https://pay.example.com'
    const cookies = [
      ...cookiesOf(await browser.signIn(email)),
      ...cookiesOf(await browser.post('/auth/passkey/generate-register-options', { password: PASSWORD })),
    ]
    expect(cookies.map(({ name }) => name)).toEqual([
      '__Host-boltyard.session_token',
      '__Host-boltyard.device',
      expect.stringMatching(/^__Host-boltyard\.better-auth-passkey/),
    ])
    // Browsers reject a cookie with this prefix if it has a Domain, a Path other than /, or no Secure attribute.
    for (const { attributes } of cookies) {
      expect(attributes).toEqual(expect.arrayContaining(['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure']))
      expect(attributes.some((attribute) => /^domain/i.test(attribute))).toBe(false)
    }
    expect((await browser.me()).user.email).toBe(email)
    await https.stop()
  })

  test('the session token is in no response body', async () => {
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
      // This field of /me has “token” in its name, but its value is a path or null, never a token.
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
    ['a very long value', () => 'x'.repeat(8_000)],
  ])('with %s it is not valid', async (_title, change) => {
    const { browser } = known
    const cookie = `boltyard.session_token=${change(browser.cookies.get('boltyard.session_token') ?? '')}`
    const answer = await send(server.port, 'GET', '/dashboard/api/me', { headers: { cookie } })
    expect([answer.status, answer.json().user]).toEqual([200, null])
    const refused = await send(server.port, 'GET', '/dashboard/api/auth/list-sessions', { headers: { cookie } })
    expect(errorOf(refused)).toEqual([401, 'unauthorized'])
  })

  test('expires, and is extended when used', async () => {
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

  test('stops working when its session ends, even as a copy', async () => {
    const { browser } = await aPerson()
    const { cookie } = browser
    expect((await browser.post('/auth/sign-out')).status).toBe(200)
    expect([...browser.cookies.keys()]).toEqual(['boltyard.device'])
    const copied = await send(server.port, 'GET', '/dashboard/api/auth/list-sessions', { headers: { cookie } })
    expect(errorOf(copied)).toEqual([401, 'unauthorized'])
  })

  test('is valid at every replica', async () => {
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

describe('signing out', () => {
  test('ends this session and no other', async () => {
    const { browser, email } = await aPerson()
    const other = aBrowser()
    await other.signIn(email)
    expect((await browser.post('/auth/sign-out')).json()).toEqual({ success: true })
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([false, true])
    expect((await browser.post('/auth/sign-out')).status).toBe(200)
  })

  test('everywhere ends all sessions, including this one', async () => {
    const { browser, email } = await aPerson()
    const others = [aBrowser(), aBrowser()]
    for (const other of others) await other.signIn(email)
    const stranger = (await aPerson()).browser
    expect((await browser.post('/auth/revoke-sessions')).status).toBe(200)
    expect([...browser.cookies.keys()]).toEqual(['boltyard.device'])
    for (const one of [browser, ...others]) expect(await isSignedIn(one)).toBe(false)
    expect(await isSignedIn(stranger)).toBe(true)
  })

  test('everywhere else ends all sessions but this one', async () => {
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

  test('a changed password ends every other session, and the old password no longer works', async () => {
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

  test('a password change that fails halfway has no effect', async () => {
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

  test('C47: the activity log says what a person did, and who it was', async () => {
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

describe('a page of another origin', () => {
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

  test('cannot read anything either', async () => {
    const { browser } = known
    const answer = await browser.get('/me', { headers: { origin: 'https://evil.example' } })
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})
