import { beforeAll, describe, expect, test } from 'vitest'
import { isUserVerified } from '../../src/accounts/people/auth-library.ts'
import { resealTwoFactor, TwoFactor } from '../../src/accounts/people/two-factor.ts'
import { masterKeyOf } from '../../src/platform/secrets.ts'
import type { Database } from '../../src/store/db.ts'
import { CHORES } from '../../src/store/housekeeping.ts'
import { Browser, newEmail, PASSWORD } from '../support/browser.ts'
import { type Answer, Server, startServer } from '../support/server.ts'
import { Authenticator, turnOn } from './authenticator.ts'

let server: Server
/** Another process on the same database. */
let replica: Server
let sql: Database

beforeAll(async () => {
  server = await startServer({ env: { ROLE: 'api', TRUST_PROXY: '1' } })
  const together = { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1', PUBLIC_URL: server.url }
  replica = new Server({ env: together })
  await replica.launch()
  await replica.printed(/^boltyard ready/m)
  sql = server.sql()
})

function aBrowser(at: Server = server): Browser {
  const browser = new Browser(server)
  browser.server = at
  return browser
}
async function aPerson() {
  const [browser, email] = [aBrowser(), newEmail()]
  expect((await browser.signUp(email)).status).toBe(200)
  return { browser, email }
}
async function aCarefulPerson() {
  const person = await aPerson()
  return { ...person, ...(await turnOn(person.browser, PASSWORD)) }
}
const signIn = (browser: Browser, email: string, code?: string, password = PASSWORD): Promise<Answer> =>
  browser.post('/auth/sign-in/email', { email, password, ...(code === undefined ? {} : { code }) })
const refusalOf = (answer: Answer): unknown[] => [answer.status, answer.json().error.reason]
/** As if the last code had been used long ago, so that a test need not wait for the next. */
const forgetSteps = () => sql`UPDATE people_two_factor SET last_step = 0`
const statusOf = async (browser: Browser) => (await browser.get('/security')).json().twoFactor
const actionsOf = async (email: string): Promise<string[]> =>
  (
    await sql<{ action: string }[]>`
      SELECT a.action FROM activity a JOIN people p ON p.id = a.actor WHERE p.email = ${email} ORDER BY a.id`
  ).map(({ action }) => action)

describe('C87: setting it up', () => {
  test('C87: it asks for the password, and is on only after a code; the secret is sealed and never shown again', async () => {
    const { browser, email } = await aPerson()
    expect(refusalOf(await browser.post('/security/two-factor'))).toEqual([400, 'confirmation_required'])
    expect(refusalOf(await browser.post('/security/two-factor', { password: 'wrong horse battery' }))).toEqual([
      400,
      'wrong_password',
    ])
    const { secret, uri } = (await browser.post('/security/two-factor', { password: PASSWORD })).json()
    expect(secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(uri).toContain(`secret=${secret}&`)
    expect(await statusOf(browser)).toEqual({ isOn: false, since: null, recoveryCodesLeft: 0 })
    expect((await signIn(aBrowser(), email)).status).toBe(200)

    const app = new Authenticator(secret)
    expect(refusalOf(await browser.post('/security/two-factor/confirm', { code: app.code(5) }))).toEqual([400, 'wrong_code'])
    const { recoveryCodes } = (await browser.post('/security/two-factor/confirm', { code: app.code() })).json()
    expect(new Set(recoveryCodes).size).toBe(10)
    expect(await statusOf(browser)).toMatchObject({ isOn: true, recoveryCodesLeft: 10 })
    // Beginning again must not replace a secret that is in use.
    expect((await browser.post('/security/two-factor', { password: PASSWORD })).status).toBe(400)
    expect(refusalOf(await signIn(aBrowser(), email))).toEqual([401, 'code_required'])
    expect(await actionsOf(email)).toContain('person.two_factor_enabled')

    const rows = await sql`SELECT t::text AS text FROM people_two_factor t UNION ALL SELECT c::text FROM people_recovery_codes c`
    const stored = rows.map(({ text }) => text).join('\n')
    const hex = (text: string): string => Buffer.from(text).toString('hex')
    for (const value of [secret, ...recoveryCodes, ...recoveryCodes.map((code: string) => code.replaceAll('-', ''))]) {
      expect(stored).not.toContain(value)
      expect(stored).not.toContain(hex(value))
    }
    expect(server.stdout + server.stderr).not.toContain(secret)
  })

  test('C87: only the newest of two set-ups can be confirmed, and only within an hour', async () => {
    const { browser } = await aPerson()
    const first = new Authenticator((await browser.post('/security/two-factor', { password: PASSWORD })).json().secret)
    const second = new Authenticator((await browser.post('/security/two-factor', { password: PASSWORD })).json().secret)
    expect((await browser.post('/security/two-factor/confirm', { code: first.code() })).status).toBe(400)
    await sql`UPDATE people_two_factor SET created_at = now() - interval '61 minutes' WHERE confirmed_at IS NULL`
    expect((await browser.post('/security/two-factor/confirm', { code: second.code() })).json().error.message).toMatch(
      /Start again/,
    )
  })
})

describe('C87: signing in', () => {
  test('C87: with the password and a code; a wrong password is refused the same way with and without one', async () => {
    const { email, app } = await aCarefulPerson()
    const browser = aBrowser()
    const wrong = await signIn(browser, email, undefined, 'wrong horse battery')
    const both = await signIn(browser, email, app.code(1), 'wrong horse battery')
    expect([wrong.status, wrong.json().error.message]).toEqual([both.status, both.json().error.message])
    expect(refusalOf(await signIn(browser, email))).toEqual([401, 'code_required'])
    expect(refusalOf(await signIn(browser, email, '000000'))).toEqual([401, 'wrong_code'])
    expect((await browser.me()).user).toBeNull()
    // The code is typed with a space, as apps show it. The attempt with a wrong password above did not use it up.
    expect((await signIn(browser, email, app.code(1).replace(/...$/, ' $&'))).status).toBe(200)
    expect((await browser.me()).user.email).toBe(email)
  })

  test('C87: the code that confirmed the set-up cannot be used to sign in, nor any code twice', async () => {
    const { email, app, firstCode } = await aCarefulPerson()
    expect(refusalOf(await signIn(aBrowser(), email, firstCode))).toEqual([401, 'wrong_code'])
    const code = app.code(1)
    expect((await signIn(aBrowser(), email, code)).status).toBe(200)
    expect(refusalOf(await signIn(aBrowser(), email, code))).toEqual([401, 'wrong_code'])
  })

  test('C87: of concurrent sign-ins with one code at two replicas, exactly one succeeds', async () => {
    const { email, app, recoveryCodes } = await aCarefulPerson()
    for (const code of [app.code(1), recoveryCodes[0]]) {
      const answers = await Promise.all([server, replica, server, replica].map((at) => signIn(aBrowser(at), email, code)))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
      // The refused sign-ins of both rounds together would cause a pause.
      await sql`DELETE FROM sign_in_failures`
    }
  })

  test('C87: each recovery code works once, in any case and without its hyphens, and the rest are counted', async () => {
    const { browser, email, recoveryCodes } = await aCarefulPerson()
    const [one = '', two = ''] = recoveryCodes
    expect((await signIn(aBrowser(), email, one)).status).toBe(200)
    expect(refusalOf(await signIn(aBrowser(), email, one))).toEqual([401, 'wrong_code'])
    expect((await signIn(aBrowser(), email, two.toLowerCase().replaceAll('-', ''))).status).toBe(200)
    expect(await statusOf(browser)).toMatchObject({ isOn: true, recoveryCodesLeft: 8 })
    expect(await actionsOf(email)).toContain('person.recovery_code_used')
  })

  test('C87: another person’s codes do not work', async () => {
    const [ann, bob] = [await aCarefulPerson(), await aCarefulPerson()]
    await forgetSteps()
    for (const code of [ann.app.code(), ann.recoveryCodes[0]])
      expect(refusalOf(await signIn(aBrowser(), bob.email, code))).toEqual([401, 'wrong_code'])
  })

  test('C87: after five wrong codes there is a pause, before anything is hashed and for every password; a known browser has its own', async () => {
    const { browser, email, app } = await aCarefulPerson()
    const stranger = aBrowser()
    for (let time = 1; time <= 5; time++) expect((await signIn(stranger, email, '000000')).status).toBe(401)
    await sql`UPDATE sign_in_failures SET paused_until = now() + interval '1 hour' WHERE failures >= 5`
    for (const password of [PASSWORD, 'wrong horse battery'])
      expect((await signIn(stranger, email, app.code(1), password)).status).toBe(429)
    // The pause is for attempts with a code. Without a code, the password alone is still checked, and no session begins.
    expect(refusalOf(await signIn(stranger, email))).toEqual([401, 'code_required'])
    expect((await signIn(browser, email, app.code(1))).status).toBe(200)
    await sql`DELETE FROM sign_in_failures`
  })

  test('C87: wrong codes of all known browsers are counted together, so that many of them give no more guesses', async () => {
    const { email } = await aPerson()
    const known = Array.from({ length: 6 }, () => aBrowser())
    for (const one of known) expect((await signIn(one, email)).status).toBe(200)
    const [owner] = known
    await turnOn(owner as Browser, PASSWORD)
    for (const one of known.slice(1)) expect(refusalOf(await signIn(one, email, '000000'))).toEqual([401, 'wrong_code'])
    await sql`UPDATE sign_in_failures SET paused_until = now() + interval '1 hour' WHERE failures >= 5`
    expect((await signIn(known[1] as Browser, email, '000000')).status).toBe(429)
    expect((await signIn(owner as Browser, email, '000000')).status).toBe(429)
    await sql`DELETE FROM sign_in_failures`
  })

  test('C87: of many guesses at once, only the first few are judged', async () => {
    const { browser } = await aCarefulPerson()
    const startedMs = Date.now()
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => browser.post('/security/two-factor/off', { code: String(100_000 + index) })),
    )
    const seconds = (Date.now() - startedMs) / 1000
    // The fifth wrong code causes a pause of one second, and each further one a pause twice as long. On a busy machine, some of
    // these pauses end during the test.
    const pausesOver = Math.floor(Math.log2(1 + seconds))
    expect(answers.filter(({ status }) => status === 400).length).toBeLessThanOrEqual(5 + pausesOver)
    expect(await statusOf(browser)).toMatchObject({ isOn: true })
  })
})

// Chromium’s virtual authenticators do not sign in without verification, so this test writes the flags itself.
test('C87: a passkey counts as both factors only if it says that it verified its user', () => {
  const flagged = (flags: number) => {
    const authenticatorData = Buffer.concat([Buffer.alloc(32), Buffer.from([flags]), Buffer.alloc(4)]).toString('base64url')
    return isUserVerified({ response: { id: 'x', response: { authenticatorData } } })
  }
  expect([0x05, 0x1d].map(flagged)).toEqual([true, true])
  expect([0x01, 0x00, 0x19].map(flagged)).toEqual([false, false, false])
  for (const body of [undefined, {}, { response: {} }, { response: { response: { authenticatorData: 'BA' } } }])
    expect(isUserVerified(body)).toBe(false)
})

test('C87: a set-up that was never finished is removed after a day; one that is on stays', async () => {
  const [begun, careful] = [await aPerson(), await aCarefulPerson()]
  await begun.browser.post('/security/two-factor', { password: PASSWORD })
  const rowsOf = ({ email }: { email: string }) =>
    sql`SELECT 1 FROM people_two_factor t JOIN people p ON p.id = t.person_id WHERE p.email = ${email}`
  const tidy = () => CHORES['unfinished set-ups of two-factor sign-in']?.(sql, { isStopping: () => false, eventRetentionDays: 1 })
  await tidy()
  expect(await rowsOf(begun)).toHaveLength(1)
  await sql`UPDATE people_two_factor SET created_at = now() - interval '25 hours'`
  await tidy()
  expect([(await rowsOf(begun)).length, (await rowsOf(careful)).length]).toEqual([0, 1])
})

describe('C87: changing it', () => {
  test('C87: turning it off and new recovery codes ask for a code; the old recovery codes are void', async () => {
    const { browser, email, app, recoveryCodes } = await aCarefulPerson()
    expect(refusalOf(await browser.post('/security/recovery-codes', { code: '000000' }))).toEqual([400, 'wrong_code'])
    const fresh = (await browser.post('/security/recovery-codes', { code: app.code(1) })).json().recoveryCodes
    expect(refusalOf(await signIn(aBrowser(), email, recoveryCodes[3]))).toEqual([401, 'wrong_code'])
    expect(refusalOf(await browser.post('/security/two-factor/off', { code: recoveryCodes[3] }))).toEqual([400, 'wrong_code'])
    expect(await statusOf(browser)).toMatchObject({ isOn: true, recoveryCodesLeft: 10 })
    expect((await browser.post('/security/two-factor/off', { code: fresh[0] })).status).toBe(204)
    expect(await statusOf(browser)).toEqual({ isOn: false, since: null, recoveryCodesLeft: 0 })
    expect((await signIn(aBrowser(), email)).status).toBe(200)
    expect(await sql`SELECT 1 FROM people_recovery_codes c JOIN people p ON p.id = c.person_id WHERE p.email = ${email}`).toEqual(
      [],
    )
    expect(await actionsOf(email)).toEqual(
      expect.arrayContaining(['person.recovery_codes_replaced', 'person.two_factor_disabled']),
    )
  })

  test('C87: the operator’s sign-in link turns it off, and says so before it is used', async () => {
    const { email } = await aCarefulPerson()
    const linkFor = async (address: string): Promise<string> =>
      new URL((await server.operator('POST', '/sign-in-links', { json: { email: address } })).json().url).hash.slice(1)
    const token = await linkFor(email)
    const browser = aBrowser()
    expect((await browser.post('/link/inspect', { token })).json()).toMatchObject({ kind: 'sign-in', turnsOffTwoFactor: true })
    expect((await browser.post('/link/accept', { token })).status).toBe(200)
    expect(await statusOf(browser)).toMatchObject({ isOn: false })
    expect(await actionsOf(email)).toContain('person.two_factor_disabled')
    const other = await linkFor(email)
    expect((await browser.post('/link/inspect', { token: other })).json()).toMatchObject({ turnsOffTwoFactor: false })
  })

  test('C87: a new master key reseals the secrets, and codes go on working', async () => {
    const { email } = await aPerson()
    const [person] = await sql<{ id: string }[]>`SELECT id FROM people WHERE email = ${email}`
    const id = person?.id ?? ''
    const [old, next] = [masterKeyOf(Buffer.alloc(32, 1)), masterKeyOf(Buffer.alloc(32, 2))]
    const before = new TwoFactor({ sql, masterKeys: [old] })
    const app = new Authenticator((await before.begin(id, email)).secret)
    await before.confirm(id, app.code())
    expect(await resealTwoFactor(sql, next, old)).toBe(1)
    const after = new TwoFactor({ sql, masterKeys: [next] })
    expect(await after.judge(id, { code: app.code(1), isPasskey: false })).toBe('passed')
    expect(await after.judge(id, { code: undefined, isPasskey: true })).toBe('unverified passkey')
    await sql`DELETE FROM people_two_factor WHERE person_id = ${id}`
  })
})
