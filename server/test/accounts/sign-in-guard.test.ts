import { readFileSync } from 'node:fs'
import { type ClientRequest, request } from 'node:http'
import { hashPassword } from 'better-auth/crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { isCommonPassword } from '../../src/accounts/people/common-passwords.ts'
import { HashQueue } from '../../src/accounts/people/hash-queue.ts'
import { readConfig } from '../../src/config.ts'
import { isOnThisMachine } from '../../src/http/hooks/session.ts'
import { isLoopback } from '../../src/platform/loopback.ts'
import type { Database } from '../../src/store/db.ts'
import { countAttempt, forgetOldFailures } from '../../src/store/people/sign-in-failures.ts'
import { Browser, newEmail, PASSWORD } from '../support/browser.ts'
import { type Answer, eventually, PROCESS, Server, send, startServer } from '../support/server.ts'

let server: Server
/** Another process on the same database, and so with the same people. */
let replica: Server
let sql: Database

beforeAll(async () => {
  server = await startServer({ command: PROCESS, env: { ROLE: 'api', TRUST_PROXY: '1' } })
  replica = new Server({
    env: { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1', PUBLIC_URL: server.url },
  })
  await replica.launch()
  await replica.printed(/^boltyard ready/m)
  sql = server.sql()
})

const WRONG = 'wrong horse battery'
/** A browser in which nobody has signed in, with its own address. */
function aBrowser(at: Server = server): Browser {
  const browser = new Browser(server)
  browser.server = at
  return browser
}
async function aPerson(): Promise<{ browser: Browser; email: string }> {
  const [browser, email] = [aBrowser(), newEmail()]
  const answer = await browser.signUp(email)
  if (answer.status !== 200) throw new Error(answer.text)
  return { browser, email }
}
const times = <T>(count: number, act: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => act(index))
const shown = ({ status, headers, text }: Answer) => [status, headers['retry-after'], text]
/** CPU time instead of elapsed time, so that other load on the machine does not matter. */
function cpuTicksOf({ child }: Server): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return Number(fields[11]) + Number(fields[12])
}
/** A one-second pause may end before the next request is sent; an hour will not. */
const prolongPauses = () => sql`UPDATE sign_in_failures SET paused_until = now() + interval '1 hour' WHERE failures >= 5`
const endPauses = () => sql`UPDATE sign_in_failures SET paused_until = now()`
/** Sets the failure count of the email or browser that failed last. */
const setFailures = (failures: number) =>
  sql`UPDATE sign_in_failures SET failures = ${failures} WHERE forget_at = (SELECT max(forget_at) FROM sign_in_failures)`
/** Only the first and the last failure are real, because each attempt hashes a password, which is slow. */
async function failFiveTimes(fail: (time: number) => Promise<Answer>, status = 401): Promise<void> {
  expect((await fail(1)).status).toBe(status)
  await setFailures(4)
  expect((await fail(5)).status).toBe(status)
}
/** Sets the count of an address, and extends its minute so that it cannot end before a slow machine has made all attempts. */
const prolongMinute = (address: string, hits: number) =>
  sql`UPDATE rate_limits SET hits = ${hits}, resets_at = now() + interval '1 hour' WHERE key = ${`sign-in address ${address}`}`

describe('C44: guessing passwords', () => {
  test('C44: from the 21st sign-in per address and minute, no password is hashed, not even the right one', async () => {
    const { email } = await aPerson()
    const from = { 'x-forwarded-for': '192.0.2.1' }
    await aBrowser().signIn(newEmail(), WRONG, from)
    await prolongMinute('192.0.2.1', 15)
    const start = cpuTicksOf(server)
    for (let index = 0; index < 5; index++) expect((await aBrowser().signIn(newEmail(), WRONG, from)).status).toBe(401)
    const hashed = cpuTicksOf(server) - start
    for (let index = 0; index < 200; index++) {
      const answer = await aBrowser().signIn(email, index === 199 ? PASSWORD : WRONG, from)
      expect([answer.status, answer.json().error.code]).toEqual([429, 'rate_limited'])
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    }
    const refused = cpuTicksOf(server) - start - hashed
    expect(refused / 200, `CPU ticks: 5 hashed ${hashed}, 200 refused ${refused}`).toBeLessThan(hashed / 5 / 4)
    // Other addresses are not refused, and none of the 200 refused guesses counts as a failure of this email.
    expect((await aBrowser().signIn(email)).status).toBe(200)
  })

  test('C44: after 5 failures an email is paused, from 1 s to 15 min; an unknown email gets the same answer', async () => {
    const { email } = await aPerson()
    const tryTo = async (address: string) => {
      const [answers, pauses]: [unknown[], number[]] = [[], []]
      for (const failure of [1, 4, 5, 6, 14, 15, 16]) {
        await endPauses()
        if (failure > 1) await setFailures(failure - 1)
        answers.push(shown(await aBrowser().signIn(address, WRONG)))
        // The service sets both times in one statement, so their difference does not depend on the speed of the machine.
        const [row] = await sql<{ seconds: number }[]>`
          SELECT greatest(0, extract(epoch FROM paused_until - forget_at + interval '1 day'))::float8 AS seconds
          FROM sign_in_failures ORDER BY forget_at DESC LIMIT 1`
        pauses.push(row?.seconds ?? -1)
      }
      const paused = await aBrowser().signIn(address, WRONG)
      answers.push([paused.status, paused.text.replace(/\d+/g, 'N')])
      expect(Number(paused.headers['retry-after'])).toBeGreaterThan(600)
      return { answers, pauses }
    }
    const [known, unknown] = [await tryTo(email), await tryTo(`nobody-${email}`)]
    expect(known).toEqual(unknown)
    expect(known.pauses).toEqual([0, 0, 1, 2, 512, 900, 900])
    expect(known.answers).toEqual([
      ...times(7, () => [401, undefined, '{"error":{"code":"unauthorized","message":"Wrong email address or password."}}']),
      [429, '{"error":{"code":"rate_limited","message":"Too many attempts. Try again in N seconds."}}'],
    ])
  })

  test('C44: the right password is refused during the pause and accepted after it; then the count starts again', async () => {
    const { email } = await aPerson()
    await failFiveTimes(() => aBrowser().signIn(email, WRONG))
    await prolongPauses()
    expect((await aBrowser().signIn(email)).status).toBe(429)
    await endPauses()
    expect((await aBrowser().signIn(email)).status).toBe(200)
    for (let failure = 1; failure <= 5; failure++) expect((await aBrowser().signIn(email, WRONG)).status).toBe(401)
  })

  test('C44: of fifty concurrent guesses, all are counted before a password is tried, so only one is tried', async () => {
    const { email } = await aPerson()
    expect((await aBrowser().signIn(email, WRONG)).status).toBe(401)
    await sql`UPDATE sign_in_failures SET failures = 14, paused_until = now() WHERE failures = 1`
    const answers = await Promise.all(times(50, () => aBrowser().signIn(email, WRONG)))
    expect(answers.map(({ status }) => status).sort()).toEqual([401, ...times(49, () => 429)])
  })

  test('C44: strangers do not lock a person out: a browser that signed in before has its own count', async () => {
    const { browser, email } = await aPerson()
    await browser.post('/auth/sign-out')
    await failFiveTimes(() => aBrowser().signIn(email, WRONG))
    await prolongPauses()
    expect((await aBrowser().signIn(email)).status).toBe(429)
    // The known browser can sign in, even from an address whose limit strangers have used up.
    const crowded = { 'x-forwarded-for': '192.0.2.2' }
    await sql`INSERT INTO rate_limits VALUES ('sign-in address 192.0.2.2', 1000, now() + interval '1 hour')`
    expect((await browser.signIn(email, PASSWORD, crowded)).status).toBe(200)
    // The owner's success does not give the strangers five more guesses.
    expect((await aBrowser().signIn(email)).status).toBe(429)
    // The browser has its own count, with the same limit.
    await failFiveTimes(() => browser.signIn(email, WRONG))
    await prolongPauses()
    expect((await browser.signIn(email, WRONG)).status).toBe(429)
    // Neither another person's device cookie nor a made-up one makes the browser known.
    const other = await aPerson()
    await failFiveTimes(() => aBrowser().signIn(other.email, WRONG))
    await prolongPauses()
    expect((await browser.signIn(other.email)).status).toBe(429)
    const forger = aBrowser()
    forger.cookies.set('boltyard.device', `${'A'.repeat(22)}.${'A'.repeat(43)}`)
    expect((await forger.signIn(other.email)).status).toBe(429)
    expect((await other.browser.signIn(other.email)).status).toBe(200)
  })

  test('C44: known browsers of one person share a limit, so no one gets more attempts by making browsers known', async () => {
    const { email } = await aPerson()
    const browsers = [aBrowser(), aBrowser()]
    for (const browser of browsers) expect((await browser.signIn(email)).status).toBe(200)
    await sql`INSERT INTO rate_limits VALUES (${`sign-in known ${email}`}, 20, now() + interval '1 hour')`
    for (const browser of browsers) expect((await browser.signIn(email)).status).toBe(429)
    // Other people and other browsers of the same person are not affected.
    const other = await aPerson()
    expect((await other.browser.signIn(other.email)).status).toBe(200)
    expect((await aBrowser().signIn(email)).status).toBe(200)
  })

  test('C44: a sign-in link works during the pause', async () => {
    const { browser, email } = await aPerson()
    const { account } = await browser.me()
    await failFiveTimes(() => aBrowser().signIn(email, WRONG))
    await prolongPauses()
    expect((await aBrowser().signIn(email)).status).toBe(429)
    const { url } = (await server.operator('POST', `/accounts/${account.id}/sign-in-link`)).json()
    const elsewhere = aBrowser()
    expect((await elsewhere.post('/link/accept', { token: url.split('#')[1] })).status).toBe(200)
    // The link also makes this a known browser.
    expect((await elsewhere.signIn(email)).status).toBe(200)
  })

  test('C44: all processes on one database share the counts of addresses and emails', async () => {
    const { email } = await aPerson()
    const both = (index: number): Browser => aBrowser(index % 2 === 0 ? server : replica)
    await failFiveTimes((time) => both(time === 1 ? 0 : 1).signIn(email, WRONG))
    await prolongPauses()
    for (const index of [0, 1]) expect((await both(index).signIn(email)).status).toBe(429)
    const from = { 'x-forwarded-for': '192.0.2.3' }
    await both(0).signIn(newEmail(), WRONG, from)
    await prolongMinute('192.0.2.3', 18)
    for (const index of [0, 1]) expect((await both(index).signIn(newEmail(), WRONG, from)).status).toBe(401)
    for (const index of [0, 1]) expect((await both(index).signIn(newEmail(), WRONG, from)).status).toBe(429)
  })

  test('C44: with a stolen session, the current password cannot be guessed either; strangers cannot pause its owner', async () => {
    const { browser, email } = await aPerson()
    await failFiveTimes(() => aBrowser().signIn(email, WRONG))
    await prolongPauses()
    const change = (currentPassword: string) =>
      browser.post('/auth/change-password', { currentPassword, newPassword: 'their horse battery' })
    await failFiveTimes(async () => {
      const answer = await change(WRONG)
      expect(answer.json().error.message).toBe('The current password is incorrect.')
      return answer
    }, 400)
    await prolongPauses()
    expect((await change(PASSWORD)).status).toBe(429)
    expect((await browser.me()).user.email).toBe(email)
    await endPauses()
    expect((await change(PASSWORD)).status).toBe(200)
  })

  test('C44: counts are deleted after a day, and beyond the limit those with the fewest failures go first', async () => {
    await sql`DELETE FROM sign_in_failures`
    await sql`
      INSERT INTO sign_in_failures (key, failures, paused_until, forget_at)
      SELECT decode(lpad(n::text, 4, '0'), 'hex'), CASE WHEN n = 7 THEN 9 ELSE 1 END, now(), now() + n * interval '1 minute'
      FROM generate_series(0, 20) n`
    await sql`UPDATE sign_in_failures SET forget_at = now() - interval '1 second' WHERE key = decode('0020', 'hex')`
    await forgetOldFailures(sql, 3)
    const rows = await sql<{ key: string }[]>`SELECT encode(key, 'hex') AS key FROM sign_in_failures ORDER BY key`
    expect(rows.map(({ key }) => key)).toEqual(['0007', '0018', '0019'])
  })

  test('C44: the table of failures contains no email and no attempted password', async () => {
    const email = newEmail()
    await aBrowser().signIn(email, WRONG)
    const rows = await sql<{ row: string }[]>`SELECT f::text AS row FROM sign_in_failures f`
    expect(rows.length).toBeGreaterThan(0)
    for (const secret of [email, WRONG])
      expect(rows.map(({ row }) => row).join()).not.toContain(Buffer.from(secret).toString('hex'))
  })
})

describe('C44: sign-ins at the same time', () => {
  test('C44: an attempt that began before another one for the same email, and is counted after it, is not refused as if there were a pause', async () => {
    const key = Buffer.from('two at once')
    await sql.begin(async (earlier) => {
      await earlier`SELECT now()`
      expect(await countAttempt(sql, key)).toEqual({ pauseMs: 0 })
      expect(await countAttempt(earlier, key)).toEqual({ pauseMs: 0 })
    })
  })
})

describe('C44: the queue for hashing', () => {
  /** A sign-in that its client can abandon. */
  function guess(email: string, address: string): ClientRequest {
    const outgoing = request({
      port: server.port,
      method: 'POST',
      path: '/dashboard/api/auth/sign-in/email',
      headers: { 'content-type': 'application/json', origin: server.url, 'x-forwarded-for': address },
    })
    outgoing.on('error', () => undefined)
    outgoing.end(JSON.stringify({ email, password: WRONG }))
    return outgoing
  }

  test('C44: 120 strangers at 120 addresses do not hold up a known person', async () => {
    const { browser, email } = await aPerson()
    const statuses: (number | undefined)[] = []
    const retryAfter = new Set<unknown>()
    const crowd = times(120, (index) =>
      guess(`crowd-${index}@example.com`, aBrowser().address).on('response', ({ statusCode, headers }) => {
        statuses.push(statusCode)
        if (statusCode === 503) retryAfter.add(headers['retry-after'])
      }),
    )
    // Once more than 30 guesses are counted, the queue is busy: the first guesses are being hashed.
    const counted = async () => (await sql`SELECT 1 FROM sign_in_failures`).length > 30
    await eventually(counted, 'the crowd to arrive')
    const answer = await browser.signIn(email)
    const hashedBefore = statuses.filter((status) => status === 401).length
    expect(answer.status).toBe(200)
    expect(hashedBefore).toBeLessThan(60)
    await eventually(() => statuses.includes(401) && statuses.includes(503), 'some to be hashed and some to be rejected')
    // The test does not need the other guesses to be hashed.
    for (const outgoing of crowd) outgoing.destroy()
    expect(new Set(statuses)).toEqual(new Set([401, 503]))
    expect([...retryAfter]).toEqual(['2'])
    // A rejected attempt was not tried, so it is not a failure.
    const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM sign_in_failures WHERE failures = 0`
    expect(row?.count).toBeGreaterThanOrEqual(statuses.filter((status) => status === 503).length)
  })

  test('C44: the password of a disconnected client is not hashed, and does not count as a failure', async () => {
    // Hashing twenty passwords takes a second. On a busy machine, all may be hashed before the clients disconnect; then twenty more try.
    await eventually(async () => {
      await sql`DELETE FROM sign_in_failures`
      const left = times(20, () => guess(newEmail(), aBrowser().address))
      await eventually(async () => (await sql`SELECT 1 FROM sign_in_failures`).length === 20, 'all of them to be counted')
      for (const outgoing of left) outgoing.destroy()
      const areTakenBack = async () => (await sql`SELECT 1 FROM sign_in_failures WHERE failures = 0`).length > 0
      return eventually(areTakenBack, 'those who waited to be taken back', 10_000).catch(() => false)
    }, 'some to leave before they are hashed')
  })

  test('C44: many concurrent hashes hold no database connections', async () => {
    const crowd = Promise.all(times(12, () => aBrowser().signUp(newEmail())))
    let [isOver, most] = [false, 0]
    void crowd.then(() => {
      isOver = true
    })
    while (!isOver) {
      const [row] = await sql<{ count: number }[]>`
        SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`
      most = Math.max(most, row?.count ?? 0)
    }
    expect((await crowd).map(({ status }) => status)).toEqual(times(12, () => 200))
    expect(most).toBeLessThan(10)
  })

  test('C44: two hashes run at a time, known clients before strangers, each in order of arrival; a hash that fails lets the next one run', async () => {
    const queue = new HashQueue({ maxRunning: 2, maxWaiting: 20 })
    let [inside, most] = [0, 0]
    const order: number[] = []
    const results = await Promise.allSettled(
      times(20, (index) =>
        queue.run({ isKnown: index >= 15, signal: undefined }, async () => {
          most = Math.max(most, ++inside)
          order.push(index)
          await new Promise((resolve) => setTimeout(resolve, 1))
          inside--
          if (index === 3) throw new Error('no')
        }),
      ),
    )
    expect([inside, most]).toEqual([0, 2])
    expect(order).toEqual([0, 1, 15, 16, 17, 18, 19, ...times(13, (index) => index + 2)])
    expect(results.map(({ status }) => status === 'fulfilled')).toEqual(times(20, (index) => index !== 3))
  })

  test('C44: a full queue answers 503; strangers do not use up the places of known clients; a disconnect frees a place', async () => {
    const queue = new HashQueue({ maxRunning: 1, maxWaiting: 2 })
    let release = (): void => undefined
    const running = queue.run({ isKnown: false, signal: undefined }, () => new Promise<void>((resolve) => (release = resolve)))
    const hashed: string[] = []
    const wait = (name: string, isKnown = false, signal?: AbortSignal) =>
      queue.run({ isKnown, signal }, async () => void hashed.push(name))
    const leaving = new AbortController()
    const waiting = [wait('stays'), wait('leaves', false, leaving.signal)]
    await expect(wait('too many')).rejects.toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
    const known = wait('known', true)
    leaving.abort()
    await expect(waiting[1]).rejects.toMatchObject({ status: 503 })
    const late = wait('late')
    await expect(wait('left before', true, AbortSignal.abort())).rejects.toMatchObject({ status: 503 })
    release()
    await Promise.all([running, waiting[0], known, late])
    expect(hashed).toEqual(['known', 'stays', 'late'])
  })
})

describe('C44: new passwords', () => {
  test('C44: common passwords are refused in upper or lower case, wherever a password can be set', async () => {
    for (const password of ['qwertyuiop', '1234567890', 'Password123', 'BASKETBALL'])
      expect(isCommonPassword(password)).toBe(true)
    expect(isCommonPassword('')).toBe(false)
    const { browser } = await aPerson()
    const { url } = (await server.operator('POST', '/invitations')).json()
    const answers = [
      await aBrowser().signUp(newEmail(), 'Password123'),
      await browser.post('/auth/change-password', { currentPassword: PASSWORD, newPassword: 'Password123' }),
      await aBrowser().post('/link/accept', { token: url.split('#')[1], email: newEmail(), password: 'Password123' }),
    ]
    for (const answer of answers)
      expect([answer.status, answer.json().error.message]).toEqual([400, expect.stringMatching(/too common/)])
  })

  test('C44: an existing password that the rules would now refuse still works', async () => {
    const { email } = await aPerson()
    await sql`
      UPDATE people_identities SET password_hash = ${await hashPassword('password')}
      WHERE person_id = (SELECT id FROM people WHERE email = ${email})`
    expect((await aBrowser().signIn(email, 'password')).status).toBe(200)
  })
})

describe('security 13 and 18: strangers who sign up', () => {
  const signUp = (address: string | undefined, email = newEmail()): Promise<Answer> =>
    send(server.port, 'POST', '/dashboard/api/auth/sign-up/email', {
      json: { email, password: PASSWORD },
      headers: { origin: server.url, ...(address ? { 'x-forwarded-for': address } : {}) },
    })

  test('security 18: an address can sign up five times per hour, whether the email is taken or not', async () => {
    const { email } = await aPerson()
    for (let index = 0; index < 5; index++) expect((await signUp('192.0.2.4', email)).status).toBe(400)
    expect((await signUp('192.0.2.4', email)).status).toBe(429)
    expect((await signUp('192.0.2.4')).status).toBe(429)
    expect((await signUp('192.0.2.5')).status).toBe(200)
  })

  test('security 13: sign-ups are unlimited on the developer’s own machine', async () => {
    for (let index = 0; index < 6; index++) expect((await signUp(undefined)).status).toBe(200)
  })

  test('security 13: a proxy on this machine, in front of a public service, is not treated as its owner', () => {
    const at = (env: Record<string, string>, ip: string): boolean =>
      isOnThisMachine(readConfig(env), { ip } as Parameters<typeof isOnThisMachine>[1])
    expect(at({}, '127.0.0.1')).toBe(true)
    expect(at({ PUBLIC_URL: 'https://yard.example', TRUST_PROXY: '1' }, '127.0.0.1')).toBe(false)
    expect(at({}, '192.0.2.6')).toBe(false)
  })

  test.each([
    ['localhost', true],
    ['127.0.0.1', true],
    ['127.1.2.3', true],
    ['::1', true],
    ['[::1]', true],
    ['::ffff:127.0.0.1', true],
    ['127.evil.example', false],
    ['127.0.0.1.evil.example', false],
    ['::ffff:10.0.0.1', false],
    ['10.0.0.1', false],
    ['localhost.evil.example', false],
  ])('security 5: %s is loopback: %s', (host, expected) => {
    expect(isLoopback(host)).toBe(expected)
  })
})
