import type { IncomingMessage } from 'node:http'
import { readBody } from '../body.ts'
import { decodeInvoice, type Invoice } from '../lightning/bolt11.ts'
import { decodeOffer, type Offer } from '../lightning/offer.ts'

/** An answer that is an error: a status and a sentence, as text. */
export class ApiFault extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export const badRequest = (message: string): ApiFault => new ApiFault(400, message)
const missing = (name: string): ApiFault => badRequest(`Request parameter ${name} is missing`)
const malformed = (name: string, type: string): ApiFault =>
  badRequest(`Request parameter ${name} couldn't be parsed/converted to ${type}`)

const LONG_MIN = -(2n ** 63n)
const LONG_MAX = 2n ** 63n - 1n
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The parameters of one request, from its form or its query, read as phoenixd reads them. */
export class Parameters {
  readonly #values: URLSearchParams

  constructor(values: URLSearchParams) {
    this.#values = values
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  optional(name: string): string | undefined {
    return this.#values.get(name) ?? undefined
  }

  required(name: string): string {
    const value = this.#values.get(name)
    if (value === null) throw missing(name)
    return value
  }

  /** A 64-bit integer. Beyond what a double holds exactly it is only ever a bound or an error, so rounding is harmless there. */
  optionalInteger(name: string): number | undefined {
    const value = this.#values.get(name)
    if (value === null) return undefined
    if (!/^[+-]?\d{1,100}$/.test(value)) throw malformed(name, 'integer')
    const integer = BigInt(value.replace('+', ''))
    if (integer < LONG_MIN || integer > LONG_MAX) throw malformed(name, 'integer')
    return Number(integer)
  }

  integer(name: string): number {
    const value = this.optionalInteger(name)
    if (value === undefined) throw missing(name)
    return value
  }

  optionalHex32(name: string): string | undefined {
    const value = this.#values.get(name)
    if (value === null) return undefined
    if (!/^[0-9a-f]{64}$/i.test(value)) throw malformed(name, 'hex32')
    return value.toLowerCase()
  }

  hex32(name: string): string {
    const value = this.optionalHex32(name)
    if (value === undefined) throw missing(name)
    return value
  }

  uuid(name: string): string {
    const value = this.required(name)
    if (!UUID.test(value)) throw malformed(name, 'uuid')
    return value.toLowerCase()
  }

  invoice(name: string): { text: string; invoice: Invoice } {
    const text = this.required(name)
    return { text, invoice: parsed(() => decodeInvoice(text), malformed(name, 'bolt11invoice')) }
  }

  offer(name: string): Offer {
    const text = this.required(name)
    return parsed(() => decodeOffer(text), malformed(name, 'offer'))
  }

  optionalUrl(name: string): string | undefined {
    const value = this.#values.get(name)
    if (value === null) return undefined
    if (!URL.canParse(value)) throw malformed(name, 'url')
    return value
  }

  /** Absent is reported like malformed, as phoenixd does. */
  address(name: string): { user: string; domain: string } {
    const token = this.#values.get(name)?.trim().split(/\s+/)[0] ?? ''
    const [user, domain, ...rest] = token.split('@')
    if (!token.includes('@') || user === undefined || domain === undefined || rest.length > 0)
      throw malformed(name, 'username@domain')
    return { user: user.toLowerCase().replace(/^₿+/, ''), domain }
  }

  amountMissing(): ApiFault {
    return missing('amountSat')
  }
}

function parsed<T>(read: () => T, fault: ApiFault): T {
  try {
    return read()
  } catch {
    // Why an invoice or offer cannot be read is not part of the answer.
    throw fault
  }
}

/** phoenixd takes forms only; what a JSON body or none at all is answered with comes from its HTTP library. */
export async function readForm(request: IncomingMessage): Promise<Parameters> {
  const contentType = request.headers['content-type'] ?? ''
  const type = contentType.split(';')[0]?.trim().toLowerCase()
  if (type === 'application/x-www-form-urlencoded') {
    return new Parameters(new URLSearchParams((await readBody(request)).toString('utf8')))
  }
  if (type === 'multipart/form-data') return new Parameters(await readMultipart(await readBody(request), contentType))
  if (type === 'application/json') throw badRequest('Failed to convert request body to class io.ktor.http.Parameters')
  throw new ApiFault(415, "Cannot transform this request's content to io.ktor.http.Parameters")
}

async function readMultipart(body: Buffer, contentType: string): Promise<URLSearchParams> {
  const values = new URLSearchParams()
  let form: FormData
  try {
    form = await new Response(body, { headers: { 'content-type': contentType } }).formData()
  } catch {
    throw badRequest('Failed to convert request body to class io.ktor.http.Parameters')
  }
  for (const [name, value] of form) if (typeof value === 'string') values.append(name, value)
  return values
}
