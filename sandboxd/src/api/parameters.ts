import { decodeInvoice, type Invoice } from '../lightning/bolt11.ts'
import { decodeOffer, type Offer } from '../lightning/offer.ts'
import { type ApiFault, badRequest } from './faults.ts'
import type { Values } from './form.ts'

const missing = (name: string): ApiFault => badRequest(`Request parameter ${name} is missing`)
const malformed = (name: string, type: string): ApiFault =>
  badRequest(`Request parameter ${name} couldn't be parsed/converted to ${type}`)

const LONG_MIN = -(2n ** 63n)
const LONG_MAX = 2n ** 63n - 1n
/** The capacity of the largest QR code. A payment attempt stores the invoice, which must not fill the disk. */
const MAX_INVOICE_LENGTH = 7_089
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The parameters of one request, from its form or query, parsed as in phoenixd. */
export class Parameters {
  readonly #values: () => Values

  /** Parsed on first use, so that a malformed query does not affect calls without parameters. */
  constructor(values: () => Values) {
    this.#values = values
  }

  has(name: string): boolean {
    return this.optional(name) !== undefined
  }

  optional(name: string): string | undefined {
    return this.#values().get(name.toLowerCase())
  }

  required(name: string): string {
    const value = this.optional(name)
    if (value === undefined) throw missing(name)
    return value
  }

  optionalLong(name: string): bigint | undefined {
    const value = this.optional(name)
    if (value === undefined) return undefined
    if (!/^[+-]?\d{1,100}$/.test(value)) throw malformed(name, 'integer')
    const integer = BigInt(value.replace('+', ''))
    if (integer < LONG_MIN || integer > LONG_MAX) throw malformed(name, 'integer')
    return integer
  }

  long(name: string): bigint {
    const value = this.optionalLong(name)
    if (value === undefined) throw missing(name)
    return value
  }

  /** Values too large for an exact double are only used as bounds or cause an error, so rounding is harmless. */
  optionalInteger(name: string): number | undefined {
    const value = this.optionalLong(name)
    return value === undefined ? undefined : Number(value)
  }

  integer(name: string): number {
    const value = this.optionalInteger(name)
    if (value === undefined) throw missing(name)
    return value
  }

  /** Only the first 32 bytes count, as in phoenixd. */
  optionalHex32(name: string): string | undefined {
    const value = this.optional(name)
    if (value === undefined) return undefined
    const hex = /^(?:0x)?((?:[0-9a-f]{2}){32,})$/i.exec(value)?.[1]
    if (hex === undefined) throw malformed(name, 'hex32')
    return hex.slice(0, 64).toLowerCase()
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
    if (text.length > MAX_INVOICE_LENGTH) throw malformed(name, 'bolt11invoice')
    return { text, invoice: parsed(() => decodeInvoice(text), malformed(name, 'bolt11invoice')) }
  }

  offer(name: string): Offer {
    const text = this.required(name)
    return parsed(() => decodeOffer(text), malformed(name, 'offer'))
  }

  optionalUrl(name: string): string | undefined {
    const value = this.optional(name)
    if (value !== undefined && !isUrl(value)) throw malformed(name, 'url')
    return value
  }

  /** A missing value is reported like a malformed one, as in phoenixd. */
  address(name: string): { user: string; domain: string } {
    const token = this.optional(name)?.trim().split(/\s+/)[0] ?? ''
    const [user, domain, ...rest] = token.split('@')
    if (!token.includes('@') || user === undefined || domain === undefined || rest.length > 0)
      throw malformed(name, 'username@domain')
    return { user: user.toLowerCase().replace(/^₿+/, ''), domain }
  }

  amountMissing(): ApiFault {
    return missing('amountSat')
  }
}

/** phoenixd's HTTP library rejects very little: a colon that does not end a scheme, and an invalid port. */
function isUrl(text: string): boolean {
  const scheme = /^([^:/?#]*):/.exec(text)?.[1]
  if (scheme !== undefined && !/^[a-z][a-z0-9+.-]*$/i.test(scheme)) return false
  const authority = /^[^:]*:\/\/([^/?#]*)/.exec(text)?.[1] ?? ''
  const port = /^(?:\[[^\]]*\]|[^:[]*):(.*)$/.exec(authority.slice(authority.lastIndexOf('@') + 1))?.[1] ?? ''
  return port === '' || (/^\d+$/.test(port) && Number(port) <= 65_535)
}

function parsed<T>(read: () => T, fault: ApiFault): T {
  try {
    return read()
  } catch {
    // The response does not say why an invoice or offer is invalid.
    throw fault
  }
}
