import { setTimeout as pause } from 'node:timers/promises'
import type { AskableNode } from '../settlements/askable-node.ts'
import type { SettlementAnswer, Settlements } from '../settlements/settlements.ts'
import type { PaymentRow } from '../store/payments/payments.ts'

/** The payer's node may report the payment before the payee's node does. */
const SETTLEMENT_WAIT_MS = 2_000
/**
 * Ten seconds in total, with the last query. Most x402 clients present their payment only once, so a longer wait is worthwhile.
 */
const X402_WAIT_MS = 8_000
const LATEST_SETTLEMENT_MS = 60_000
const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 400

export type QuestionDeps = {
  /** Undefined: no such node. */
  accessTo: (nodeId: string) => Promise<AskableNode | undefined>
  settlements: Settlements
}

/** Asks the payment's node until it reports the payment as settled, for a few seconds at most. */
export async function askUntilSettled(deps: QuestionDeps, payment: PaymentRow): Promise<SettlementAnswer> {
  const node = await deps.accessTo(payment.nodeId)
  if (!node) return 'unreachable'
  const deadline = performance.now() + waitMsFor(payment)
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    // Always use the full timeout: a query that is cut short has no result and would become a 502.
    const word = await deps.settlements.askTogether(payment, node, SETTLEMENT_WAIT_MS)
    if (word !== 'unpaid' || performance.now() + pauseMs > deadline) return word
    await pause(pauseMs)
  }
}

/**
 * A customer who paid just before the expiry may arrive just after it, and would pay again if the response were a 410. After
 * LATEST_SETTLEMENT_MS, no payment can still be in flight, and the node is asked once.
 */
function waitMsFor({ protocol, nowMs, expiresAtMs }: PaymentRow): number {
  if (nowMs >= expiresAtMs + LATEST_SETTLEMENT_MS) return 0
  return protocol === 'x402' ? X402_WAIT_MS : SETTLEMENT_WAIT_MS
}
