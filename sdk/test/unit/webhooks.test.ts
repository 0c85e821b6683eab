import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { BoltyardError } from '../../src/index.ts'
import { verifyWebhook, type WebhookBody, type WebhookHeaders, WebhookVerificationError } from '../../src/webhooks/index.ts'
import { importSecret, newSecret, sign } from '../../src/webhooks/signature.ts'

/** `verifyWebhook` against the reference implementation of Standard Webhooks, in both directions. */

const event = { id: 'evt_1', type: 'payment.settled', createdAt: 1, accountId: 'acct_1', data: { description: 'Zürich ☕' } }
const body = JSON.stringify(event)
const secret = newSecret()
const nowSeconds = (): number => Math.floor(Date.now() / 1000)

/** Signed by the reference implementation. */
function headersFor(text: string, by = [secret], atSeconds = nowSeconds(), id = 'msg_1'): Record<string, string> {
  const signatures = by.map((one) => new Webhook(one).sign(id, new Date(atSeconds * 1000), text))
  return { 'webhook-id': id, 'webhook-timestamp': String(atSeconds), 'webhook-signature': signatures.join(' ') }
}

async function refused(call: Promise<unknown>): Promise<WebhookVerificationError> {
  const error = await call.then(
    () => expect.fail('it was accepted'),
    (error) => error,
  )
  expect(error).toBeInstanceOf(WebhookVerificationError)
  return error
}

test('what the reference implementation signs is accepted and returned as an event, from text and from bytes', async () => {
  expect(await verifyWebhook(body, headersFor(body), secret)).toEqual(event)
  expect(await verifyWebhook(Buffer.from(body), headersFor(body), secret)).toEqual(event)
  expect(await verifyWebhook(new TextEncoder().encode(body), headersFor(body), secret)).toEqual(event)
  const foreign = runInNewContext('Uint8Array.from(bytes)', { bytes: [...Buffer.from(body)] })
  expect(await verifyWebhook(foreign, headersFor(body), secret)).toEqual(event)
})

test('what we sign, the reference implementation accepts: any id, body and secret', async () => {
  const anyId = fc.string({ minLength: 1, unit: fc.constantFrom(...'abcXYZ019._-') })
  const anySecret = fc
    .uint8Array({ minLength: 24, maxLength: 64 })
    .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`)
  await fc.assert(
    fc.asyncProperty(anyId, fc.dictionary(fc.string(), fc.jsonValue()), anySecret, async (id, value, any) => {
      const [text, timestamp] = [JSON.stringify(value), String(nowSeconds())]
      const signature = await sign({ id, timestamp, body: text }, await importSecret(any))
      const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
      expect(new Webhook(any).verify(text, headers)).toEqual(JSON.parse(text))
      expect(headersFor(text, [any], Number(timestamp), id)).toEqual(headers)
      expect(await verifyWebhook(text, headers, any)).toEqual(JSON.parse(text))
    }),
  )
})

test('a changed body, id, timestamp, signature or secret is refused', async () => {
  const good = headersFor(body)
  const cases: [WebhookBody, WebhookHeaders, string][] = [
    [body.replace('settled', 'paid'), good, secret],
    [`${body} `, good, secret],
    [body, { ...good, 'webhook-id': 'msg_2' }, secret],
    [body, { ...good, 'webhook-timestamp': String(nowSeconds() - 60) }, secret],
    [body, { ...good, 'webhook-signature': good['webhook-signature']?.replace('v1,', 'v2,') }, secret],
    [body, { ...good, 'webhook-signature': good['webhook-signature']?.replace('v1,', '') }, secret],
    [body, { ...good, 'webhook-signature': 'v1,' }, secret],
    [body, { ...good, 'webhook-signature': 'v1,not base64 ☕' }, secret],
    [body, good, newSecret()],
  ]
  for (const [text, headers, by] of cases)
    expect(await refused(verifyWebhook(text, headers, by))).toMatchObject({ code: 'invalid_signature' })
})

test('bytes that are not UTF-8 do not match the signature of the text they would decode to', async () => {
  const text = JSON.stringify({ data: '\ufffd' })
  const bytes = Buffer.from(text.replace('\ufffd', '\u00ff'), 'latin1')
  expect(bytes.toString()).toBe(text)
  expect(await refused(verifyWebhook(bytes, headersFor(text), secret))).toMatchObject({ code: 'invalid_signature' })
})

test('during a rotation either secret is enough, on either side', async () => {
  const [old, fresh] = [newSecret(), newSecret()]
  expect(await verifyWebhook(body, headersFor(body, [fresh, old]), old)).toEqual(event)
  expect(await verifyWebhook(body, headersFor(body, [fresh, old]), fresh)).toEqual(event)
  expect(await verifyWebhook(body, headersFor(body, [fresh]), [old, fresh])).toEqual(event)
  await refused(verifyWebhook(body, headersFor(body, [old, fresh]), [newSecret(), newSecret()]))
  const future = { ...headersFor(body), 'webhook-signature': `v2,x v1a,y ${headersFor(body)['webhook-signature']}` }
  expect(await verifyWebhook(body, future, secret)).toEqual(event)
})

test('a timestamp is accepted up to the tolerance, in both directions', async () => {
  const sentAt = (seconds: number): Record<string, string> => headersFor(body, [secret], nowSeconds() + seconds)
  expect(await verifyWebhook(body, sentAt(-290), secret)).toEqual(event)
  expect(await verifyWebhook(body, sentAt(290), secret)).toEqual(event)
  expect(await refused(verifyWebhook(body, sentAt(-310), secret))).toMatchObject({ code: 'timestamp_too_old' })
  expect(await refused(verifyWebhook(body, sentAt(400), secret))).toMatchObject({ code: 'timestamp_too_new' })
  expect(await verifyWebhook(body, sentAt(-3_000), secret, { toleranceSeconds: 3_600 })).toEqual(event)
  await refused(verifyWebhook(body, sentAt(-60), secret, { toleranceSeconds: 10 }))
  await refused(verifyWebhook(body, sentAt(0), secret, { toleranceSeconds: Number.NaN }))
})

test.each(['', '1.5', '-1', '1e9', ' 1', 'now', '9'.repeat(400)])('a timestamp of “%s” is refused', async (timestamp) => {
  const error = await refused(verifyWebhook(body, { ...headersFor(body), 'webhook-timestamp': timestamp }, secret))
  expect(error.code).toBe(timestamp === '' ? 'missing_header' : 'invalid_timestamp')
})

test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])('without %s the error names the header', async (name) => {
  const error = await refused(verifyWebhook(body, { ...headersFor(body), [name]: undefined }, secret))
  expect(error).toMatchObject({ code: 'missing_header', message: `The header ${name} is missing.` })
})

test('the headers of fetch, of node:http and of servers that keep the case are read', async () => {
  const headers = headersFor(body)
  expect(await verifyWebhook(body, new Headers(headers), secret)).toEqual(event)
  expect(await verifyWebhook(body, new Request('http://shop/', { headers }).headers, secret)).toEqual(event)
  const shouted = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]))
  expect(await verifyWebhook(body, shouted, secret)).toEqual(event)

  let received: IncomingHttpHeaders = {}
  const server = createServer((request, response) => {
    received = request.headers
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { method: 'POST', headers, body })
  server.close()
  expect(await verifyWebhook(body, received, secret)).toEqual(event)
})

test.each(['<html>', '', 'null', '1', '"text"', '[{}]'])(
  'a signed body that is not a JSON object is refused: %s',
  async (text) => {
    expect(await refused(verifyWebhook(text, headersFor(text), secret))).toMatchObject({ code: 'invalid_body' })
  },
)

test('a mistake in the program is a TypeError that says what to pass, before anything is verified', async () => {
  const parsed = event as unknown as string
  await expect(verifyWebhook(parsed, headersFor(body), secret)).rejects.toThrow(
    new TypeError('Pass the raw body as a string or Uint8Array. Parsed JSON cannot be verified.'),
  )
  for (const none of ['', [], [''], undefined as unknown as string])
    await expect(verifyWebhook(body, headersFor(body), none)).rejects.toThrow(
      new TypeError('No webhook secret was given. Pass the secret that begins with whsec_.'),
    )
  for (const wrong of ['whsec_', 'whsec_c2hvcnQ=', 'whsec_☕', `whsec_${randomBytes(65).toString('base64')}`])
    await expect(verifyWebhook(body, headersFor(body), [secret, wrong])).rejects.toThrow(
      /^A webhook secret is whsec_ and the base64/,
    )
})

test('no error contains a secret', async () => {
  const wrong = `whsec_${randomBytes(70).toString('base64')}`
  const calls = [
    () => verifyWebhook(body, headersFor(body), newSecret()),
    () => verifyWebhook(body, {}, secret),
    () => verifyWebhook('<html>', headersFor('<html>'), secret),
    () => verifyWebhook(body, headersFor(body), [secret, wrong]),
  ]
  for (const call of calls) {
    const error = await call().catch((error) => error)
    expect(error).toBeInstanceOf(Error)
    const shown = inspect(error, { depth: 10, showHidden: true })
    for (const one of [secret, wrong]) expect(shown).not.toContain(one.slice('whsec_'.length))
  }
})

test('the error is a BoltyardError with a name', async () => {
  const error = await refused(verifyWebhook(body, {}, secret))
  expect(error).toBeInstanceOf(BoltyardError)
  expect(error.name).toBe('WebhookVerificationError')
})
