import { setTimeout as pause } from 'node:timers/promises'
import { judgeL402 } from '../../../protocol/src/l402.ts'
import { headerBeginningOf, judgeMpp } from '../../../protocol/src/mpp.ts'
import { Refusal } from '../../../protocol/src/refusal.ts'
import type { AccessTo } from '../nodes/access.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { isId } from '../platform/ids.ts'
import { primitives } from '../platform/primitives.ts'
import { Problem } from '../problems.ts'
import type { NodesWord, Settlements } from '../settlements/settlements.ts'
import type { Sql } from '../store/db.ts'
import { type Claim, claimDelivery, type Delivery, type ExpectedTerms } from '../store/deliveries.ts'
import { findPayment, markPaid, type PaidRow, type PaymentRow, type Proof, type Protocol, payProved } from '../store/payments.ts'
import { type Call, notFound } from './payments.ts'
import { Presented, problemOf } from './presented.ts'
import type { ProtocolKey, ProtocolKeys } from './protocol-keys.ts'
import { requireTerms } from './terms.ts'
import { type Life, thisMoment, VerifiedCache, verifiedKeyOf } from './verified-cache.ts'

export type PaidPayment = { id: string; protocol: Protocol; status: 'paid'; receipt?: string }
export type RedeemedPayment = PaidPayment & Omit<Delivery, 'receipt'>
export type ValidateParams = { credential: string; expect?: ExpectedTerms }
export type RedeemParams = ValidateParams & { requestId?: string; singleUse?: boolean; holdSeconds?: number }

/** The payer's node can be quicker to tell its owner than the payee's is to tell us. */
const SETTLEMENT_WAIT_MS = 2_000
const LATEST_SETTLEMENT_MS = 60_000
const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 400
/** Of a request that finds the delivery free and then taken, again and again. */
const MOST_TURNS = 10

export type ValidationDeps = { sql: Sql; protocolKeys: ProtocolKeys; accessTo: AccessTo; settlements: Settlements }

/** A settled payment whose credential is right, and until when that is. */
type Judged = { payment: PaymentRow; life: Life | undefined }

/** The judgement on what customers send back. */
export class Validation {
  readonly #deps: ValidationDeps
  readonly #verified = new VerifiedCache()

  constructor(deps: ValidationDeps) {
    this.#deps = deps
  }

  /**
   * A preimage proves that somebody knew it, and the payee's own node knows it before anyone pays. So the node's word that the invoice
   * was settled is needed too, and the store, not this function, decides who made the transition.
   */
  async validate(call: Call, id: string, { credential, expect }: ValidateParams): Promise<PaidPayment> {
    const { sql, protocolKeys } = this.#deps
    // Not a valid id, so it cannot match. It could also run on into the credential.
    if (!isId('pay', id)) throw notFound()
    const key = verifiedKeyOf(call, id, credential)
    // What is remembered does not tell the terms.
    const known = expect ? undefined : this.#verified.get(key)
    if (known) return paidView(known)
    // Most credentials are of the present key, and come when their payment is settled: then one statement does it all.
    const presented = new Presented(credential)
    const proof = expect ? undefined : proofOf(presented, protocolKeys.current)
    const proved = proof && (await payProved(sql, call, id, proof))
    if (proved) this.#verified.set(key, proved)
    const paid = proved ?? (await this.#validateSlowPath(call, id, key, presented, expect))
    crashpoint('validate: paid')
    return paidView(paid)
  }

  async #validateSlowPath(
    call: Call,
    id: string,
    key: string,
    presented: Presented,
    expect: ExpectedTerms | undefined,
  ): Promise<PaidRow> {
    const { payment, life } = await this.#judged(call, id, presented)
    requireTerms(payment, expect)
    if (!payment.isPaid) await markPaid(this.#deps.sql, id, call.actor)
    const { protocol, receipt } = payment
    this.#verified.set(key, { id, protocol, receipt }, life)
    return payment
  }

  /** Validates, and claims the delivery: so a merchant without a database delivers once. */
  async redeem(call: Call, id: string, params: RedeemParams): Promise<RedeemedPayment> {
    const { credential, requestId = null, holdSeconds = null, expect } = params
    if (holdSeconds !== null && requestId === null)
      throw new Problem('bad_request', 'The field "requestId" is missing: only its request can confirm or release what it holds.')
    if (!isId('pay', id)) throw notFound()
    const { sql, protocolKeys } = this.#deps
    const claim = { requestId, holdSeconds }
    const presented = new Presented(credential)
    const proof = proofOf(presented, protocolKeys.current)
    const proved = proof && (await claimDelivery(sql, call, id, claim, expect, proof))
    const redeemed = proved ? redeemedView(id, 'mpp', proved) : await this.#redeemSlowPath(call, id, presented, params, claim)
    crashpoint('redeem: claimed')
    return redeemed
  }

  /** Reads the payment, and so can tell what is wrong. Again when another request had the delivery and is already done with it. */
  async #redeemSlowPath(
    call: Call,
    id: string,
    presented: Presented,
    params: RedeemParams,
    claim: Claim,
  ): Promise<RedeemedPayment> {
    let { payment } = await this.#judged(call, id, presented)
    crashpoint('redeem: settled')
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      requireTerms(payment, params.expect)
      const { protocol, redeemedAt } = payment
      const isReusable = protocol === 'l402' && params.singleUse !== true
      if (isReusable && redeemedAt !== null) return redeemedView(id, protocol, { ...payment, redeemedAt })
      if (!isReusable) requireClaimable(payment, claim.requestId)
      const claimed = await claimDelivery(this.#deps.sql, call, id, isReusable ? reusableClaim(payment, claim) : claim)
      if (claimed) return redeemedView(id, protocol, claimed)
      payment = await this.#find(call, id)
    }
    throw deliveryInProgress(1)
  }

  async #find(call: Call, id: string): Promise<PaymentRow> {
    const payment = await findPayment(this.#deps.sql, call.accountId, id)
    if (!payment) throw notFound()
    return payment
  }

  async #judged(call: Call, id: string, presented: Presented): Promise<Judged> {
    const since = thisMoment()
    const payment = await this.#find(call, id)
    const endMs = await this.#judge(payment, presented)
    const life = endMs === undefined ? undefined : { since, forMs: endMs - payment.nowMs }
    return { payment: payment.isSettled ? payment : await this.#settled(call, payment), life }
  }

  /** Returns when every byte of it is right: the end of its own time, if it has one. */
  async #judge(payment: PaymentRow, presented: Presented): Promise<number | undefined> {
    const key = await this.#deps.protocolKeys.find(payment.protocolKeyId)
    const { id, challenge, paymentHash, amountSat, tokenId, nowMs } = payment
    if (tokenId !== null) {
      const issued = { paymentId: id, paymentHash, tokenId }
      const read = presented.l402()
      if (read instanceof Refusal) throw problemOf(read)
      const endSeconds = judgeL402(primitives, read, issued, key.rootKeyOf(id), Math.floor(nowMs / 1000))
      if (endSeconds instanceof Refusal) throw problemOf(endSeconds)
      return endSeconds * 1000
    }
    const claimed = presented.mppClaim(key)
    const refusal = claimed instanceof Refusal ? claimed : judgeMpp(primitives, claimed, { challenge, paymentHash, amountSat })
    if (refusal) throw problemOf(refusal)
    return undefined
  }

  /** The payment as it is once its settlement is recorded; throws when it is not settled. */
  async #settled(call: Call, payment: PaymentRow): Promise<PaymentRow> {
    const isExpired = payment.nowMs >= payment.expiresAtMs
    // Who paid in the last second comes just after it: told 410 they would pay again. Later on nothing can still be on its way.
    const isLongExpired = payment.nowMs >= payment.expiresAtMs + LATEST_SETTLEMENT_MS
    const word = await this.#askNode(payment, isLongExpired ? 0 : SETTLEMENT_WAIT_MS)
    // The node's event may have come meanwhile, also when the node has not answered.
    const again = await this.#find(call, payment.id)
    if (again.isSettled) return again
    if (word !== 'unpaid')
      throw new Problem('payment_service_unavailable', 'The node does not tell whether it was paid. Try again shortly.')
    if (isExpired)
      throw new Problem('payment_expired', 'The challenge has expired, and was not paid.', {
        details: { problem: 'https://paymentauth.org/problems/lightning/expired-invoice' },
      })
    throw new Problem('invalid_payment_credential', 'The node does not report the payment as received yet. Try again shortly.', {
      details: { reason: 'not_settled', problem: 'https://paymentauth.org/problems/verification-failed' },
    })
  }

  async #askNode(payment: PaymentRow, waitMs: number): Promise<NodesWord> {
    const node = await this.#deps.accessTo(payment.nodeId)
    if (!node) return 'unreachable'
    const deadline = performance.now() + waitMs
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      // However little of the wait is left: an ask that is cut short tells nothing, and would be a 502.
      const word = await this.#deps.settlements.askTogether(payment, node, SETTLEMENT_WAIT_MS)
      if (word !== 'unpaid' || performance.now() + pauseMs > deadline) return word
      await pause(pauseMs)
    }
  }
}

/** Throws what keeps this request from the delivery, as the payment was read. */
function requireClaimable(payment: PaymentRow, requestId: string | null): void {
  const { delivery, redeemRequestId, releasedRequestIds, heldForMs } = payment
  if (requestId !== null && releasedRequestIds.includes(requestId))
    throw new Problem('not_claimed', 'This requestId has released the delivery. Each attempt needs a new one.')
  if (delivery === 'none' || (requestId !== null && requestId === redeemRequestId)) return
  if (delivery === 'done') throw new Problem('already_redeemed', 'This payment was redeemed already, by another request.')
  throw deliveryInProgress(Math.max(1, Math.ceil((heldForMs ?? 0) / 1000)))
}

const deliveryInProgress = (seconds: number): Problem =>
  new Problem('delivery_in_progress', 'Another request is delivering this payment. Try again when its time is over.', {
    headers: { 'retry-after': String(seconds) },
  })

/** Final, since there is nothing that a second request would wait for. A request that released stays one that can release nothing. */
function reusableClaim({ releasedRequestIds }: PaymentRow, { requestId }: Claim): Claim {
  const isReleased = requestId !== null && releasedRequestIds.includes(requestId)
  return { requestId: isReleased ? null : requestId, holdSeconds: null }
}

/** Undefined: it is not MPP, or of another key. What is wrong with it is for the judge to say. */
function proofOf(presented: Presented, key: ProtocolKey): Proof | undefined {
  const claim = presented.mppClaim(key)
  if (claim instanceof Refusal) return undefined
  return { challengeBeginning: headerBeginningOf(claim.challenge.id), paymentHash: claim.paymentHash }
}

function paidView({ id, protocol, receipt }: PaidRow): PaidPayment {
  return { id, protocol, status: 'paid', ...(receipt === null ? {} : { receipt }) }
}

function redeemedView(id: string, protocol: Protocol, delivery: Delivery): RedeemedPayment {
  const { nodeId, amountSat, description, resource, redeemedAt, receipt } = delivery
  return { ...paidView({ id, protocol, receipt }), nodeId, amountSat, description, resource, redeemedAt }
}
