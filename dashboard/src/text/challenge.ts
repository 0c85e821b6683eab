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
  const macaroon = readMacaroon(fromBase64(params.get('macaroon') ?? '') ?? new Uint8Array())
  const caveats = (macaroon?.caveats ?? []).map((caveat): [string, string] => {
    const [name = '', ...rest] = (textOf(caveat) ?? '').split('=')
    const value = rest.join('=')
    return [
      name,
      name.endsWith('_valid_until') && /^\d{1,11}$/.test(value) ? new Date(Number(value) * 1000).toISOString() : value,
    ]
  })
  const invoice = params.get('invoice')
  return { invoice, fields: [...caveats, ...(invoice === undefined ? [] : invoiceFields(invoice))] }
}

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
