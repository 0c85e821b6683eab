import { jsonObjectIn } from '../../../../protocol/src/bytes.ts'
import { type Offer, offerIn } from '../../../../protocol/src/offers.ts'
import { api, freshKey } from '../../api/client.ts'
import type { GatewayPayment, NodeLive } from '../../api/types.ts'

export type Terms = { nodeId: string; amountSat: number; description: string; protocol: 'mpp' | 'l402' }
export type Issued = { id: string; protocol: 'mpp' | 'l402'; status: GatewayPayment['status']; challenge: string }
export type Redeemed = { id: string; protocol: string; status: string; receipt?: string; redeemedAt: number }

/** The progress of one purchase; each step uses the results of the previous ones. */
export type Run = {
  terms: Terms
  /** The node's balance before and after; null if unknown. */
  beforeSat?: number | null
  afterSat?: number | null
  issued?: Issued
  offer?: Offer
  payment?: { paymentHash: string; preimage: string }
  credential?: string
  redemption?: ReturnType<typeof redemptionOf>
  redeemed?: Redeemed
  receipt?: unknown
}

export const STEPS = ['issue', 'refuse', 'pay', 'answer', 'redeem', 'deliver'] as const
export type Step = (typeof STEPS)[number]

/** The resource sold in this demo. */
const RESOURCE = 'GET /report'

export const chargeOf = (terms: Terms) => ({ ...terms, resource: RESOURCE })

/** The terms of this request. Without `expect`, any paid credential of the account would be accepted, even for a cheaper resource. */
function redemptionOf({ nodeId, amountSat }: Terms, credential: string) {
  return { expect: { nodeId, resource: RESOURCE, minAmountSat: amountSat }, requestId: freshKey(), credential }
}

/** The next step; undefined if all are done. */
export function nextOf(run: Run | null): Step | undefined {
  if (!run?.issued) return 'issue'
  if (!run.offer) return 'refuse'
  if (!run.payment) return 'pay'
  if (!run.credential) return 'answer'
  if (!run.redeemed) return 'redeem'
  return run.receipt === undefined ? 'deliver' : undefined
}

/** Runs one step. The customer's steps run here in the browser, as they would in the customer's client. */
export async function take(step: Step, run: Run): Promise<Run> {
  switch (step) {
    case 'issue': {
      const beforeSat = await heldSat(run.terms.nodeId)
      const issued = await api.post<Issued>('/payments', chargeOf(run.terms), { idempotencyKey: freshKey() })
      return { ...run, beforeSat, issued }
    }
    case 'refuse':
      return { ...run, offer: offerIn(run.issued?.challenge ?? '') }
    case 'pay':
      return { ...run, payment: await api.post('/sandbox/pay', { invoice: run.offer?.invoiceText }) }
    case 'answer': {
      if (!run.offer || !run.payment) return run
      const credential = run.offer.credentialFor(run.payment.preimage)
      // Created once, so that a retry after a lost response uses the same request id.
      return { ...run, credential, redemption: redemptionOf(run.terms, credential) }
    }
    case 'redeem':
      return { ...run, redeemed: await api.post<Redeemed>(`/payments/${run.issued?.id}/redeem`, run.redemption) }
    case 'deliver': {
      const afterSat = await heldSat(run.terms.nodeId)
      return { ...run, afterSat, receipt: run.redeemed?.receipt ? jsonObjectIn(run.redeemed.receipt) : null }
    }
  }
}

/** Includes fee credit, because a node without a channel books small payments as fee credit. */
async function heldSat(nodeId: string): Promise<number | null> {
  const { balanceSat, feeCreditSat } = await api.get<NodeLive>(`/nodes/${nodeId}/live`)
  return balanceSat === null ? null : balanceSat + (feeCreditSat ?? 0)
}
