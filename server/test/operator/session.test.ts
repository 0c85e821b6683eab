import { beforeAll, describe, expect, test } from 'vitest'
import { Browser, cookiesOf, newEmail } from '../support/browser.ts'
import { type Answer, Server, send, startServer } from '../support/server.ts'

const TOKEN = 'an operator token of forty characters ..'.replaceAll(' ', '-')

let server: Server
beforeAll(async () => {
  server = await startServer({
    env: { TRUST_PROXY: '1', OPERATOR_TOKEN: TOKEN, NODE_PRICE_SAT_PER_DAY: '0', REGISTRATION: 'invite' },
  })
})

const signIn = (browser: Browser, token = TOKEN, headers = {}) => browser.post('/operator/session', { token }, headers)
async function operator(on = server): Promise<Browser> {
  const browser = new Browser(on)
  expect((await signIn(browser)).status).toBe(200)
  return browser
}
/** What the operator's pages send to the operator API. */
const call = (
  browser: Browser,
  method: string,
  path: string,
  json?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  send(browser.server.port, method, `/operator/v1${path}`, {
    ...(json === undefined ? {} : { json }),
    headers: { 'x-forwarded-for': browser.address, cookie: browser.cookie, origin: browser.origin, ...headers },
  })
const errorOf = ({ status, json }: Answer): [number, string] => [status, json().error.code]
const session = async (browser: Browser) => (await browser.get('/operator/session')).json()

describe('C86: the session of the operator’s pages', () => {
  test('C86: the token starts a session of two hours, whose cookie opens the operator API and does not contain the token', async () => {
    const browser = new Browser(server)
    expect(await session(browser)).toEqual({ isConfigured: true, isSignedIn: false, expiresAt: null })
    expect(errorOf(await call(browser, 'GET', '/accounts'))).toEqual([401, 'unauthorized'])
    const answer = await signIn(browser, ` ${TOKEN}\n`)
    const { expiresAt } = answer.json()
    expect(answer.json()).toEqual({ isConfigured: true, isSignedIn: true, expiresAt })
    expect(expiresAt - Date.now() / 1000).toBeCloseTo(7200, -2)
    const [cookie] = cookiesOf(answer)
    expect(cookie).toEqual({
      name: 'boltyard.operator',
      value: expect.stringMatching(/^[\w-]{43}$/),
      attributes: ['Path=/', 'HttpOnly', 'SameSite=Strict'],
    })
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(await session(browser)).toEqual(answer.json())
    expect((await call(browser, 'GET', '/accounts')).status).toBe(200)
    expect((await call(browser, 'POST', '/accounts', { name: 'Kiosk' })).status).toBe(201)
    const stored =
      await server.sql()`SELECT encode(cookie_hash, 'escape') AS a, encode(token_mac, 'escape') AS b FROM operator_sessions`
    expect(JSON.stringify(stored)).not.toContain(cookie?.value)
    expect(JSON.stringify(stored)).not.toContain(TOKEN)
    expect(server.stderr).toContain('the operator signed in')
    expect(server.stderr).not.toContain(TOKEN)
  })

  test('C86: with a session, a change is only accepted from the dashboard’s origin, and as JSON', async () => {
    const browser = await operator()
    const change = (headers: Record<string, string>) => call(browser, 'POST', '/accounts', { name: 'x' }, headers)
    for (const origin of ['https://evil.example', 'null', ''])
      expect([origin, ...errorOf(await change({ origin }))]).toEqual([origin, 401, 'unauthorized'])
    expect(errorOf(await change({ 'content-type': 'text/plain' }))).toEqual([401, 'unauthorized'])
    expect((await change({})).status).toBe(201)
    // Another site can neither sign this browser in nor out.
    const origin = 'https://evil.example'
    expect(errorOf(await signIn(browser, TOKEN, { origin }))).toEqual([401, 'unauthorized'])
    const headers = { cookie: browser.cookie, origin }
    const signOut = await send(server.port, 'DELETE', '/dashboard/api/operator/session', { headers })
    expect(errorOf(signOut)).toEqual([401, 'unauthorized'])
    expect((await session(browser)).isSignedIn).toBe(true)
  })

  test('C86: a request with an Authorization header is judged by that header alone', async () => {
    const browser = await operator()
    expect(errorOf(await call(browser, 'GET', '/accounts', undefined, { authorization: 'Bearer x' }))).toEqual([
      401,
      'unauthorized',
    ])
    const foreign = { authorization: `Bearer ${TOKEN}`, origin: 'https://evil.example' }
    expect((await call(browser, 'POST', '/accounts', { name: 'x' }, foreign)).status).toBe(201)
  })

  test('C86: signing out ends the session on the server, and only that one', async () => {
    const [one, other] = [await operator(), await operator()]
    const kept = one.cookie
    const answer = await send(server.port, 'DELETE', '/dashboard/api/operator/session', {
      headers: { cookie: kept, origin: one.origin },
    })
    expect([answer.status, cookiesOf(answer)[0]?.attributes[0]]).toEqual([204, 'Max-Age=0'])
    expect(errorOf(await call(one, 'GET', '/accounts'))).toEqual([401, 'unauthorized'])
    expect((await call(other, 'GET', '/accounts')).status).toBe(200)
  })

  test('C86: a session ends two hours after its start, and when the token changes', async () => {
    const browser = await operator()
    const env = { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1', PUBLIC_URL: server.url }
    const same = new Server({ env: { ...env, OPERATOR_TOKEN: TOKEN } })
    const changed = new Server({ env: { ...env, OPERATOR_TOKEN: `${TOKEN}2` } })
    for (const one of [same, changed]) {
      await one.launch()
      await one.printed(/^boltyard ready/m)
    }
    const at = (on: Server) => Object.assign(Object.create(browser), { server: on }) as Browser
    expect((await call(at(same), 'GET', '/accounts')).status).toBe(200)
    expect(errorOf(await call(at(changed), 'GET', '/accounts'))).toEqual([401, 'unauthorized'])
    await server.sql()`UPDATE operator_sessions SET expires_at = now()`
    expect(errorOf(await call(browser, 'GET', '/accounts'))).toEqual([401, 'unauthorized'])
    expect((await session(browser)).isSignedIn).toBe(false)
  })

  test('C86: after five wrong tokens from an address, attempts from there have to wait; others do not', async () => {
    const stranger = new Browser(server)
    const statuses: number[] = []
    for (let attempt = 0; attempt < 7; attempt++) statuses.push((await signIn(stranger, `${TOKEN}x`)).status)
    expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401])
    expect(statuses).toContain(429)
    const paused = await signIn(stranger)
    expect([paused.status, Number(paused.headers['retry-after'])]).toEqual([429, expect.any(Number)])
    await operator()
  })

  test('C86: what the operator does through the pages is in the account’s activity, as done by the operator', async () => {
    const browser = await operator()
    const { id } = (await call(browser, 'POST', '/accounts', { name: 'Ann' })).json()
    await call(browser, 'POST', `/accounts/${id}/credit`, { amountSat: 5, reason: 'Sorry' })
    expect((await call(browser, 'POST', `/accounts/${id}/sign-in-link`, {})).status).toBe(201)
    const { activity } = (await call(browser, 'GET', `/accounts/${id}/activity`)).json()
    expect(activity.map(({ actor, action }: { actor: string; action: string }) => `${actor} ${action}`)).toEqual([
      'operator link.created',
      'operator credit.added',
      'operator account.created',
    ])
    expect((await call(browser, 'POST', '/invitations', { email: newEmail() })).status).toBe(201)
    expect(server.stderr).toContain('the operator created an invitation')
  })

  test('C86: without an operator token, the session is shown as not configured, and no one can sign in', async () => {
    const off = new Server({
      env: { ...server.sharedStoreEnv, ROLE: 'api', HOST: '127.0.0.1', PUBLIC_URL: 'https://pay.example' },
    })
    await off.launch()
    await off.printed(/^boltyard ready/m)
    const headers = { host: 'pay.example', origin: 'https://pay.example' }
    const asked = await off.send('GET', '/dashboard/api/operator/session', { headers })
    expect(asked.json()).toEqual({ isConfigured: false, isSignedIn: false, expiresAt: null })
    const tried = await off.send('POST', '/dashboard/api/operator/session', { headers, json: { token: TOKEN } })
    expect(errorOf(tried)).toEqual([404, 'not_found'])
  })
})
