import type { IncomingMessage } from 'node:http'
import { readBody } from '../body.ts'
import { ApiFault, badRequest } from './faults.ts'

/** The first value of each name. Names are case-insensitive, as in phoenixd's HTTP library. */
export type Values = Map<string, string>

/** A name without "=" has no value and counts as missing. */
export function valuesIn(text: string): Values {
  const values: Values = new Map()
  for (let start = 0; start <= text.length; ) {
    const next = text.indexOf('&', start)
    const end = next < 0 ? text.length : next
    const equals = text.slice(start, end).indexOf('=')
    if (equals > 0) {
      const name = decoded(text, start, start + equals).toLowerCase()
      const value = decoded(text, start + equals + 1, end)
      if (!values.has(name)) values.set(name, value)
    }
    start = end + 1
  }
  return values
}

/** The error messages are those of phoenixd's HTTP library. Positions in them count from the start of the whole text. */
function decoded(text: string, start: number, end: number): string {
  for (let at = text.indexOf('%', start); at >= 0 && at < end; at = text.indexOf('%', at + 3)) {
    if (at + 2 >= end) throw new ApiFault(500, `Incomplete trailing HEX escape: ${text.slice(at)}, in ${text} at ${at}`)
    const sequence = text.slice(at, at + 3)
    if (!/^%[0-9a-f]{2}$/i.test(sequence)) throw new ApiFault(500, `Wrong HEX escape: ${sequence}, in ${text}, at ${at}`)
  }
  return new URLSearchParams(`v=${text.slice(start, end)}`).get('v') ?? ''
}

/** phoenixd accepts only forms; the errors for everything else come from its HTTP library. */
export async function readForm(request: IncomingMessage): Promise<Values> {
  const contentType = request.headers['content-type']
  const type = contentType?.split(';')[0]?.trim().toLowerCase()
  if (contentType !== undefined && !/^[^\s/]+\/[^\s/]+$/.test(type ?? ''))
    throw badRequest(`Illegal Content-Type header format: ${contentType}`)
  const body = await readBody(request)
  if (type === 'application/x-www-form-urlencoded') return valuesIn(body.toString('utf8'))
  if (type === 'multipart/form-data') return readMultipart(body, contentType ?? '')
  if (type === 'application/json' && body.length > 0)
    throw badRequest('Failed to convert request body to class io.ktor.http.Parameters')
  throw new ApiFault(415, "Cannot transform this request's content to io.ktor.http.Parameters")
}

async function readMultipart(body: Buffer, contentType: string): Promise<Values> {
  if (!/;\s*boundary=/i.test(contentType))
    throw new ApiFault(500, "Failed to parse multipart: Content-Type's boundary parameter is missing")
  const values: Values = new Map()
  if (body.length === 0) return values
  let form: FormData
  try {
    form = await new Response(body, { headers: { 'content-type': contentType } }).formData()
  } catch {
    const unfinished = body.length - (body.lastIndexOf('\r\n') < 0 ? 0 : body.lastIndexOf('\r\n') + 2)
    throw new ApiFault(500, `Unexpected end of stream after reading ${unfinished} characters`)
  }
  for (const [name, value] of form)
    if (typeof value === 'string' && !values.has(name.toLowerCase())) values.set(name.toLowerCase(), value)
  return values
}
