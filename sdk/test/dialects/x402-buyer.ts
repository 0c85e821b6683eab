import { credentialOf, invoiceIn } from '../../../server/test/support/gateway.ts'
import type { Market } from '../paywall-harness.ts'

/** A customer who pays by x402. Nothing here uses the code under test. */

export const ALL = ['mpp', 'l402', 'x402'] as const

/** What a 402 requires, decoded. */
export const requiredBy = (answer: Response): any =>
  JSON.parse(Buffer.from(answer.headers.get('payment-required') ?? '', 'base64').toString())

export async function payX402(market: Market, challenge: string): Promise<string> {
  const { preimage } = await market.wallet.payInvoice({ invoice: invoiceIn(challenge) })
  return credentialOf({ protocol: 'x402', challenge }, preimage)
}

/** Requests a resource and pays. Returns the credential without presenting it. */
export async function buyX402(market: Market, url: string, init: RequestInit = {}): Promise<string> {
  const answer = await fetch(url, init)
  if (answer.status !== 402) throw new Error(`${answer.status} ${await answer.text()}`)
  return payX402(market, answer.headers.get('payment-required') ?? '')
}

export const presentX402 = (url: string, credential: string, { headers, ...init }: RequestInit = {}): Promise<Response> =>
  fetch(url, { ...init, headers: { ...(headers as Record<string, string>), 'payment-signature': credential } })

export const settlementIn = (answer: Response): any =>
  JSON.parse(Buffer.from(answer.headers.get('payment-response') ?? '', 'base64').toString())
