import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as mpp from '../../src/mpp.ts'
import { mppRefusal, primitives } from './codecs.ts'

export type MppTerms = mpp.MppTerms

export const issueMpp = (key: Uint8Array, realm: string, terms: MppTerms, expiresAtSeconds: number): string =>
  mpp.issueMpp(primitives, key, realm, terms, expiresAtSeconds)
export const challengeId = (key: Uint8Array, slots: mpp.IdSlots): string => mpp.challengeId(primitives, key, slots)

export const PROBLEMS = 'https://paymentauth.org/problems/lightning/'
export const FIELDS = ['id', 'realm', 'method', 'intent', 'request', 'expires'] as const
export const HEADER =
  /^Payment id="([^"]*)", realm="([^"]*)", method="([^"]*)", intent="([^"]*)", request="([^"]*)", expires="([^"]*)"$/

export type Vector = {
  name: string
  expect?: 'paid' | 'invalid_payment_credential' | 'payment_expired'
  function?: 'id'
  server_key: string
  stored_challenge: Record<'id' | 'header' | 'expires' | 'hmac_input' | 'payment_hash' | 'preimage', string> & {
    request_json: any
  }
  realm: string
  credential_header: string
  receipt_json?: any
  receipt_jcs?: string
}
export const { vectors }: { vectors: Vector[] } = JSON.parse(
  readFileSync(new URL('../../../test/vectors/mpp.json', import.meta.url), 'utf8'),
)
export const paidVectors = vectors.filter((vector) => vector.expect === 'paid')

export const issuedOf = ({ stored_challenge: { header, payment_hash, request_json } }: Vector) => ({
  challenge: header,
  paymentHash: Buffer.from(payment_hash, 'hex'),
  amountSat: Number(request_json.amount),
})

export const key = Buffer.from('0123456789abcdef0123456789abcdef')
export const preimage = '5a'.repeat(32)
export const sha256 = (hex: string) => createHash('sha256').update(Buffer.from(hex, 'hex')).digest()
export const paymentHash = sha256(preimage)
export const terms: MppTerms = {
  amountSat: 2_100,
  description: 'Weather report',
  paymentId: 'pay_0123456789',
  invoice: 'lnbcrt21u1pexample',
  network: 'regtest',
  paymentHash: paymentHash.toString('hex'),
}
export const EXPIRES = Date.parse('2026-09-21T14:18:20Z') / 1000
export const challenge = issueMpp(key, 'gateway.example.com', terms, EXPIRES)
export const issued = { challenge, paymentHash, amountSat: terms.amountSat }

export const base64url = (text: string | Buffer) => Buffer.from(text as string).toString('base64url')
export const decoded = (token: string) => JSON.parse(Buffer.from(token, 'base64url').toString())
export const fieldsOf = (header: string): Record<string, string> =>
  Object.fromEntries(FIELDS.map((name, at) => [name, HEADER.exec(header)?.[at + 1] ?? '']))
export const requestOf = (header: string) => decoded(fieldsOf(header).request ?? '')
export const headerOf = (fields: Record<string, string>) =>
  `Payment ${FIELDS.map((name) => `${name}="${fields[name]}"`).join(', ')}`
export const presented = (json: unknown) => `Payment ${base64url(JSON.stringify(json))}`
export const echoed = fieldsOf(challenge)
export const credential = presented({ challenge: echoed, payload: { preimage } })

/** The last part of the problem URL, or `right` if the credential is accepted. */
export function verdict(text: string, stored = issued, under = key): string {
  const refusal = mppRefusal(text, stored, under)
  if (!refusal) return 'right'
  if (refusal.reason !== 'invalid') throw new Error(`refused as ${refusal.reason}`)
  return String(refusal.problem).replace(PROBLEMS, '')
}
