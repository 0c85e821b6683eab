import { beforeAll } from 'vitest'
import { newMerchant, type Protocol, storeOf } from './gateway.ts'
import { type Created, callNode, type Owner } from './nodes.ts'
import { type Answer, type Server, startServer } from './server.ts'

/** Two merchants: one with a shop, one with a stall. */

export const MAX_SAT = 9_007_199_254_740
export const LIFETIME = 300
export const PROTOCOLS: Protocol[] = ['mpp', 'l402']

export let server: Server
/** Owns the node `shop`, which is always ready. */
export let merchant: Owner
export let shop: Created
/** Another account, which owns the node `stall`. */
export let rival: Owner
export let stall: Created

beforeAll(async () => {
  // Nodes are free, so no treasury node has to start.
  server = await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
  ;[merchant, rival] = await Promise.all([newMerchant(server), newMerchant(server)])
  ;[shop, stall] = await Promise.all([merchant.createReady({ name: 'shop' }), rival.createReady({ name: 'stall' })])
})

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index))
export const wish = (more: object = {}): object => ({ nodeId: shop.node.id, amountSat: 10, description: 'A test', ...more })
export const ask = (json: unknown, by = merchant, headers: Record<string, string> = {}): Promise<Answer> =>
  by.send('POST', '/gateway/payments', { json, headers })
export const refusal = async (json: unknown, by = merchant): Promise<[number, string]> => {
  const answer = await ask(json, by)
  return [answer.status, answer.json().error?.code ?? answer.text]
}
export const BAD = [400, 'bad_request']
/** How many invoices the node was ever asked for. */
export const invoicesMade = async ({ node, credentials }: Created): Promise<number> =>
  (await callNode(node, credentials.password, 'GET', '/payments/incoming?all=true&limit=100000')).json().length
export const paymentsKept = async (): Promise<number> => {
  const [row] = await storeOf(server)`SELECT count(*)::int AS count FROM gateway_payments`
  return row?.count
}

/** A payment as the API returns it. */
export type Shown = {
  id: string
  protocol: Protocol
  status: string
  challenge?: string
  nodeId: string
  amountSat: number
  description: string
  createdAt: number
  expiresAt: number
  settledAt: number | null
  paidAt: number | null
}
