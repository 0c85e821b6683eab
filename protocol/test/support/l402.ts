import fc from 'fast-check'
import * as l402 from '../../src/l402.ts'
import type { Refusal } from '../../src/refusal.ts'
import { l402Refusal, primitives } from './codecs.ts'
import { A, attenuated, credential, END, FRESH, macaroon } from './l402-by-hand.ts'

export const { L402_SERVICE } = l402
export const issueL402 = (rootKey: Uint8Array, terms: l402.L402Terms): string => l402.issueL402(primitives, rootKey, terms)

export const INVOICE = 'lnbcrt420n1pj9nrzypp5vectorsonly'
export const NOW = 1_800_000_000
export const fresh = macaroon(FRESH)
export const good = credential(fresh)
export const base64 = fresh.toString('base64')

export type Sent = { payment?: typeof A; now?: number; service?: string }

export function refusal(text: string, { payment = A, now = NOW, service = L402_SERVICE }: Sent = {}): Refusal | undefined {
  const { rootKey, paymentId, paymentHash, tokenId } = payment
  return l402Refusal(text, { paymentId, paymentHash, tokenId }, rootKey, now, service)
}

/** The message, and the status that the gateway returns. */
export function answer(text: string, sent?: Sent): { status: number; message: string } {
  const refused = refusal(text, sent)
  const message = refused?.message ?? ''
  const status = refused === undefined ? 200 : refused.reason === 'expired' ? 410 : 400
  // A message must not quote the credential. Twelve equal characters in a row are not a coincidence.
  for (let at = 0; at + 12 <= message.length; at++)
    if (text.includes(message.slice(at, at + 12))) throw new Error(`The message repeats what was sent: ${message}`)
  return { status, message }
}
export const status = (text: string, sent?: Sent): number => answer(text, sent).status
export const judged = (caveats: (string | Buffer)[], sent?: Sent): number => status(credential(macaroon(caveats)), sent)
export const withMore = (caveats: (string | Buffer)[], sent?: Sent): number =>
  status(credential(attenuated(fresh, ...caveats)), sent)

export const terms = {
  paymentId: A.paymentId,
  paymentHash: A.paymentHash,
  tokenId: A.tokenId,
  validUntilSeconds: END,
  invoice: INVOICE,
}
export const macaroonIn = (challenge: string): string => /macaroon="([^"]*)"/.exec(challenge)?.[1] ?? ''

export const anyBytes = (constraints: fc.IntArrayConstraints) => fc.uint8Array(constraints).map((array) => Buffer.from(array))
export const words = anyBytes({ minLength: 32, maxLength: 32 })
export const anyTerms = fc.record({
  paymentId: fc.stringMatching(/^pay_[0-9a-z]{20}$/),
  paymentHash: words,
  tokenId: words,
  validUntilSeconds: fc.integer({ min: 0, max: 999_999_999_999_999 }),
  invoice: fc.stringMatching(/^ln[a-z0-9]{1,300}$/),
})
