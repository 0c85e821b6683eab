import { fromHex, isObject, jsonObjectIn, toBase64Url, toHex } from './bytes.ts'
import { jcs } from './jcs.ts'
import type { Primitives } from './primitives.ts'
import { Refusal } from './refusal.ts'

/**
 * The Payment scheme of HTTP authentication (draft-httpauth-payment-00, and `header` of -02), method lightning, intent charge:
 * the challenge a client pays, the credential it presents, and the receipt. This code does not know whether a payment is paid,
 * expired or delivered.
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

/** All strings, exactly as the client echoes them. */
export type MppChallenge = {
  id: string
  realm: string
  method: string
  intent: string
  request: string
  expires: string
  header?: MppHeader | undefined
}

/** The header that carries the credential if the seller uses `Authorization` for other credentials. */
export const MPP_HEADER = 'Payment-Authorization'
export type MppHeader = typeof MPP_HEADER

/** The seven inputs of the id, and an eighth if there is a header. Any other absent value is an empty string, never left out. */
export type IdSlots = Omit<MppChallenge, 'id'> & { digest?: string; opaque?: string }

/**
 * The inputs of the id are joined without escaping: with a "|" in the realm, two challenges could share an id; a quote would end
 * the parameter; and clients disagree about anything outside printable ASCII.
 */
const REALM = /^[ !#-[\]-{}~]+$/

/**
 * The value of WWW-Authenticate. Only `header` adds a seventh parameter, and only if the seller asks for it: some clients do not
 * echo a seventh parameter, and one client misparses quotes in it.
 */
export function issueMpp(
  primitives: Primitives,
  key: Uint8Array,
  realm: string,
  terms: MppTerms,
  expiresAtSeconds: number,
  header?: MppHeader,
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
  const slots = { realm, method: 'lightning', intent: 'charge', request: toBase64Url(request), expires, header }
  return headerOf({ id: challengeId(primitives, key, slots), ...slots })
}

export function challengeId({ hmacSha256 }: Primitives, key: Uint8Array, slots: IdSlots): string {
  const { realm, method, intent, request, expires, digest = '', header, opaque = '' } = slots
  const values = [realm, method, intent, request, expires, digest, ...(header === undefined ? [] : [header]), opaque]
  return toBase64Url(hmacSha256(key, values.join('|')))
}

/** The beginning of the header with this id. It identifies the header, because the id depends on all other parameters. */
export function headerBeginningOf(id: string): string {
  return `Payment id="${id}"`
}

function headerOf({ id, realm, method, intent, request, expires, header }: MppChallenge): string {
  const last = header === undefined ? '' : `, header="${header}"`
  return `${headerBeginningOf(id)}, realm="${realm}", method="${method}", intent="${intent}", request="${request}", expires="${expires}"${last}`
}

/** A well-formed but unverified credential. */
export type MppCredential = { challenge: MppChallenge; preimage: string }

/** Four times what servers must accept. Without a limit, anyone could make us decode and parse huge inputs. */
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
  // Unlike L402, this protocol does not accept upper case, which would be a second spelling of the same proof.
  if (typeof preimage !== 'string' || !PREIMAGE.test(preimage)) {
    return malformed('The preimage is not a string of 64 lowercase hex digits.')
  }

  const { id, realm, method, intent, request, expires, digest, opaque, header } = challenge
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
  // Other issuers may omit `expires` and add `digest` or `opaque`. We never do, and all three are inputs of the id.
  if (expires === undefined || digest !== undefined || opaque !== undefined) return unknownChallenge()
  if (header !== undefined && header !== MPP_HEADER) return unknownChallenge()
  return { challenge: { id, realm, method, intent, request, expires, header }, preimage }
}

/** A credential whose challenge was issued with our key, and the hash of its preimage. */
export type MppClaim = { challenge: MppChallenge; paymentHash: Uint8Array }

export function claimIn(primitives: Primitives, key: Uint8Array, { challenge, preimage }: MppCredential): MppClaim | Refusal {
  if (!primitives.isEqual(challengeId(primitives, key, challenge), challenge.id)) return unknownChallenge()
  return { challenge, paymentHash: primitives.sha256(fromHex(preimage)) }
}

/**
 * Undefined if the credential matches this payment in every byte. The HMAC alone is not enough: a valid credential of another payment
 * passes it. The stored challenge alone is not enough either: anyone who can write to the database could issue challenges. The caller must
 * check settlement, expiry and state.
 */
export function judgeMpp(
  { isEqual }: Primitives,
  { challenge, paymentHash }: MppClaim,
  issued: { challenge: string; paymentHash: Uint8Array; amountSat: number },
): Refusal | undefined {
  // A value with a quote would make a header with more quotes than the stored one, so equal headers have equal values.
  if (!isEqual(headerOf(challenge), issued.challenge)) return unknownChallenge()

  // Implied by the line above unless the row is corrupt: a challenge stored with another payment's amount must not pass.
  const request = jsonObjectIn(challenge.request)
  if (request?.amount !== String(issued.amountSat) || request.currency !== 'sat') return unknownChallenge()

  if (isEqual(paymentHash, issued.paymentHash)) return undefined
  return refused('lightning/invalid-preimage', 'The preimage does not belong to this payment.')
}

/** Identifies the payment by its hash. The draft's example uses the preimage, which would reveal the proof of payment. */
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

/** The credential a client sends: the challenge's parameters, unchanged, and the preimage. */
export function mppCredential(challenge: Record<string, unknown>, preimage: string): string {
  return `Payment ${toBase64Url(JSON.stringify({ challenge, payload: { preimage } }))}`
}

const malformed = (message: string): Refusal => refused('lightning/malformed-credential', message)

/** The same message for every field, so that a challenge cannot be guessed field by field. */
const unknownChallenge = (): Refusal =>
  refused('lightning/unknown-challenge', 'The credential does not match the challenge of this payment.')

const refused = (problem: string, message: string): Refusal =>
  new Refusal('invalid', message, `https://paymentauth.org/problems/${problem}`)
