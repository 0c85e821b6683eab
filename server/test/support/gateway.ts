import { createHash, createHmac } from 'node:crypto'
import { decode } from 'light-bolt11-decoder'
import type { Database } from '../../src/store/db.ts'
import { type Created, callNode, Owner } from './nodes.ts'
import { type Answer, eventually, type Server } from './server.ts'

/** What a shop, its customer and an attacker do with a credential. Nothing here uses the code under test. */

export type Protocol = 'mpp' | 'l402' | 'x402'
export type Payment = { id: string; protocol: Protocol; status: string; challenge: string }
export type Wish = { nodeId: string; amountSat: number; description: string; protocol?: Protocol; x402?: object; mpp?: object }

/** A caller that may use nodes, payments and events; in a new account unless one is given. */
export async function newMerchant(server: Server, accountId?: string): Promise<Owner> {
  return new Owner(server, await server.newKey(['nodes:write', 'gateway:write', 'events:read'], accountId))
}

export async function charge(merchant: Owner, { node }: Pick<Created, 'node'>, wish: Partial<Wish> = {}): Promise<Payment> {
  const json = { nodeId: node.id, amountSat: 1000, description: 'Weather report', ...wish }
  const answer = await untilKnown(() => merchant.send('POST', '/gateway/payments', { json }))
  if (answer.status !== 201) throw new Error(`charge: ${answer.status} ${answer.text}`)
  return answer.json()
}

export function validate(merchant: Owner, id: string, credential: unknown): Promise<Answer> {
  return merchant.send('POST', `/gateway/payments/${id}/validate`, { json: { credential } })
}

export function redeem(merchant: Owner, id: string, credential: unknown, more: object = {}): Promise<Answer> {
  return merchant.send('POST', `/gateway/payments/${id}/redeem`, { json: { credential, ...more } })
}

/**
 * Asks again while the node does not answer in time, as the SDK does. A shop must not send a new challenge instead: some customers would
 * pay that too.
 */
export function untilKnown(ask: () => Promise<Answer>): Promise<Answer> {
  return eventually(async () => {
    const answer = await ask()
    if (answer.status === 502 || answer.text.includes('"not_settled"')) throw new Error(answer.text)
    return answer
  }, 'the node to answer')
}

/** A customer's wallet: pays the invoice of a challenge and learns the preimage. */
export async function pay(server: Server, { challenge }: { challenge: string }): Promise<string> {
  const answer = await server.operator('POST', '/sandbox/pay', { json: { invoice: invoiceIn(challenge) } })
  if (answer.status !== 200) throw new Error(`pay: ${answer.status} ${answer.text}`)
  return answer.json().preimage
}

/** Waits until the payment shows as settled: the node's event arrives a moment after the customer has paid. */
export function untilSettled(merchant: Owner, { id }: { id: string }): Promise<{ settledAt: number }> {
  return eventually(async () => {
    const payment = await merchant.want<{ settledAt: number | null }>(200, 'GET', `/gateway/payments/${id}`)
    if (payment.settledAt === null) throw new Error('not settled')
    return { settledAt: payment.settledAt }
  }, `${id} to be settled`)
}

/** The preimage, which the payee's own node reveals to anyone with its password even before the invoice is paid. */
export async function preimageFrom({ node, credentials }: Created, { challenge }: { challenge: string }): Promise<string> {
  const { paymentHash } = decoded(invoiceIn(challenge))
  return (await callNode(node, credentials.password, 'GET', `/payments/incoming/${paymentHash}`)).json().preimage
}

/** The parameters of an MPP or L402 challenge, in order. */
export function parametersOf(challenge: string): Record<string, string> {
  const pairs = challenge.slice(challenge.indexOf(' ') + 1).split(', ')
  return Object.fromEntries(pairs.map((pair) => /^(\w+)="([^"]*)"$/.exec(pair)?.slice(1) ?? [pair, '']))
}

export function requestIn(challenge: string): any {
  return JSON.parse(Buffer.from(parametersOf(challenge).request ?? '', 'base64url').toString('utf8'))
}

/** The requirements in an x402 challenge. It is base64 of JSON: unlike the other challenges, it contains no space. */
export function requirementsIn(challenge: string): any {
  return JSON.parse(Buffer.from(challenge, 'base64').toString('utf8')).accepts[0]
}

export function invoiceIn(challenge: string): string {
  if (!challenge.includes(' ')) return requirementsIn(challenge).extra.invoice
  return parametersOf(challenge).invoice ?? requestIn(challenge).methodDetails.invoice
}

export const macaroonIn = (challenge: string): Buffer => Buffer.from(parametersOf(challenge).macaroon ?? '', 'base64')

export function credentialOf({ protocol, challenge }: Pick<Payment, 'protocol' | 'challenge'>, preimage: string): string {
  if (protocol === 'x402') return x402Credential(requirementsIn(challenge), preimage)
  return protocol === 'mpp' ? mppCredential(parametersOf(challenge), preimage) : l402Credential(macaroonIn(challenge), preimage)
}

export function mppCredential(challenge: object, preimage: unknown, more: object = {}): string {
  return `Payment ${base64url({ challenge, payload: { preimage }, ...more })}`
}

export const x402Credential = (accepted: unknown, preimage: unknown, more: object = {}): string =>
  Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload: { preimage }, ...more })).toString('base64')

export const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export const l402Credential = (macaroon: Buffer, preimage: string): string => `L402 ${macaroon.toString('base64')}:${preimage}`

/** The same macaroon with caveats added: any holder can do that, without a key. */
export function attenuate(macaroon: Buffer, ...caveats: string[]): Buffer {
  const tail = 35
  return caveats.reduce((before, caveat) => {
    const text = Buffer.from(caveat)
    if (text.length > 127) throw new Error('a longer caveat needs a longer length')
    const signature = createHmac('sha256', before.subarray(-32)).update(text).digest()
    const added = [Buffer.of(2, text.length), text, Buffer.of(0, 0, 6, 32), signature]
    return Buffer.concat([before.subarray(0, -tail), ...added])
  }, macaroon)
}

export type Decoded = {
  prefix: string
  amountMsat: string
  paymentHash: string
  timestamp: number
  expiry: number
  description: string | undefined
  descriptionHash: string | undefined
}

/** Uses an independent decoder. */
export function decoded(invoice: string): Decoded {
  const { sections } = decode(invoice)
  const the = (name: string): any => (sections.find((section) => section.name === name) as { value?: unknown })?.value
  return {
    prefix: the('coin_network').bech32,
    amountMsat: the('amount'),
    paymentHash: the('payment_hash'),
    timestamp: the('timestamp'),
    expiry: the('expiry'),
    description: the('description'),
    descriptionHash: the('description_hash'),
  }
}

/** One pool per start of a service, because PostgreSQL accepts a limited number of connections. */
const connections = new WeakMap<object, Database>()
export function storeOf(server: Server): Database {
  const sql = connections.get(server.running) ?? server.sql()
  connections.set(server.running, sql)
  return sql
}

/** The whole row, for comparison, without the columns that the sweep may change at any time. */
export async function rowOf(server: Server, id: string): Promise<Record<string, unknown>> {
  const [row] = await storeOf(
    server,
  )`SELECT * FROM gateway_payments LEFT JOIN paid_payments USING (account_id, id) WHERE id = ${id}`
  const { ask_at: _next, unpaid_at: _last, ...rest } = row ?? {}
  return rest
}

export const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')
