import { createHash } from 'node:crypto'
import { type SchemeNetworkClient, wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { decode } from 'light-bolt11-decoder'
import { expect } from 'vitest'

/** x402's packages have no scheme for Lightning, so this is one as its users would write it. Nothing here uses the code under test. */

const REGTEST = 'lnbtc:0f9188f13cb7b2c71f2a335e3a4fc328'
const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')

/** The hash of the request that the client is about to repeat. The members are in the order of the canonical form. */
const requestHashOf = (method: string, url: string, body: string): string =>
  sha256(JSON.stringify({ bodyHash: sha256(body), domain: 'x402:exact:lnbtc:bolt11:http:1', headers: [], method, url }))

/** A fetch that pays. It refuses to pay for any request but its own. */
export function x402Fetch(pay: (invoice: string) => Promise<{ preimage: string }>): typeof fetch {
  return async (input, init = {}) => {
    const { method = 'GET', body = '' } = init
    const requestHash = requestHashOf(method, String(input), String(body ?? ''))
    const scheme: SchemeNetworkClient = {
      scheme: 'exact',
      createPaymentPayload: async (x402Version, { amount, extra, maxTimeoutSeconds }) => {
        const invoice = String(extra.invoice)
        const { sections, expiry } = decode(invoice)
        const fieldOf = (name: string): unknown =>
          (sections as { name: string; value?: unknown }[]).find((one) => one.name === name)?.value
        expect(extra.requestHash).toBe(requestHash)
        expect([fieldOf('amount'), fieldOf('description_hash'), fieldOf('description'), expiry]).toEqual([
          amount,
          requestHash,
          undefined,
          maxTimeoutSeconds,
        ])
        const { preimage } = await pay(invoice)
        return { x402Version, payload: { preimage } }
      },
    }
    const client = x402Client.fromConfig({
      schemes: [{ network: REGTEST, client: scheme }],
      spendControls: { allowedAssets: [{ network: REGTEST, asset: 'BTC', maxAmountPerPayment: '10000' }] },
    })
    return wrapFetchWithPayment(fetch, client)(input, init)
  }
}
