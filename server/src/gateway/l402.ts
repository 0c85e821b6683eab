import { createHash } from 'node:crypto'
import { Problem } from '../problems.ts'
import { isSignedBy, mintMacaroon, readMacaroon } from './macaroon.ts'

/** Merchants' clients write this name when they attenuate: another name and every attenuated credential is refused. */
export const L402_SERVICE = 'boltyard'

export type L402Terms = { paymentId: string; paymentHash: Buffer; tokenId: Buffer; validUntilSeconds: number; invoice: string }

/**
 * The value of WWW-Authenticate. Scheme in upper case, this order, one space after the comma, quotes, padded standard base64 and nothing
 * else: each of these is what at least one client in use insists on, some of them only after having paid.
 */
export function issueL402(rootKey: Buffer, terms: L402Terms): string {
  // Written as 1.8e+21 or 1800000000.5 it would be paid for and then refused as malformed.
  if (!Number.isSafeInteger(terms.validUntilSeconds) || terms.validUntilSeconds < 0)
    throw new RangeError('Not a time in whole seconds.')
  // The invoice comes from a node and ends up in a header. A quote or a line break in it would be a header of the node's making.
  if (!/^ln[a-z0-9]+$/.test(terms.invoice)) throw new RangeError('Not an invoice.')
  const macaroon = mintMacaroon(rootKey, identifierOf(terms.paymentHash, terms.tokenId), L402_SERVICE, [
    `services=${L402_SERVICE}:0`,
    `${L402_SERVICE}_valid_until=${terms.validUntilSeconds}`,
    `payment_id=${terms.paymentId}`,
  ])
  return `L402 macaroon="${macaroon.toString('base64')}", invoice="${terms.invoice}"`
}

/** Longer than any macaroon that we read, with room for spaces; it bounds what the pattern and the decoder are given. */
const MAX_CREDENTIAL_LENGTH = 16 * 1024
/** The alphabet is checked here and not left to Node's decoder, which skips what it does not know and reads the rest. */
const CREDENTIAL = /^[ \t]*(?:L402|LSAT) +([a-z0-9+/_-]+)={0,2}:([0-9a-f]{64})[ \t]*$/i

/**
 * Throws a Problem: 'invalid_payment_credential' (400), or 'payment_expired' (410) when only its own time is over. Returns the
 * end of that time when the credential is right. Whether the invoice was settled, and what state the payment is in, is the caller's to ask: a preimage alone
 * proves only that somebody knew it, and the payee's node knows it before anyone pays.
 *
 * Cheap checks come first, and no text repeats what was presented: macaroon and preimage together are money to whoever reads a log.
 */
export function judgeL402(
  credential: string,
  issued: { paymentId: string; paymentHash: Buffer; tokenId: Buffer },
  rootKey: Buffer,
  nowSeconds: number,
  service: string = L402_SERVICE,
): number {
  const [, base64, preimage] = (credential.length <= MAX_CREDENTIAL_LENGTH && CREDENTIAL.exec(credential)) || []
  if (base64 === undefined || preimage === undefined) throw refused('The credential is not "L402 <macaroon>:<preimage>".')
  // A single character left over holds six bits, which is no byte. Node drops them, so any character would do there.
  const macaroon = base64.length % 4 === 1 ? undefined : readMacaroon(Buffer.from(base64, 'base64'))
  if (!macaroon) throw refused('The macaroon in the credential cannot be read.')

  // One text for three reasons: a forger would learn from the difference which part is right already.
  const belongs =
    macaroon.identifier.equals(identifierOf(issued.paymentHash, issued.tokenId)) &&
    createHash('sha256').update(preimage, 'hex').digest().equals(issued.paymentHash) &&
    isSignedBy(rootKey, macaroon)
  if (!belongs) throw refused('The credential is not one of this payment.')

  // The time comes last: 410 tells the client to pay anew, which is of no use to a credential that was wrong anyway.
  const endSeconds = validUntil(macaroon.caveats, issued.paymentId, service)
  if (nowSeconds >= endSeconds) throw new Problem('payment_expired', 'The time of the credential itself is over.')
  return endSeconds
}

/**
 * Version, payment hash, token id. It is rebuilt and compared whole, so that no part can be forgotten; a short hash with a long token
 * id would make the same 66 bytes for another payment.
 */
function identifierOf(paymentHash: Buffer, tokenId: Buffer): Buffer {
  if (paymentHash.length !== 32 || tokenId.length !== 32)
    throw new RangeError('A payment hash and a token id have 32 bytes each.')
  return Buffer.concat([Buffer.of(0, 0), paymentHash, tokenId])
}

/**
 * Checks all caveats but the time, and gives that: the end of the last one's time, or never. Anyone who holds a macaroon can append
 * caveats, so each may only narrow the one of its kind before it: were the last one alone to count, every holder could write himself
 * a longer life.
 *
 * What we do not know is skipped, as the specification demands, and so is text without "=". Caveats are bytes, and nobody promised
 * that they are UTF-8: read as Latin-1 each byte stays itself. Decoded, different broken names would all become the same "\ufffd", and
 * skipped as a whole, a restriction of ours with one bad byte in it would silently not hold.
 */
function validUntil(caveats: Buffer[], paymentId: string, service: string): number {
  let services: Set<string> | undefined
  let end = Number.POSITIVE_INFINITY

  for (const caveat of caveats) {
    const text = caveat.toString('latin1')
    const equals = text.indexOf('=')
    if (equals < 0) continue
    const value = text.slice(equals + 1)
    switch (text.slice(0, equals)) {
      case 'services': {
        const names = serviceNames(value)
        const before = services
        if (!names || (before && !names.every((name) => before.has(name))))
          throw refused('A "services" caveat of the credential is malformed, or names more than the one before it.')
        services = new Set(names)
        break
      }
      case `${service}_valid_until`: {
        const seconds = secondsOf(value)
        if (seconds === undefined || seconds > end)
          throw refused('A time caveat of the credential is malformed, or later than the one before it.')
        end = seconds
        break
      }
      case 'payment_id':
        if (value !== paymentId) throw refused('A "payment_id" caveat of the credential names another payment.')
        break
    }
  }

  if (services && !services.has(service)) throw refused('The "services" caveats of the credential leave this service out.')
  return end
}

/** `name:tier[,name:tier]`. The tier must be one, but is not compared: there is only one so far. */
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
 * Fifteen digits are thirty million years, and still exact as a number. More are malformed: rounded, a later time could pass for the
 * same. Nothing is lost by it: what we issued has its time, and anything that long would be later.
 */
function secondsOf(value: string): number | undefined {
  return /^[0-9]{1,15}$/.test(value) ? Number(value) : undefined
}

function refused(message: string): Problem {
  return new Problem('invalid_payment_credential', message)
}
