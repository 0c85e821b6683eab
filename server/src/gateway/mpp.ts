import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { Problem } from '../problems.ts'
import { jcs } from './jcs.ts'

/**
 * The Payment scheme of HTTP authentication (draft-httpauth-payment-00), method lightning, intent charge: the challenge that a client
 * pays, the credential that it comes back with, the receipt. What is paid, expired or delivered is not known here.
 */
export type MppTerms = {
  amountSat: number
  description: string
  paymentId: string
  invoice: string
  network: 'mainnet' | 'regtest' | 'signet'
  /** 64 lowercase hex digits. */
  paymentHash: string
}

/** All strings, as the client echoes them. */
type Challenge = { id: string; realm: string; method: string; intent: string; request: string; expires: string }

/** The seven slots of the id; what is absent is an empty slot, never a missing one. */
export type IdSlots = Omit<Challenge, 'id'> & { digest?: string; opaque?: string }

/**
 * The slots are joined without escapes: a realm with a bar in it would let two challenges share an id, one with a quote would end its
 * parameter, and clients disagree on how to read anything outside printable ASCII.
 */
const REALM = /^[ !#-[\]-{}~]+$/

/** The value of WWW-Authenticate. A seventh parameter would lose clients: some do not echo it, one takes a quote in it for the next. */
export function issueMpp(key: Buffer, realm: string, terms: MppTerms, expiresAtSeconds: number): string {
  if (!REALM.test(realm)) throw new Error('The realm of a challenge must be printable ASCII without bar, quote and backslash.')
  const request = base64urlOfJcs({
    amount: String(terms.amountSat),
    currency: 'sat',
    description: terms.description,
    externalId: terms.paymentId,
    methodDetails: { invoice: terms.invoice, network: terms.network, paymentHash: terms.paymentHash },
  })
  const expires = `${new Date(expiresAtSeconds * 1000).toISOString().slice(0, 19)}Z`
  const slots = { realm, method: 'lightning', intent: 'charge', request, expires }
  return headerOf({ id: challengeId(key, slots), ...slots })
}

/** What a credential says, once its own id has proved that the challenge in it was issued under this key. */
export type MppClaim = { challenge: Challenge; paymentHash: Buffer }

/** The problem instead of the claim, when there is something wrong with it. */
export function readMpp(credential: string, key: Buffer): MppClaim | Problem {
  const read = readCredential(credential)
  if (read instanceof Problem) return read
  const { challenge, preimage } = read
  if (!sameText(challengeId(key, challenge), challenge.id)) return unknownChallenge()
  const paymentHash = hash('sha256', Buffer.from(preimage, 'hex'), 'buffer')
  return { challenge, paymentHash }
}

/**
 * Returns when the credential is right in every byte, and throws what is wrong with it otherwise. The HMAC alone is not enough: a genuine
 * credential of another payment passes it. The stored challenge alone is not enough either: whoever can write a row could issue challenges.
 * Settlement, expiry and state are the caller's.
 */
export function judgeMpp(
  credential: string,
  issued: { challenge: string; paymentHash: Buffer; amountSat: number },
  key: Buffer,
): void {
  const claim = readMpp(credential, key)
  if (claim instanceof Problem) throw claim

  // A value with a quote in it makes a header with more quotes than the stored one has, so equal headers have six equal values.
  if (!sameText(headerOf(claim.challenge), issued.challenge)) throw unknownChallenge()

  // Implied by the line above, as long as the row is whole: a challenge beside another payment's amount must not pass.
  const request = jsonObject(claim.challenge.request)
  if (request?.amount !== String(issued.amountSat) || request.currency !== 'sat') throw unknownChallenge()

  if (!sameBytes(claim.paymentHash, issued.paymentHash)) {
    throw refused('lightning/invalid-preimage', 'The preimage is not the one of this payment.')
  }
}

/** Names the payment by its hash. The draft's own example has the preimage there, which is the proof of payment itself. */
export function mppReceipt(challenge: string, paymentHash: Buffer, settledAtMs: number): string {
  const id = /^Payment id="([^"]+)"/.exec(challenge)?.[1]
  if (id === undefined) throw new Error('The stored challenge has no id.')
  return base64urlOfJcs({
    challengeId: id,
    method: 'lightning',
    reference: paymentHash.toString('hex'),
    status: 'success',
    timestamp: new Date(settledAtMs).toISOString(),
  })
}

export function challengeId(key: Buffer, slots: IdSlots): string {
  const { realm, method, intent, request, expires, digest = '', opaque = '' } = slots
  const input = `${realm}|${method}|${intent}|${request}|${expires}|${digest}|${opaque}`
  return createHmac('sha256', key).update(input).digest('base64url')
}

/** Four times what servers must take. Without an end, whoever sends rubbish decides how much of it we decode and parse. */
const LONGEST_CREDENTIAL = 16 * 1024

/** Node's decoder skips what is not in the alphabet, so that a token full of dirt would decode: the alphabet is looked at first. */
const CREDENTIAL = /^[ \t]*Payment +([A-Za-z0-9_-]+)={0,2}[ \t]*$/i

const PREIMAGE = /^[0-9a-f]{64}$/

function readCredential(credential: string): { challenge: Challenge; preimage: string } | Problem {
  if (credential.length > LONGEST_CREDENTIAL) return malformed('The credential is longer than 16 KB.')
  const token = CREDENTIAL.exec(credential)?.[1]
  if (token === undefined) return malformed('The credential is not "Payment" and one base64url token.')
  const { challenge, payload } = jsonObject(token) ?? {}
  if (!isObject(challenge) || !isObject(payload)) {
    return malformed('The token does not decode to a JSON object with a challenge and a payload.')
  }

  const { preimage } = payload
  // Upper case would be a second spelling of the same proof; the L402 parser takes it, this protocol does not.
  if (typeof preimage !== 'string' || !PREIMAGE.test(preimage)) {
    return malformed('The preimage is not a string of 64 lowercase hex digits.')
  }

  const { id, realm, method, intent, request, expires, digest, opaque } = challenge
  if (
    typeof id !== 'string' ||
    typeof realm !== 'string' ||
    typeof method !== 'string' ||
    typeof intent !== 'string' ||
    typeof request !== 'string' ||
    (typeof expires !== 'string' && expires !== undefined)
  ) {
    return malformed('The challenge in the credential lacks a field, or one is not a string.')
  }
  // Elsewhere a challenge may do without expires and have the others; ours never does, and all three have a slot in the id.
  if (expires === undefined || digest !== undefined || opaque !== undefined) return unknownChallenge()
  return { challenge: { id, realm, method, intent, request, expires }, preimage }
}

/** How the header of the challenge with this id begins. The id is made of all the rest, so no two headers begin alike. */
export function headerBeginningOf(id: string): string {
  return `Payment id="${id}"`
}

function headerOf({ id, realm, method, intent, request, expires }: Challenge): string {
  return `${headerBeginningOf(id)}, realm="${realm}", method="${method}", intent="${intent}", request="${request}", expires="${expires}"`
}

/** Strict on both counts: replaced bytes and a swallowed byte order mark would give one credential many spellings. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Undefined for whatever is no object. The parser's own error is dropped: it quotes the text, and the text holds the preimage. */
function jsonObject(base64url: string): Record<string, unknown> | undefined {
  // One character more than whole groups holds no byte; the decoder would drop it in silence.
  if (base64url.length % 4 === 1) return undefined
  try {
    const value: unknown = JSON.parse(utf8.decode(Buffer.from(base64url, 'base64url')))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A list passes, and then lacks every name that is asked of it. */
function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function base64urlOfJcs(value: Parameters<typeof jcs>[0]): string {
  return Buffer.from(jcs(value)).toString('base64url')
}

function sameText(one: string, other: string): boolean {
  return sameBytes(Buffer.from(one), Buffer.from(other))
}

/** timingSafeEqual throws on unequal lengths; a length is no secret. */
function sameBytes(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}

const malformed = (message: string): Problem => refused('lightning/malformed-credential', message)

/** The same for every field, so that nobody finds out a challenge piece by piece. */
const unknownChallenge = (): Problem =>
  refused('lightning/unknown-challenge', 'The credential does not answer the challenge of this payment.')

/** The messages are fixed texts: a credential in an error is a credential in a log. */
function refused(problem: string, message: string): Problem {
  return new Problem('invalid_payment_credential', message, {
    details: { problem: `https://paymentauth.org/problems/${problem}` },
  })
}
