import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { fromBase64, isObject, jsonObjectIn, textOf } from '../../../protocol/src/bytes.ts'
import { readMacaroon } from '../../../protocol/src/macaroon.ts'
import { readChallenges } from '../../../protocol/src/www-authenticate.ts'
import type { GatewayPayment } from '../api/types.ts'

/** What a challenge says, as names and values in its own order. */
export type Decoded = { invoice: string | undefined; fields: [name: string, value: string][] }

export function decodeChallenge(protocol: GatewayPayment['protocol'], challenge: string): Decoded {
  if (protocol === 'x402') return fromObject(jsonObjectIn(challenge) ?? {})
  const params = readChallenges(challenge)?.[0]?.params ?? new Map<string, string>()
  if (protocol === 'mpp') {
    const { request, ...others } = Object.fromEntries(params)
    return fromObject({ ...others, request: jsonObjectIn(request ?? '') ?? {} })
  }
  const invoice = params.get('invoice')
  const caveats = caveatsOf(params.get('macaroon') ?? '')
  return { invoice, fields: [...caveats, ...(invoice === undefined ? [] : invoiceFields(invoice))] }
}

function caveatsOf(base64: string): Decoded['fields'] {
  const macaroon = readMacaroon(fromBase64(base64) ?? new Uint8Array())
  return (macaroon?.caveats ?? []).map((caveat) => {
    const [name = '', ...rest] = (textOf(caveat) ?? '').split('=')
    const value = rest.join('=')
    return [
      name,
      name.endsWith('_valid_until') && /^\d{1,11}$/.test(value) ? new Date(Number(value) * 1000).toISOString() : value,
    ]
  })
}

/** What a WWW-Authenticate challenge says, with its parts inside each other. */
export function challengeObject(challenge: string): Record<string, unknown> {
  const params = readChallenges(challenge)?.[0]?.params ?? new Map<string, string>()
  const macaroon = params.get('macaroon')
  if (macaroon !== undefined)
    return { macaroon: Object.fromEntries(caveatsOf(macaroon)), invoice: invoiceObject(params.get('invoice') ?? '') }
  return withRequest(Object.fromEntries(params))
}

/** What the Authorization header of a paid request says. */
export function credentialObject(credential: string): Record<string, unknown> {
  const token = credential.replace(/^\S+ /, '')
  const { challenge, ...others } = jsonObjectIn(token) ?? {}
  if (isObject(challenge)) return { challenge: withRequest(challenge), ...others }
  const [macaroon = '', preimage] = token.split(':')
  return { macaroon: Object.fromEntries(caveatsOf(macaroon)), preimage }
}

/** An MPP challenge has its request as base64. */
function withRequest({ request, ...others }: Record<string, unknown>): Record<string, unknown> {
  const readable = (_: string, part: unknown) => (typeof part === 'string' && readInvoice(part) ? invoiceObject(part) : part)
  return { ...others, request: JSON.parse(JSON.stringify(jsonObjectIn(String(request)) ?? {}, readable)) }
}

const invoiceObject = (text: string): Record<string, string> =>
  Object.fromEntries(invoiceFields(text).map(([name, value]) => [name.replace('invoice.', ''), value]))

/** Nested objects become names such as `request.amount`. */
function fromObject(value: Record<string, unknown>): Decoded {
  const fields: Decoded['fields'] = []
  let invoice: string | undefined
  const add = (name: string, part: unknown): void => {
    if (Array.isArray(part) && part.length === 1) add(name, part[0])
    else if (isObject(part)) for (const [key, inner] of Object.entries(part)) add(name === '' ? key : `${name}.${key}`, inner)
    else if (typeof part === 'string' && readInvoice(part)) {
      invoice = part
      fields.push(...invoiceFields(part))
    } else fields.push([name, typeof part === 'string' ? part : JSON.stringify(part)])
  }
  add('', value)
  return { invoice, fields }
}

function invoiceFields(text: string): Decoded['fields'] {
  const invoice = readInvoice(text)
  if (!invoice) return []
  const { network, amountMsat, description, descriptionHash, timestampSeconds, expirySeconds } = invoice
  const optional: [string, string | undefined][] = [
    ['invoice.amount', amountMsat === undefined ? undefined : `${amountMsat / 1000} sat`],
    ['invoice.description', description],
    ['invoice.descriptionHash', descriptionHash],
  ]
  return [
    ['invoice.network', network],
    ...optional.filter((field): field is [string, string] => field[1] !== undefined),
    ['invoice.created', new Date(timestampSeconds * 1000).toISOString()],
    ['invoice.expires', new Date((timestampSeconds + expirySeconds) * 1000).toISOString()],
  ]
}

/** Null if it cannot be decoded. */
export function decodeReceipt(receipt: string): [name: string, value: string][] | null {
  const value = jsonObjectIn(receipt)
  return value ? Object.entries(value).map(([name, part]) => [name, String(part)]) : null
}
