import { isObject, textOf } from '../../../protocol/src/bytes.ts'
import { BoltyardError, KIND } from '../errors.ts'
import { jsonIn } from '../json.ts'
import type { AccountEvent } from '../types.ts'
import { importSecret, isSignature } from './signature.ts'

/** The body exactly as it was received. Parsed and serialized again, it no longer matches its signature. */
export type WebhookBody = string | Uint8Array
/** The headers of Node and Express (`request.headers`), of `Request`, or any object with a value per name. */
export type WebhookHeaders = { get(name: string): string | null } | { [name: string]: string | string[] | undefined }

export type VerifyOptions = {
  /** How far `webhook-timestamp` may be from the current time. Defaults to 5 minutes. */
  toleranceSeconds?: number | undefined
}

/**
 * The request cannot be accepted as a webhook. `code` is `missing_header`, `invalid_timestamp`, `timestamp_too_old`,
 * `timestamp_too_new`, `invalid_signature` or `invalid_body`.
 */
export class WebhookVerificationError extends BoltyardError {
  static override readonly [KIND]: string = 'WebhookVerificationError'
}

/**
 * Checks that a request is a webhook signed with this secret and sent recently, and returns its event. Pass several secrets while you
 * rotate them. Throws `WebhookVerificationError` if the request is wrong, and `TypeError` if the body or a secret cannot be used.
 */
export async function verifyWebhook(
  body: WebhookBody,
  headers: WebhookHeaders,
  secretOrSecrets: string | readonly string[],
  { toleranceSeconds = 300 }: VerifyOptions = {},
): Promise<AccountEvent> {
  // Not `instanceof`: test runners that use a separate context pass bytes that are not instances of that context's Uint8Array.
  if (typeof body !== 'string' && !ArrayBuffer.isView(body))
    throw new TypeError('Pass the raw body as a string or Uint8Array. Parsed JSON cannot be verified.')
  const secrets = typeof secretOrSecrets === 'string' ? [secretOrSecrets] : secretOrSecrets
  if (!secrets?.length || secrets.some((secret) => !secret))
    throw new TypeError('No webhook secret was given. Pass the secret that begins with whsec_.')
  const keys = await Promise.all(secrets.map(importSecret))

  const id = required(headers, 'webhook-id')
  const timestamp = required(headers, 'webhook-timestamp')
  const signatures = required(headers, 'webhook-signature').split(' ')
  checkTime(timestamp, toleranceSeconds)
  const content = { id, timestamp, body }
  const matches = await Promise.all(signatures.flatMap((signature) => keys.map((key) => isSignature(signature, content, key))))
  if (!matches.includes(true)) throw refusal('invalid_signature', 'No signature matches the body and the secret.')
  return parsed(body)
}

function required(headers: WebhookHeaders, name: string): string {
  const value = headerOf(headers, name)
  if (!value) throw refusal('missing_header', `The header ${name} is missing.`)
  return value
}

function headerOf(headers: WebhookHeaders, name: string): string | null | undefined {
  if (typeof headers.get === 'function') return headers.get(name)
  // Node has names in lower case, other servers keep the sender's.
  const [, value] = Object.entries(headers).find(([key]) => key.toLowerCase() === name) ?? []
  return Array.isArray(value) ? value.join(' ') : value
}

function checkTime(timestamp: string, toleranceSeconds: number): void {
  if (!/^\d{1,12}$/.test(timestamp))
    throw refusal('invalid_timestamp', 'The header webhook-timestamp is not a Unix time in seconds.')
  const ageSeconds = Math.floor(Date.now() / 1000) - Number(timestamp)
  const advice = `${Math.abs(ageSeconds)} s, and at most ${toleranceSeconds} s are allowed. Check this machine’s clock.`
  // Written so that a tolerance of NaN accepts nothing.
  if (!(ageSeconds <= toleranceSeconds)) throw refusal('timestamp_too_old', `The webhook was sent too long ago: ${advice}`)
  if (!(-ageSeconds <= toleranceSeconds)) throw refusal('timestamp_too_new', `The webhook was sent in the future: ${advice}`)
}

function parsed(body: WebhookBody): AccountEvent {
  const event = jsonIn(typeof body === 'string' ? body : (textOf(body) ?? ''))
  if (!isObject(event)) throw refusal('invalid_body', 'The body is signed correctly, but it is not a JSON object.')
  return event as AccountEvent
}

const refusal = (code: string, message: string): WebhookVerificationError => new WebhookVerificationError(message, { code })
