import { beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/db.ts'
import { Browser, newEmail, PASSWORD } from '../support/browser.ts'
import { type Answer, type Server, startServer } from '../support/server.ts'
import { turnOn } from './authenticator.ts'
import { SoftwarePasskey } from './software-passkey.ts'

let server: Server
let sql: Database

beforeAll(async () => {
  server = await startServer({ env: { ROLE: 'api', TRUST_PROXY: '1' } })
  sql = server.sql()
})

type Proof = { password?: string; code?: string }
const WRONG = 'wrong horse battery'
const refusalOf = (answer: Answer): unknown[] => [answer.status, answer.json().error.reason]
const begin = (browser: Browser, proof: Proof = {}) => browser.post('/auth/passkey/generate-register-options', proof)
const remove = (browser: Browser, id: string, proof: Proof = {}) => browser.post('/auth/passkey/delete-passkey', { id, ...proof })
const passkeysOf = async (browser: Browser): Promise<{ id: string }[]> =>
  (await browser.get('/auth/passkey/list-user-passkeys')).json().passkeys
async function aPerson() {
  const [browser, email] = [new Browser(server), newEmail()]
  expect((await browser.signUp(email)).status).toBe(200)
  return { browser, email }
}
async function addPasskey(browser: Browser, proof: Proof): Promise<SoftwarePasskey> {
  const passkey = new SoftwarePasskey()
  const begun = await begin(browser, proof)
  expect([begun.status, begun.text]).toEqual([200, expect.stringContaining('challenge')])
  const added = await passkey.register(browser, begun.json().challenge)
  expect([added.status, added.text]).toEqual([200, expect.stringContaining('Software')])
  return passkey
}

test('a passkey that cannot be verified gets the same answer as an unknown one, which says what to do', async () => {
  const passkey = await addPasskey((await aPerson()).browser, { password: PASSWORD })
  const known = await passkey.signIn(new Browser(server), 'AAAA')
  const unknown = await new SoftwarePasskey().signIn(new Browser(server))
  expect([known.status, known.json().error.code]).toEqual([401, 'unauthorized'])
  expect(known.json().error.message).toMatch(/not accepted.* Try another passkey, or sign in with your password\.$/)
  expect([unknown.status, unknown.json().error]).toEqual([known.status, known.json().error])
})

describe('C88: adding and removing passkeys', () => {
  test('C88: a session alone cannot add or remove a passkey: the password or a recent passkey is needed', async () => {
    const { browser, email } = await aPerson()
    expect(refusalOf(await begin(browser))).toEqual([400, 'confirmation_required'])
    expect(refusalOf(await begin(browser, { password: WRONG }))).toEqual([400, 'wrong_password'])
    const passkey = await addPasskey(browser, { password: PASSWORD })
    const [added] = await passkeysOf(browser)
    expect(refusalOf(await remove(browser, added?.id ?? ''))).toEqual([400, 'confirmation_required'])
    expect(refusalOf(await remove(browser, added?.id ?? '', { password: WRONG }))).toEqual([400, 'wrong_password'])

    const other = new Browser(server)
    expect((await passkey.signIn(other)).status).toBe(200)
    expect((await other.me()).user.email).toBe(email)
    await addPasskey(other, {})
    expect((await remove(other, added?.id ?? '')).status).toBe(200)
    expect(await passkeysOf(browser)).toHaveLength(1)
    expect((await passkey.signIn(new Browser(server))).status).toBe(401)
    await sql`UPDATE people_sessions SET created_at = now() - interval '11 minutes'`
    expect(refusalOf(await begin(other))).toEqual([400, 'confirmation_required'])
  })

  test('C88: with two-factor sign-in, both also require a code, which works once', async () => {
    const { browser } = await aPerson()
    const { recoveryCodes } = await turnOn(browser, PASSWORD)
    const [one = '', two = ''] = recoveryCodes
    expect(refusalOf(await begin(browser, { password: PASSWORD }))).toEqual([400, 'code_required'])
    expect(refusalOf(await begin(browser, { code: one }))).toEqual([400, 'confirmation_required'])
    expect(refusalOf(await begin(browser, { password: PASSWORD, code: '000000' }))).toEqual([400, 'wrong_code'])
    const passkey = await addPasskey(browser, { password: PASSWORD, code: one })

    // Signing in with a passkey needs no code, but changing passkeys does.
    const other = new Browser(server)
    expect((await passkey.signIn(other)).status).toBe(200)
    const [added] = await passkeysOf(other)
    expect(refusalOf(await remove(other, added?.id ?? ''))).toEqual([400, 'code_required'])
    expect(refusalOf(await remove(other, added?.id ?? '', { code: one }))).toEqual([400, 'wrong_code'])
    expect(refusalOf(await begin(other))).toEqual([400, 'code_required'])
    expect((await remove(other, added?.id ?? '', { code: two })).status).toBe(200)
  })

  test('C88: a challenge for signing in, or of another person, cannot be used to add a passkey', async () => {
    const { browser } = await aPerson()
    expect((await browser.get('/auth/passkey/generate-register-options')).status).toBe(405)
    const { challenge } = (await browser.get('/auth/passkey/generate-authenticate-options')).json()
    expect((await new SoftwarePasskey().register(browser, challenge)).status).toBe(400)
    // Another person's challenge, which they confirmed with their own password.
    const thief = await aPerson()
    const begun = (await begin(thief.browser, { password: PASSWORD })).json()
    for (const [name, value] of thief.browser.cookies) if (name.includes('passkey')) browser.cookies.set(name, value)
    expect((await new SoftwarePasskey().register(browser, begun.challenge)).status).toBe(400)
    expect(await passkeysOf(browser)).toEqual([])
  })
})
