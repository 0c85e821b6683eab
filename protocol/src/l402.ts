import { concat, fromBase64, fromHex, latin1Of, toBase64 } from './bytes.ts'
import { isSignedBy, type Macaroon, mintMacaroon, readMacaroon } from './macaroon.ts'
import type { Primitives } from './primitives.ts'
import { Refusal } from './refusal.ts'

/** Part of every macaroon, and of the caveats that clients add. Changing it would invalidate all issued macaroons. */
export const L402_SERVICE = 'boltyard'

export type L402Terms = {
  paymentId: string
  paymentHash: Uint8Array
  tokenId: Uint8Array
  validUntilSeconds: number
  invoice: string
}

/**
 * The value of WWW-Authenticate. The upper-case scheme, the order, one space after the comma, the quotes and the padded standard base64 are
 * each required by at least one client in use, and some of them fail only after paying.
 */
export function issueL402(primitives: Primitives, rootKey: Uint8Array, terms: L402Terms): string {
  // A time such as 1.8e+21 or 1800000000.5 would be refused as malformed after the customer has paid.
  if (!Number.isSafeInteger(terms.validUntilSeconds) || terms.validUntilSeconds < 0)
    throw new RangeError('The expiry must be a time in whole seconds.')
  // The invoice comes from a node and goes into a header. A quote or line break in it could inject a header.
  if (!/^ln[a-z0-9]+$/.test(terms.invoice)) throw new RangeError('The invoice is not a BOLT 11 invoice.')
  const macaroon = mintMacaroon(primitives, rootKey, identifierOf(terms.paymentHash, terms.tokenId), L402_SERVICE, [
    `services=${L402_SERVICE}:0`,
    `${L402_SERVICE}_valid_until=${terms.validUntilSeconds}`,
    `payment_id=${terms.paymentId}`,
  ])
  return `L402 macaroon="${toBase64(macaroon)}", invoice="${terms.invoice}"`
}

/** A well-formed but unverified credential. */
export type L402Credential = { macaroon: Macaroon; preimage: string }

/** Longer than any macaroon we accept, with room for spaces. Bounds the input of the pattern and the decoder. */
const MAX_CREDENTIAL_LENGTH = 16 * 1024
const CREDENTIAL = /^[ \t]*(?:L402|LSAT) +([a-z0-9+/_-]+={0,2}):([0-9a-f]{64})[ \t]*$/i

export function readL402(text: string): L402Credential | Refusal {
  const [, base64, preimage] = (text.length <= MAX_CREDENTIAL_LENGTH && CREDENTIAL.exec(text)) || []
  if (base64 === undefined || preimage === undefined) return refused('The credential is not "L402 <macaroon>:<preimage>".')
  const bytes = fromBase64(base64)
  const macaroon = bytes && readMacaroon(bytes)
  return macaroon ? { macaroon, preimage } : refused('The macaroon in the credential cannot be read.')
}

/**
 * Returns the credential's expiry in Unix seconds if it is correct; Infinity if it has none. The caller must check the settlement and the
 * payment's state: a preimage only proves that someone knew it, and the payee's node knows it before anyone pays.
 */
export function judgeL402(
  primitives: Primitives,
  { macaroon, preimage }: L402Credential,
  issued: { paymentId: string; paymentHash: Uint8Array; tokenId: Uint8Array },
  rootKey: Uint8Array,
  nowSeconds: number,
  service: string = L402_SERVICE,
): number | Refusal {
  const { isEqual, sha256 } = primitives
  // One message for three reasons, so that a forger does not learn which part is already correct. Cheap checks come first.
  const isOfPayment =
    isEqual(macaroon.identifier, identifierOf(issued.paymentHash, issued.tokenId)) &&
    isEqual(sha256(fromHex(preimage)), issued.paymentHash) &&
    isSignedBy(primitives, rootKey, macaroon)
  if (!isOfPayment) return refused('The credential does not belong to this payment.')

  // Check the time last: 410 tells the client to pay again, which is wrong for a credential that is invalid anyway.
  const endSeconds = validUntil(macaroon.caveats, issued.paymentId, service)
  if (endSeconds instanceof Refusal || nowSeconds < endSeconds) return endSeconds
  return new Refusal('expired', 'The credential has expired.')
}

/**
 * Version, payment hash, token id. Rebuilt and compared as a whole, so that no part is overlooked. The lengths are checked because a short
 * hash with a long token id could produce the same 66 bytes for another payment.
 */
function identifierOf(paymentHash: Uint8Array, tokenId: Uint8Array): Uint8Array {
  if (paymentHash.length !== 32 || tokenId.length !== 32)
    throw new RangeError('A payment hash and a token id must have 32 bytes each.')
  return concat([Uint8Array.of(0, 0), paymentHash, tokenId])
}

/**
 * Checks all caveats except the time, and returns the time: the last time caveat, or Infinity. Any holder of a macaroon can append caveats,
 * so each may only narrow the previous one of its kind. If only the last one counted, any holder could extend the lifetime.
 *
 * Unknown caveats are skipped, as the specification requires, and so is text without "=". Caveats are bytes and need not be UTF-8, so they
 * are read as Latin-1, which keeps each byte. As UTF-8, different invalid names would become the same "\ufffd", and if invalid caveats were
 * skipped, one of our restrictions with one bad byte would silently not apply.
 */
function validUntil(caveats: Uint8Array[], paymentId: string, service: string): number | Refusal {
  let services: Set<string> | undefined
  let end = Number.POSITIVE_INFINITY

  for (const [name, value] of caveats.map(conditionOf)) {
    switch (name) {
      case 'services': {
        const names = serviceNames(value)
        const before = services
        if (!names || (before && !names.every((one) => before.has(one))))
          return refused('A "services" caveat of the credential is malformed, or grants more than an earlier one.')
        services = new Set(names)
        break
      }
      case `${service}_valid_until`: {
        const seconds = secondsOf(value)
        if (seconds === undefined || seconds > end)
          return refused('A time caveat of the credential is malformed, or later than an earlier one.')
        end = seconds
        break
      }
      case 'payment_id':
        if (value !== paymentId) return refused('The "payment_id" caveat of the credential is for a different payment.')
        break
    }
  }

  if (services && !services.has(service)) return refused('The "services" caveats of the credential do not include this service.')
  return end
}

/** Split at the first "=". */
function conditionOf(caveat: Uint8Array): [name: string | undefined, value: string] {
  const text = latin1Of(caveat)
  const equals = text.indexOf('=')
  return equals < 0 ? [undefined, ''] : [text.slice(0, equals), text.slice(equals + 1)]
}

/** The values of all caveats with this name, in order. */
export function caveatValues({ caveats }: Macaroon, name: string): string[] {
  return caveats.map(conditionOf).flatMap(([one, value]) => (one === name ? [value] : []))
}

/** `name:tier[,name:tier]`. The tier is required but not compared: so far there is only one. */
function serviceNames(value: string): string[] | undefined {
  const names: string[] = []
  for (const one of value.split(',')) {
    const [, name, tier] = /^([^:]+):([0-9]{1,3})$/.exec(one) ?? []
    if (name === undefined || Number(tier) > 255) return undefined
    names.push(name)
  }
  return names
}

/**
 * Fifteen digits cover thirty million years and are still exact as a number. More digits are malformed, because rounding could
 * make a later time equal to an earlier one. This is no restriction: our own caveat has fewer digits, and a later time would be
 * refused anyway.
 */
function secondsOf(value: string): number | undefined {
  return /^[0-9]{1,15}$/.test(value) ? Number(value) : undefined
}

const refused = (message: string): Refusal => new Refusal('invalid', message)
