import { expect } from 'vitest'
import {
  charge,
  credentialOf,
  newMerchant,
  type Payment,
  type Protocol,
  pay,
  preimageFrom,
  storeOf,
  untilKnown,
  validate,
} from './gateway.ts'
import type { Created, Owner } from './nodes.ts'
import { type Answer, type Server, type ServerSetup, startServer } from './server.ts'

/** What customers buy: at a shop, and at a node whose events are rejected. */

export const PROTOCOLS: Protocol[] = ['mpp', 'l402']

export let server: Server
export let merchant: Owner
export let shop: Created
/** A node whose events are rejected, and which the sweep asks only about invoices that a test makes due. */
export let deaf: Created
export let stranger: Owner

export async function openShop({ env, ...setup }: ServerSetup = {}): Promise<void> {
  // Nodes are free, so no treasury node has to start.
  server = await startServer({ ...setup, env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0', ...env } })
  ;[merchant, stranger] = await Promise.all([newMerchant(server), newMerchant(server)])
  ;[shop, deaf] = await Promise.all([merchant.createReady({ name: 'shop' }), merchant.createReady({ name: 'deaf' })])
  await deafen(server, deaf)
}

export async function deafen(on: Server, { node }: Created): Promise<void> {
  const sql = storeOf(on)
  await sql`UPDATE node_secrets SET webhook_secret = NULL WHERE node_id = ${node.id}`
  await sql.unsafe(`
    CREATE OR REPLACE FUNCTION not_due() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN NEW.ask_at := now() + interval '1 hour'; RETURN NEW; END $$;
    CREATE TRIGGER not_due_${node.id} BEFORE INSERT ON gateway_payments FOR EACH ROW
      WHEN (NEW.node_id = '${node.id}') EXECUTE FUNCTION not_due()`)
}

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index))

export type Bought = { payment: Payment; preimage: string; credential: string }

/** A payment, and the credential of someone who read the preimage without paying. */
export async function unpaid(protocol: Protocol, at = shop, by = merchant): Promise<Bought> {
  const payment = await charge(by, at, { protocol })
  const preimage = await preimageFrom(at, payment)
  return { payment, preimage, credential: credentialOf(payment, preimage) }
}

/** A payment that the customer has paid, and that has not been validated. */
export async function bought(protocol: Protocol, at = shop, by = merchant): Promise<Bought> {
  const payment = await charge(by, at, { protocol })
  const preimage = await pay(by.server, payment)
  return { payment, preimage, credential: credentialOf(payment, preimage) }
}

export async function validated(protocol: Protocol): Promise<Bought & { text: string }> {
  const one = await bought(protocol)
  return { ...one, text: await accepted(untilKnown(() => validate(merchant, one.payment.id, one.credential))) }
}

export async function accepted(answer: Promise<Answer>): Promise<string> {
  const { status, text, headers } = await answer
  expect([status, text]).toEqual([200, expect.any(String)])
  expect(headers['cache-control']).toMatch(/^(private|no-store)$/)
  return text
}

/** Status, code and reason; every refusal has the shape that MPP 55 defines. */
export async function refused(answer: Promise<Answer>): Promise<[status: number, code: string, reason?: string]> {
  const { status, text, json } = await answer
  if (status < 400) throw new Error(`${status} ${text}`)
  const { error, ...more } = json()
  const { code, message, reason, problem, ...extras } = error
  expect([more, extras, typeof message]).toEqual([{}, {}, 'string'])
  if (problem !== undefined) expect(problem).toMatch(/^https:\/\/paymentauth\.org\/problems\/[a-z/-]+$/)
  return reason === undefined ? [status, code] : [status, code, reason]
}

export const WRONG = [400, 'invalid_payment_credential']
export const NOT_SETTLED = [400, 'invalid_payment_credential', 'not_settled']
export const BAD = [400, 'bad_request']
export const UNKNOWN = [404, 'gateway_payment_not_found']
export const EXPIRED = [410, 'payment_expired']
export const UNAVAILABLE = [502, 'payment_service_unavailable']
export const REDEEMED = [409, 'already_redeemed']

export const ended = ({ id }: Payment, at = server) =>
  storeOf(at)`UPDATE gateway_payments SET expires_at = now() WHERE id = ${id}`
export const paidRows = async ({ id }: Payment): Promise<number> => {
  const activity = (await server.operator('GET', `/accounts/${merchant.accountId}/activity`)).json().activity
  return activity.filter((row: { action: string; target: string }) => row.action === 'payment.paid' && row.target === id).length
}
export const statusOf = async ({ id }: Payment, by = merchant): Promise<string> =>
  (await by.want<{ status: string }>(200, 'GET', `/gateway/payments/${id}`)).status
