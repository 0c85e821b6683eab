import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { NOWHERE } from '../../server/test/support/payments.ts'
import { home, inHome, run } from './harness.ts'
import { nowSeconds } from './invoices.ts'
import {
  challengeOf,
  couldNot,
  FOUND_PAID,
  failedAt,
  HASH,
  inOrder,
  NOT_FOUND,
  PENDING,
  PREIMAGE,
  type Reply,
  Scripted,
  SENT,
} from './scripted.ts'

/** A paid purchase is never lost, and nothing is called unpaid unless that is certain. The wallet responds as phoenixd does. */

const GOODS = 'Sunny\n'
const CREDENTIAL = `L402 AgE=:${PREIMAGE}`
const STATE = `${home}/.local/state/boltyard/paid`
const FILE = inHome('purchase.json')
let shop: Scripted
let node: Scripted
let ask: () => Reply
let payInvoice: () => Reply
let toCredential: () => Reply
let challenge: string

beforeAll(async () => {
  writeFileSync(inHome('password'), 'secret')
  ;[shop, node] = await Promise.all([new Scripted().open(), new Scripted().open()])
  shop.reply = ({ authorization }) =>
    authorization === undefined ? { status: 402, headers: { 'www-authenticate': challenge } } : toCredential()
  node.reply = ({ method }) => (method === 'POST' ? payInvoice() : ask())
})
beforeEach(() => {
  for (const path of [STATE, FILE]) rmSync(path, { recursive: true, force: true })
  shop.got.length = node.got.length = 0
  ask = inOrder(NOT_FOUND)
  payInvoice = inOrder(SENT)
  toCredential = inOrder({ body: GOODS })
  challenge = challengeOf().challenge
})

const pays = (...more: string[]): string[] => [
  ...['pay', `${shop.url}/weather`, '--password-file', inHome('password')],
  ...(more.includes('--node-url') ? more : ['--node-url', node.url, ...more]),
]
const resumes = (...more: string[]): string[] => pays('--credential-file', FILE, ...more)
const payments = (): number => node.got.filter(({ method }) => method === 'POST').length
const presented = (): (string | undefined)[] => shop.got.flatMap(({ authorization }) => authorization ?? [])
const read = (path: string): any => JSON.parse(readFileSync(path, 'utf8'))

/** Writes the file that an interrupted run leaves. */
function leave(
  path: string,
  {
    timestamp,
    ...more
  }: {
    timestamp?: number
    credential?: string
    nodeUrl?: string
    challenge?: string
    header?: string
    paymentHash?: string
  } = {},
): object {
  mkdirSync(STATE, { recursive: true })
  const left = {
    url: `${shop.url}/weather`,
    nodeUrl: node.url,
    ...challengeOf(HASH, timestamp),
    paymentHash: HASH,
    amountSat: 10,
    ...more,
  }
  writeFileSync(path, JSON.stringify(left), { mode: 0o600 })
  return left
}

test('a payment that the node does not know may still be made: the purchase is kept, and completed without a second payment', async () => {
  payInvoice = inOrder({ status: 502, body: '{"error":{"code":"payment_service_unavailable"}}' })
  const { code, error } = await run(pays())
  expect([code, error().code, error().outcome]).toEqual([3, 'payment_unknown', 'unknown'])
  expect(error().message).toBe(
    'The node does not know the payment, but may still make it: for example, it may be waiting for the block height.',
  )
  expect(error().next).toContain(`boltyard pay ${shop.url}/weather --credential-file ${error().credentialFile}`)
  ask = inOrder(FOUND_PAID)
  expect(await run(pays('--credential-file', error().credentialFile))).toMatchObject({ code: 0, stdout: GOODS })
  expect([payments(), presented()]).toEqual([1, [CREDENTIAL]])
})

describe('a resumed purchase is not removed because this run failed', () => {
  test.each<[string, string, Reply]>([
    ['the password is wrong', 'node_password', { status: 401 }],
    ['the request is refused', 'payment_refused', { status: 404, body: '{"error":{"code":"node_not_found"}}' }],
    ['the payment fails', 'payment_failed', couldNot('not enough funds')],
  ])('%s', async (_, code, reply) => {
    const left = leave(FILE)
    payInvoice = inOrder(reply)
    const { error } = await run(resumes())
    expect(error()).toMatchObject({ code, outcome: 'unknown', credentialFile: FILE, next: expect.stringContaining(FILE) })
    expect(error().message).toContain('This run paid nothing.')
    expect(read(FILE)).toEqual(left)
  })

  test('the node is unreachable, or the price is above --max-sat', async () => {
    leave(FILE, { nodeUrl: NOWHERE })
    expect((await run(resumes('--node-url', NOWHERE))).error()).toMatchObject({ code: 'node_unreachable', outcome: 'unknown' })
    leave(FILE)
    const { code, error } = await run(resumes('--max-sat', '9'))
    expect([code, error().code, error().message]).toEqual([
      2,
      'too_expensive',
      'The price is 10 sat, but --max-sat is 9. This run paid nothing.',
    ])
    expect([existsSync(FILE), payments()]).toEqual([true, 0])
  })

  test('a new purchase is removed', async () => {
    payInvoice = inOrder(couldNot('not enough funds'))
    expect((await run(pays())).error()).toMatchObject({
      code: 'payment_failed',
      message: 'The node could not pay: not enough funds. This run paid nothing.',
    })
    expect(readdirSync(STATE)).toEqual([])
  })
})

test.each([202, 302])('HTTP %i is not a refusal: the node is asked', async (status) => {
  payInvoice = inOrder({ status })
  ask = inOrder(NOT_FOUND, PENDING, FOUND_PAID)
  expect(await run(pays())).toMatchObject({ code: 0, stdout: GOODS })
  expect(payments()).toBe(1)
})

describe('a failed attempt', () => {
  test('from before this payment says nothing about it', async () => {
    payInvoice = inOrder('cut')
    ask = inOrder(failedAt(1), failedAt(1), failedAt(1), FOUND_PAID)
    expect(await run(pays())).toMatchObject({ code: 0, stdout: GOODS })
  })

  test.each([
    ['a new one', [NOT_FOUND, failedAt(2)]],
    ['a later one', [failedAt(1), failedAt(1), failedAt(2)]],
  ])('%s does', async (_, replies) => {
    payInvoice = inOrder('cut')
    ask = inOrder(...replies)
    expect((await run(pays())).error()).toMatchObject({
      code: 'payment_failed',
      message: 'The payment failed. This run paid nothing.',
    })
  })
})

test('a payment that is in progress is waited for, not made again', async () => {
  ask = inOrder(PENDING, PENDING, FOUND_PAID)
  expect(await run(pays())).toMatchObject({ code: 0, stdout: GOODS })
  expect(payments()).toBe(0)
})

describe('the server repeats an invoice', () => {
  const place = `${STATE}/${HASH}.json`

  test('that was paid: its credential is presented', async () => {
    leave(place, { credential: 'L402 old:credential' })
    expect(await run(pays())).toMatchObject({ code: 0, stdout: GOODS })
    expect([presented(), payments(), existsSync(place)]).toEqual([['L402 old:credential'], 0, false])
  })

  test('and refuses its credential: the file is kept, and the advice does not say to remove it', async () => {
    const left = leave(place, { credential: 'L402 old:credential' })
    toCredential = inOrder({ status: 402, headers: { 'www-authenticate': challenge } })
    const { code, error } = await run(pays())
    expect([code, error().code, read(place)]).toEqual([8, 'credential_refused', left])
    expect(error().next).toBe(
      'It may have been used, have expired, or not be accepted yet. If you never got what you paid for, keep the file and ask the seller. To pay again, name another file.',
    )
  })

  test('that another node was asked to pay: nothing is overwritten', async () => {
    const left = leave(place, { nodeUrl: NOWHERE })
    expect((await run(pays())).code).toBe(2)
    expect([read(place), payments()]).toEqual([left, 0])
  })

  test('but with another invoice: nothing is paid', async () => {
    const left = leave(place)
    challenge = challengeOf(HASH, Math.floor(Date.now() / 1000) - 60).challenge
    expect((await run(pays())).code).toBe(2)
    expect([read(place), payments()]).toEqual([left, 0])
  })

  test('to a run that was killed before it stored anything', async () => {
    leave(place)
    writeFileSync(place, '')
    expect(await run(pays())).toMatchObject({ code: 0, stdout: GOODS })
  })
})

describe('an old challenge is replaced', () => {
  const old = (secondsAgo: number): { timestamp: number } => ({ timestamp: Math.floor(Date.now() / 1000) - 3_600 - secondsAgo })

  test.each<[string, number, Reply]>([
    ['its invoice has just expired', 0, NOT_FOUND],
    ['an attempt failed, but another may be waiting', 0, failedAt(1)],
    ['the node does not report anything', 600, { status: 502 }],
    ['something other than the node responds with 404', 600, { status: 404, body: '{"error":{"code":"node_not_found"}}' }],
    ['a load balancer responds with 404', 600, { status: 404, body: '<h1>404 Not Found</h1>' }],
  ])('not if %s: the node may have paid it', async (_, secondsAgo, reply) => {
    const left = leave(FILE, old(secondsAgo))
    ask = inOrder(reply)
    const { code, error } = await run(resumes())
    expect([code, error().code, error().outcome]).toEqual([3, 'payment_unknown', 'unknown'])
    expect([read(FILE), shop.got, payments()]).toEqual([left, [], 0])
  })

  test.each<[string, number, Reply]>([
    ['and the node reports that it failed', 120, failedAt(1)],
    ['and the node does not know it', 120, NOT_FOUND],
  ])('a minute after its expiry %s', async (_, secondsAgo, reply) => {
    leave(FILE, old(secondsAgo))
    ask = inOrder(reply)
    // The new invoice shows the seller's clock, so it is made now: the previous tests may have taken minutes.
    const offer = challengeOf(HASH, Math.floor(Date.now() / 1000))
    challenge = offer.challenge
    expect(await run(resumes())).toMatchObject({ code: 0, stdout: GOODS })
    expect([payments(), read(FILE).invoice]).toEqual([1, offer.invoice])
  })
})

test('an old challenge is not replaced if it is still valid by the seller’s clock', async () => {
  const expiredAt = Math.floor(Date.now() / 1000) - 120
  const left = leave(FILE, { timestamp: expiredAt - 3_600 })
  challenge = challengeOf('22'.repeat(32), expiredAt - 10).challenge
  const { code, error } = await run(resumes())
  expect([code, error().code, error().outcome, read(FILE), payments()]).toEqual([3, 'payment_unknown', 'unknown', left, 0])
})

test('a refusal by a proxy that had sent the request before: the node is asked', async () => {
  payInvoice = inOrder({ status: 404, body: '<h1>404</h1>' })
  ask = inOrder(NOT_FOUND, PENDING, FOUND_PAID)
  expect(await run(pays())).toMatchObject({ code: 0, stdout: GOODS })
  expect(payments()).toBe(1)
})

test('an empty credential file, which a killed run left, is used', async () => {
  writeFileSync(FILE, '', { mode: 0o600 })
  expect(await run(resumes())).toMatchObject({ code: 0, stdout: GOODS })
  expect(read(FILE).credential).toBe(CREDENTIAL)
})

describe('a file that the program itself has named', () => {
  const place = `${STATE}/${HASH}.json`
  const left = (credential: string): object => leave(place, { credential })

  test('is removed when its payment is used up', async () => {
    left('Payment abc')
    toCredential = inOrder({ body: GOODS, headers: { 'payment-receipt': 'e30' } })
    expect(await run(pays('--credential-file', place))).toMatchObject({ code: 0, stdout: GOODS })
    expect([presented(), existsSync(place)]).toEqual([['Payment abc'], false])
  })

  test.each(['payment-receipt', 'payment-response'])('is removed, and the receipt in %s is shown', async (header) => {
    left('Payment abc')
    toCredential = inOrder({ body: GOODS, headers: { [header]: btoa('{"success":true}') } })
    const { stderr } = await run(pays('--credential-file', place))
    expect(JSON.parse(stderr.trim().split('\n').at(-1) ?? '')).toEqual({ paid: null, receipt: { success: true } })
    expect(existsSync(place)).toBe(false)
  })

  test.each<[string, string, string[]]>([
    ['an L402 credential, which may be good for more', 'L402 abc:def', []],
    ['a HEAD request, which uses nothing up', 'Payment abc', ['--method', 'HEAD']],
  ])('stays after %s', async (_name, credential, more) => {
    const document = left(credential)
    toCredential = inOrder({ body: GOODS, headers: { 'payment-receipt': 'e30' } })
    expect((await run(pays('--credential-file', place, ...more))).code).toBe(0)
    expect(read(place)).toEqual(document)
  })

  test('stays after a response without a receipt, which something in front of the paywall may have made', async () => {
    const document = left('Payment abc')
    expect((await run(pays('--credential-file', place))).code).toBe(0)
    expect(read(place)).toEqual(document)
  })

  test('stays if the seller refuses it', async () => {
    const document = left('Payment abc')
    toCredential = inOrder({ status: 402, headers: { 'www-authenticate': challenge } })
    expect((await run(pays('--credential-file', place))).code).toBe(8)
    expect(read(place)).toEqual(document)
  })

  test('a file that the user has named stays', async () => {
    const document = leave(FILE, { credential: 'Payment abc' })
    expect((await run(resumes())).code).toBe(0)
    expect(read(FILE)).toEqual(document)
  })
})

test('without a terminal, a paid request that has to be repeated is one line on stderr, however often', async () => {
  toCredential = inOrder('cut', { status: 503 }, { body: GOODS })
  const { code, stdout, stderr } = await run(pays())
  expect([code, stdout]).toEqual([0, GOODS])
  const [first, ...rest] = stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(first.retrying.message).toBe(
    `${new URL(shop.url).host} did not respond. You paid, so the request is repeated for at most 90 s.`,
  )
  expect(first.retrying.credentialFile).toBe(`${STATE}/${HASH}.json`)
  expect(rest).toMatchObject([{ paid: { amountSat: 10 } }])
  expect(stderr).not.toContain(PREIMAGE)
})

describe('a response that cannot be written', () => {
  const message = 'You paid, but the response could not be written: the disk is full.'

  test('to --output: the reason, and how to present the credential', async () => {
    const { code, error } = await run(pays('--output', '/dev/full'))
    expect([code, error().code, error().message]).toEqual([1, 'output_failed', message])
    expect(error().next).toContain(`--credential-file ${error().credentialFile}`)
    expect(read(error().credentialFile).credential).toBe(CREDENTIAL)
  })

  test('to stdout: the same advice, and the credential is still there', async () => {
    const { code, error } = await run(pays(), { redirect: '> /dev/full' })
    expect([code, error().code]).toEqual([1, 'output_failed'])
    const [, file = ''] = /present the same credential.* --credential-file (\S+)/.exec(error().next) ?? []
    expect(await run(pays('--credential-file', file))).toMatchObject({ code: 0, stdout: GOODS })
    expect(payments()).toBe(1)
  })

  test('of a free resource', async () => {
    const free = await new Scripted().open()
    free.reply = () => ({ body: GOODS })
    expect((await run(['pay', free.url, '--output', '/dev/full'])).error()).toMatchObject({
      code: 'output_failed',
      message: 'The output could not be written: the disk is full.',
    })
    const piped = await run(['pay', free.url, '--output', '/dev/stdout'], { redirect: '| cat' })
    expect([piped.stdout, piped.stderr]).toEqual([GOODS, ''])
  })
})

describe('two runs with one credential file', () => {
  test('at the same time pay once: the second waits, and presents the same credential', async () => {
    const ended = await Promise.all([run(resumes()), run(resumes())])
    expect(ended).toMatchObject(Array(2).fill({ code: 0, stdout: GOODS }))
    expect([payments(), presented()]).toEqual([1, [CREDENTIAL, CREDENTIAL]])
    expect(readdirSync(`${home}/.local/state/boltyard/locks`)).toEqual([])
  })

  test('without a writable state directory, the lock is beside the file', async () => {
    const env = { XDG_STATE_HOME: '/dev/null' }
    const ended = await Promise.all([run(resumes(), { env }), run(resumes(), { env })])
    expect([ended.map(({ code }) => code), payments()]).toEqual([[0, 0], 1])
    expect(existsSync(`${FILE}.lock`)).toBe(true)
    rmSync(`${FILE}.lock`, { recursive: true })
  })

  test('if the state directory is not only the user’s, the lock is beside the file too', async () => {
    const [env, locks] = [{ XDG_STATE_HOME: inHome('shared') }, inHome('shared/boltyard/locks')]
    mkdirSync(locks, { recursive: true })
    chmodSync(locks, 0o777)
    const ended = await Promise.all([run(resumes(), { env }), run(resumes(), { env })])
    expect([ended.map(({ code }) => code), payments(), readdirSync(locks)]).toEqual([[0, 0], 1, []])
    chmodSync(`${FILE}.lock`, 0o777)
    const { code, error } = await run(resumes(), { env })
    rmSync(`${FILE}.lock`, { recursive: true })
    expect([code, error().code]).toEqual([2, 'usage'])
    expect(error().message).toBe(
      `${FILE} cannot be locked: ${FILE}.lock must be a directory that this user owns and nobody else can write to. If it is yours, run chmod 700 on it; otherwise, use another path. Nothing was paid.`,
    )
  })

  test('a run whose lock cannot be read pays nothing, and says so', async () => {
    const locks = `${home}/.local/state/boltyard/locks`
    ask = () => {
      rmSync(locks, { recursive: true })
      writeFileSync(locks, '')
      return NOT_FOUND
    }
    const { code, error } = await run(resumes())
    rmSync(locks)
    expect([code, error().code, error().outcome, payments()]).toEqual([1, 'system', 'unknown', 0])
    expect(error().message).toBe(
      'The lock of the credential file cannot be read: part of the path is not a directory. This run paid nothing.',
    )
    ask = inOrder(NOT_FOUND)
    expect(await run(resumes())).toMatchObject({ code: 0, stdout: GOODS })
    expect(payments()).toBe(1)
  })

  test('a run that was assumed to be dead does not remove the file of the run that has replaced it', async () => {
    const locks = `${home}/.local/state/boltyard/locks`
    payInvoice = () => {
      for (const name of readdirSync(locks)) writeFileSync(`${locks}/${name}`, '{"token":"other","isReleased":true}')
      leave(FILE, { credential: CREDENTIAL })
      return couldNot('no route')
    }
    const { code, error } = await run(resumes())
    expect([code, error().code]).toEqual([1, 'payment_failed'])
    expect(read(FILE).credential).toBe(CREDENTIAL)
    rmSync(locks, { recursive: true })
  })
})

describe('a run that was assumed to be dead', () => {
  const OTHER = 'cd'.repeat(32)
  const locks = `${home}/.local/state/boltyard/locks`

  /** Another run takes the lock, and leaves its own purchase in the file. */
  function replaced(more: Parameters<typeof leave>[1]): void {
    for (const name of readdirSync(locks)) writeFileSync(`${locks}/${name}`, '{"token":"other","isReleased":true}')
    leave(FILE, more)
  }

  test('while it asks the shop again, does not replace the credential of the run that has taken over', async () => {
    leave(FILE, { timestamp: nowSeconds - 20_000 })
    const { reply } = shop
    shop.reply = (got) => {
      replaced({ credential: CREDENTIAL })
      return reply(got)
    }
    const { code, error } = await run(resumes())
    shop.reply = reply
    rmSync(locks, { recursive: true })
    expect([read(FILE).credential, payments()]).toEqual([CREDENTIAL, 0])
    expect([code, error().code]).toEqual([8, 'purchase_in_progress'])
  })

  test('while it pays, leaves the purchase of the other run in the file, and keeps its own elsewhere', async () => {
    payInvoice = () => {
      replaced({ paymentHash: OTHER })
      return SENT
    }
    toCredential = inOrder({ status: 404 }, { body: GOODS })
    const { error } = await run(resumes())
    rmSync(locks, { recursive: true })
    expect([read(FILE).paymentHash, read(FILE).credential]).toEqual([OTHER, undefined])
    const { credentialFile } = error()
    expect(read(credentialFile).credential).toBe(CREDENTIAL)
    expect(await run(pays('--credential-file', credentialFile))).toMatchObject({ code: 0, stdout: GOODS })
    expect(payments()).toBe(1)
  })

  test('while it pays, and cannot keep its own purchase elsewhere: it does not say that nothing was paid', async () => {
    payInvoice = () => {
      replaced({ paymentHash: OTHER })
      rmSync(STATE, { recursive: true })
      writeFileSync(STATE, '')
      return SENT
    }
    const { error } = await run(resumes())
    rmSync(locks, { recursive: true })
    expect([error().outcome, error().message]).toEqual(['paid', `The node paid. The credential cannot be stored in ${STATE}.`])
    expect(read(FILE).paymentHash).toBe(OTHER)
  })
})

describe('the node paid, but the credential cannot be stored', () => {
  test('and the purchase is still in its file: the next run gets the credential from the node', async () => {
    // Its temporary file has a longer name, which is too long.
    const path = inHome(`${'x'.repeat(240)}.json`)
    const left = leave(path)
    const { code, error } = await run(pays('--credential-file', path))
    expect([code, error().code, error().outcome]).toEqual([1, 'output_failed', 'paid'])
    expect(error().message).toBe(`The node paid, but ${path} could not be written: ENAMETOOLONG.`)
    expect(error().next).toMatch(/without paying again: boltyard pay .* --credential-file /)
    expect([presented(), read(path)]).toEqual([[], left])
    renameSync(path, FILE)
    ask = inOrder(FOUND_PAID)
    expect(await run(resumes())).toMatchObject({ code: 0, stdout: GOODS })
    expect([payments(), presented()]).toEqual([1, [CREDENTIAL]])
  })

  test('because the file is not that of a purchase any more: it is not overwritten, and the payment can be looked up', async () => {
    payInvoice = () => {
      writeFileSync(FILE, 'mine')
      return SENT
    }
    const { code, error } = await run(resumes())
    expect([code, error().code, error().outcome]).toEqual([1, 'output_failed', 'paid'])
    expect(error().message).toMatch(/^The node paid\. .* was not written by boltyard\. It will not be overwritten\.$/)
    expect([error().next, readFileSync(FILE, 'utf8')]).toEqual([
      `Look up the payment ${HASH} on the node, and ask the seller.`,
      'mine',
    ])
  })
})

test('C80: a redirect of the paid response is not followed: the message says where it leads, and the credential is kept', async () => {
  const other = await new Scripted().open()
  const location = `${other.url}/file?part=1`
  toCredential = inOrder({ status: 302, headers: { location } }, { body: GOODS })
  const { code, error, stdout } = await run(resumes())
  expect([code, error().code, stdout]).toEqual([1, 'not_delivered', ''])
  expect(error().message).toBe(`You paid, but the server returned HTTP 302 and redirects to ${location}`)
  expect([other.got, read(FILE).credential]).toEqual([[], CREDENTIAL])
  expect(await run(resumes())).toMatchObject({ code: 0, stdout: GOODS })
  expect([payments(), presented()]).toEqual([1, [CREDENTIAL, CREDENTIAL]])
})

describe('a POST', () => {
  const host = (): string => new URL(shop.url).host
  const unanswered = (): string => `${host()} did not respond. It may have carried out the request.`
  const posts = (...more: string[]): string[] => pays('--method', 'post', ...more)

  test('that was sent may have been carried out, paid or not', async () => {
    toCredential = inOrder('cut')
    const { code, error } = await run(posts())
    expect([code, error().message, presented()]).toEqual([3, unanswered(), [CREDENTIAL]])
    const mute = await new Scripted().open()
    mute.reply = () => 'cut'
    expect((await run(['pay', mute.url, '--method', 'post'])).error().message).toMatch(/ did not respond\. It may have carried/)
    expect((await run(['pay', NOWHERE, '--method', 'post'])).error().message).toMatch(/ could not be reached \(/)
  })

  test('is not repeated after a 503, unless the server says when', async () => {
    toCredential = inOrder({ status: 503 }, { body: GOODS })
    expect((await run(posts())).error()).toMatchObject({ code: 'not_delivered' })
    expect(presented()).toHaveLength(1)
    toCredential = inOrder({ status: 503, headers: { 'retry-after': '0' } }, { body: GOODS })
    expect(await run(posts('--credential-file', `${STATE}/${HASH}.json`))).toMatchObject({ code: 0, stdout: GOODS })
  })

  test('a GET is repeated after a 503', async () => {
    toCredential = inOrder({ status: 503 }, { body: GOODS })
    expect(await run(pays())).toMatchObject({ code: 0, stdout: GOODS })
  })
})

describe('an earlier purchase', () => {
  const request = Buffer.from(
    JSON.stringify({ amount: '10', currency: 'sat', methodDetails: { invoice: challengeOf().invoice } }),
  ).toString('base64url')
  const mpp = `Payment id="x", realm="shop", method="lightning", intent="charge", request="${request}"`

  test('whose challenge has expired before its invoice is not paid', async () => {
    leave(FILE, { challenge: `${mpp}, expires="2026-01-01T00:00:00Z"` })
    expect((await run(resumes())).error()).toMatchObject({
      code: 'payment_unknown',
      outcome: 'unknown',
      message: expect.stringContaining('This run paid nothing.'),
    })
    expect([payments(), existsSync(FILE)]).toEqual([0, true])
  })

  test('is continued with the offer that was chosen, if two share the invoice', async () => {
    const both = `${challengeOf().challenge}, ${mpp}, header="Payment-Authorization"`
    leave(FILE, { challenge: both, header: 'payment-authorization' })
    const sold = shop.reply
    shop.reply = ({ headers }) =>
      String(headers['payment-authorization']).startsWith('Payment ') ? { body: GOODS } : { status: 403 }
    expect(await run(resumes())).toMatchObject({ code: 0, stdout: GOODS })
    shop.reply = sold
    expect(read(FILE)).toMatchObject({ header: 'payment-authorization', credential: expect.stringMatching(/^Payment /) })
  })
})

test('an invoice that expires before it is paid leaves no file', async () => {
  const sold = shop.reply
  let expiresAtMs = 0
  shop.reply = () => {
    const timestamp = Math.floor(Date.now() / 1000) - 3_600 + 3
    expiresAtMs = (timestamp + 3_600) * 1000
    return { status: 402, headers: { 'www-authenticate': challengeOf(HASH, timestamp).challenge } }
  }
  ask = () => {
    // The node answers only after the invoice has expired.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.max(0, expiresAtMs - Date.now()) + 100)
    return NOT_FOUND
  }
  expect((await run(pays())).error()).toMatchObject({ code: 'payment_failed' })
  shop.reply = sold
  expect([payments(), readdirSync(STATE)]).toEqual([0, []])
})
