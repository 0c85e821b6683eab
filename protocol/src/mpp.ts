import { fromHex, isObject, jsonObjectIn, toBase64Url, toHex } from './bytes.ts'
import { jcs } from './jcs.ts'
import type { Primitives } from './primitives.ts'
import { Refusal } from './refusal.ts'

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
export type MppChallenge = { id: string; realm: string; method: string; intent: string; request: string; expires: string }

/** The seven slots of the id; what is absent is an empty slot, never a missing one. */
export type IdSlots = Omit<MppChallenge, 'id'> & { digest?: string; opaque?: string }

/**
 * The slots are joined without escapes: a realm with a bar in it would let two challenges share an id, one with a quote would end its
 * parameter, and clients disagree on how to read anything outside printable ASCII.
 */
const REALM = /^[ !#-[\]-{}~]+$/

/** The value of WWW-Authenticate. A seventh parameter would lose clients: some do not echo it, one takes a quote in it for the next. */
export function issueMpp(
  primitives: Primitives,
  key: Uint8Array,
  realm: string,
  terms: MppTerms,
  expiresAtSeconds: number,
): string {
  if (!REALM.test(realm)) throw new Error('The realm of a challenge must be printable ASCII without "|", quotes or backslashes.')
  const request = jcs({
    amount: String(terms.amountSat),
    currency: 'sat',
    description: terms.description,
    externalId: terms.paymentId,
    methodDetails: { invoice: terms.invoice, network: terms.network, paymentHash: terms.paymentHash },
  })
  const expires = `${new Date(expiresAtSeconds * 1000).toISOString().slice(0, 19)}Z`
  const slots = { realm, method: 'lightning', intent: 'charge', request: toBase64Url(request), expires }
  return headerOf({ id: challengeId(primitives, key, slots), ...slots })
}

export function challengeId({ hmacSha256 }: Primitives, key: Uint8Array, slots: IdSlots): string {
  const { realm, method, intent, request, expires, digest = '', opaque = '' } = slots
  return toBase64Url(hmacSha256(key, `${realm}|${method}|${intent}|${request}|${expires}|${digest}|${opaque}`))
}

/** How the header of the challenge with this id begins. The id is made of all the rest, so no two headers begin alike. */
export function headerBeginningOf(id: string): string {
  return `Payment id="${id}"`
}

function headerOf({ id, realm, method, intent, request, expires }: MppChallenge): string {
  return `${headerBeginningOf(id)}, realm="${realm}", method="${method}", intent="${intent}", request="${request}", expires="${expires}"`
}

/** A well-formed credential. Nothing in it is proved yet. */
export type MppCredential = { challenge: MppChallenge; preimage: string }

/** Four times what servers must accept. Without an end, a stranger decides how much we decode and parse. */
const MAX_CREDENTIAL_LENGTH = 16 * 1024
const CREDENTIAL = /^[ \t]*Payment +([A-Za-z0-9_-]+)={0,2}[ \t]*$/i
const PREIMAGE = /^[0-9a-f]{64}$/

export function readMpp(text: string): MppCredential | Refusal {
  if (text.length > MAX_CREDENTIAL_LENGTH) return malformed('The credential is longer than 16 KB.')
  const token = CREDENTIAL.exec(text)?.[1]
  if (token === undefined) return malformed('The credential is not "Payment" followed by one base64url token.')
  const { challenge, payload } = jsonObjectIn(token) ?? {}
  if (!isObject(challenge) || !isObject(payload)) {
    return malformed('The token does not decode to a JSON object with a challenge and a payload.')
  }

  const { preimage } = payload
  // Upper case would be a second spelling of the same proof; L402 accepts it, this protocol does not.
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
    return malformed('The challenge in the credential lacks a field, or a field is not a string.')
  }
  // Other issuers may leave out `expires` and add the other two. We never do, and all three have a slot in the id.
  if (expires === undefined || digest !== undefined || opaque !== undefined) return unknownChallenge()
  return { challenge: { id, realm, method, intent, request, expires }, preimage }
}

/** A credential whose challenge was issued under our key, and the hash of the preimage that it shows. */
export type MppClaim = { challenge: MppChallenge; paymentHash: Uint8Array }

export function claimIn(primitives: Primitives, key: Uint8Array, { challenge, preimage }: MppCredential): MppClaim | Refusal {
  if (!primitives.isEqual(challengeId(primitives, key, challenge), challenge.id)) return unknownChallenge()
  return { challenge, paymentHash: primitives.sha256(fromHex(preimage)) }
}

/**
 * Undefined when the claim is for this payment, in every byte. The HMAC alone is not enough: a genuine credential of another payment
 * passes it. The stored challenge alone is not enough either: whoever can write a row could issue challenges. Settlement, expiry and
 * state are the caller's to check.
 */
export function judgeMpp(
  { isEqual }: Primitives,
  { challenge, paymentHash }: MppClaim,
  issued: { challenge: string; paymentHash: Uint8Array; amountSat: number },
): Refusal | undefined {
  // A value with a quote in it makes a header with more quotes than the stored one has, so equal headers have six equal values.
  if (!isEqual(headerOf(challenge), issued.challenge)) return unknownChallenge()

  // Implied by the line above, as long as the row is whole: a challenge beside another payment's amount must not pass.
  const request = jsonObjectIn(challenge.request)
  if (request?.amount !== String(issued.amountSat) || request.currency !== 'sat') return unknownChallenge()

  if (isEqual(paymentHash, issued.paymentHash)) return undefined
  return refused('lightning/invalid-preimage', 'The preimage does not belong to this payment.')
}

/** Names the payment by its hash. The draft's own example has the preimage there, which is the proof of payment itself. */
export function mppReceipt(challenge: string, paymentHash: Uint8Array, settledAtMs: number): string {
  const id = /^Payment id="([^"]+)"/.exec(challenge)?.[1]
  if (id === undefined) throw new Error('The stored challenge has no id.')
  return toBase64Url(
    jcs({
      challengeId: id,
      method: 'lightning',
      reference: toHex(paymentHash),
      status: 'success',
      timestamp: new Date(settledAtMs).toISOString(),
    }),
  )
}

/** What a client sends back: the parameters of the challenge as they came, and the proof. */
export function mppCredential(challenge: Record<string, unknown>, preimage: string): string {
  return `Payment ${toBase64Url(JSON.stringify({ challenge, payload: { preimage } }))}`
}

const malformed = (message: string): Refusal => refused('lightning/malformed-credential', message)

/** The same for every field, so that nobody finds out a challenge piece by piece. */
const unknownChallenge = (): Refusal =>
  refused('lightning/unknown-challenge', 'The credential does not match the challenge of this payment.')

const refused = (problem: string, message: string): Refusal =>
  new Refusal('invalid', message, `https://paymentauth.org/problems/${problem}`)
