import { judgeL402 } from '../../../protocol/src/l402.ts'
import { headerBeginningOf, judgeMpp } from '../../../protocol/src/mpp.ts'
import { Refusal } from '../../../protocol/src/refusal.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { isId } from '../platform/ids.ts'
import { primitives } from '../platform/primitives.ts'
import { Problem } from '../problems.ts'
import type { NoteChange } from '../store/changes.ts'
import type { Sql } from '../store/db.ts'
import { type Claim, claimDelivery, type Delivery, type ExpectedTerms } from '../store/payments/deliveries.ts'
import { PaidBatches } from '../store/payments/paid-batches.ts'
import { findPayment, markPaid, type PaidRow, type PaymentRow, type Proof, type Protocol } from '../store/payments/payments.ts'
import { deliveryOutcome, type PaymentFacts, paymentOutcome } from './outcomes.ts'
import { type Call, notFound } from './payments.ts'
import { type Presented, PresentedHeader } from './presented.ts'
import type { ProtocolKeys } from './protocol-keys.ts'
import { deliveryInProgress, deliveryProblem, paymentProblem } from './refusals.ts'
import { askUntilSettled, type QuestionDeps } from './settlement-question.ts'
import { mismatchOf } from './terms.ts'
import { type Life, thisMoment, VerifiedCache, verifiedKeyOf } from './verified-cache.ts'

export type PaidPayment = { id: string; protocol: Protocol; status: 'paid'; receipt?: string }
export type RedeemedPayment = PaidPayment & Omit<Delivery, 'receipt'>
export type ValidateParams = { credential: string; expect?: ExpectedTerms }
export type ClaimParams = { requestId?: string; holdSeconds?: number; expect?: ExpectedTerms }
export type RedeemParams = ValidateParams & ClaimParams & { singleUse?: boolean }

/** Limits the attempts of a request that repeatedly finds the delivery free and then loses it to another request. */
const MOST_TURNS = 10

export type ValidationDeps = QuestionDeps & { sql: Sql; protocolKeys: ProtocolKeys; noteChange: NoteChange }

/** A settled payment with the expected terms and a valid credential, and how long the credential stays valid. */
type Granted = { payment: PaymentRow; life: Life | undefined }

/**
 * Judges the credentials that customers present. A preimage only proves that someone knew it, and the payee's node knows it before anyone
 * pays. So the node must also report the invoice as settled. A single statement then marks the payment paid, so only one of several
 * concurrent callers marks it.
 *
 * Most credentials are MPP, use the current key and arrive after the payment is settled: then that one statement is enough. It grants the
 * payment or does nothing. Every refusal comes from the tables in outcomes.ts, after the payment was read.
 */
export class Validation {
  readonly #deps: ValidationDeps
  readonly #verified = new VerifiedCache()
  readonly #paid: PaidBatches

  constructor(deps: ValidationDeps) {
    this.#deps = deps
    this.#paid = new PaidBatches(deps.sql)
  }

  async validate(call: Call, id: string, { credential, expect }: ValidateParams): Promise<PaidPayment> {
    // An invalid id matches nothing. In the cache key, its end could also be confused with the beginning of the credential.
    if (!isId('pay', id)) throw notFound()
    const key = verifiedKeyOf(call, id, credential)
    // The cache does not store the terms, so it cannot compare them with the expected ones.
    const known = expect ? undefined : this.#verified.get(key)
    if (known) return paidView(known)
    const presented = new PresentedHeader(credential)
    const proof = expect ? undefined : this.#proofIn(presented)
    const proved = proof && (await this.#paid.mark(call, id, proof))
    if (proved) this.#verified.set(key, proved)
    const paid = proved ?? (await this.#validateSlowPath(call, id, key, presented, expect))
    crashpoint('validate: paid')
    this.#deps.noteChange(call.accountId, 'payments', 'activity')
    return paidView(paid)
  }

  async #validateSlowPath(
    call: Call,
    id: string,
    key: string,
    presented: Presented,
    expect: ExpectedTerms | undefined,
  ): Promise<PaidRow> {
    const { payment, life } = await this.judge(call, id, presented, expect)
    if (!payment.isPaid) await markPaid(this.#deps.sql, id, call.actor)
    const { protocol, receipt } = payment
    this.#verified.set(key, { id, protocol, receipt }, life)
    return payment
  }

  /** `validate` for a credential that is not in an Authorization header. */
  async validatePresented(call: Call, id: string, presented: Presented, expect: ExpectedTerms | undefined): Promise<PaidPayment> {
    const { payment } = await this.judge(call, id, presented, expect)
    if (!payment.isPaid) await markPaid(this.#deps.sql, id, call.actor)
    this.#deps.noteChange(call.accountId, 'payments', 'activity')
    return paidView(payment)
  }

  /** Validates the credential and claims the delivery, so that a shop without a database delivers only once. */
  async redeem(call: Call, id: string, params: RedeemParams): Promise<RedeemedPayment> {
    const claim = claimOf(params)
    if (!isId('pay', id)) throw notFound()
    const presented = new PresentedHeader(params.credential)
    const proof = this.#proofIn(presented)
    const proved = proof && (await claimDelivery(this.#deps.sql, call, id, claim, params.expect, proof))
    const redeemed = proved ? redeemedView(id, 'mpp', proved) : await this.#redeemSlowPath(call, id, presented, params, claim)
    this.#noteRedeemed(call)
    return redeemed
  }

  /** `redeem` for a credential that is not in an Authorization header. */
  async redeemPresented(call: Call, id: string, presented: Presented, params: ClaimParams): Promise<RedeemedPayment> {
    const redeemed = await this.#redeemSlowPath(call, id, presented, params, claimOf(params))
    this.#noteRedeemed(call)
    return redeemed
  }

  #noteRedeemed(call: Call): void {
    crashpoint('redeem: claimed')
    this.#deps.noteChange(call.accountId, 'payments', 'activity')
  }

  /** A claim fails if another request got the delivery first. That request may have released it since, so the claim is tried again. */
  async #redeemSlowPath(
    call: Call,
    id: string,
    presented: Presented,
    { singleUse, expect }: ClaimParams & { singleUse?: boolean },
    claim: Claim,
  ): Promise<RedeemedPayment> {
    let { payment } = await this.judge(call, id, presented, expect)
    crashpoint('redeem: settled')
    const { protocol } = payment
    const use = protocol === 'l402' && singleUse !== true ? 'reusable' : 'single'
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const { requestId } = claim
      const hasReleased = requestId !== null && payment.releasedRequestIds.includes(requestId)
      const holder = requestId !== null && requestId === payment.redeemRequestId ? 'this request' : 'another'
      const outcome = deliveryOutcome({ use, delivery: payment.delivery, holder, hasReleased })
      if (outcome === 'deliver_again' && payment.redeemedAt !== null)
        return redeemedView(id, protocol, { ...payment, redeemedAt: payment.redeemedAt })
      if (outcome !== 'claim' && outcome !== 'claim_for_good') throw deliveryProblem(outcome, payment)
      // This request may have released the delivery before. A claim with its requestId could be released again.
      const forGood = { requestId: hasReleased ? null : requestId, holdSeconds: null }
      const claimed = await claimDelivery(this.#deps.sql, call, id, outcome === 'claim' ? claim : forGood)
      if (claimed) return redeemedView(id, protocol, claimed)
      payment = await this.#find(call, id)
    }
    throw deliveryInProgress(1)
  }

  /** Undefined: not MPP, or not issued with the current key. The slow path determines whether the credential is valid. */
  #proofIn(presented: Presented): Proof | undefined {
    const claim = presented.mppClaim(this.#deps.protocolKeys.current)
    if (claim instanceof Refusal) return undefined
    return { challengeBeginning: headerBeginningOf(claim.challenge.id), paymentHash: claim.paymentHash }
  }

  async #find(call: Call, id: string): Promise<PaymentRow> {
    const payment = await findPayment(this.#deps.sql, call.accountId, id)
    if (!payment) throw notFound()
    return payment
  }

  /** Gathers the facts, and throws unless they grant the payment. The node is never asked because of an invalid credential. */
  async judge(call: Call, id: string, presented: Presented, expect: ExpectedTerms | undefined): Promise<Granted> {
    const since = thisMoment()
    const read = await this.#find(call, id)
    const verified = await this.#verify(read, presented)
    const isRight = !(verified instanceof Refusal)
    // A late x402 credential is refused even if the money has arrived. The node is still asked: the refusal must say whether it
    // was paid.
    const isProved = isRight || (read.protocol === 'x402' && verified.reason === 'expired')
    const [payment, settlement] =
      isProved && !read.isSettled ? await this.#askForSettlement(call, read) : [read, 'settled' as const]
    const mismatch = expect ? mismatchOf(payment, expect) : []
    const facts: PaymentFacts = {
      credential: isRight ? 'right' : verified.reason,
      settlement,
      // x402 credentials are accepted for a while after the expiry. `#verify` refuses later ones.
      challenge: read.nowMs >= read.expiresAtMs && read.protocol !== 'x402' ? 'expired' : 'open',
      terms: mismatch.length === 0 ? 'expected' : 'other',
    }
    const outcome = paymentOutcome(facts)
    if (outcome !== 'granted' || !isRight)
      throw paymentProblem(outcome, { payment, mismatch, refusal: isRight ? undefined : verified })
    return { payment, life: verified.endMs === undefined ? undefined : { since, forMs: verified.endMs - read.nowMs } }
  }

  /** Verifies every byte of the credential, and returns when it expires, if it does. */
  async #verify(payment: PaymentRow, presented: Presented): Promise<{ endMs: number | undefined } | Refusal> {
    if (payment.protocol === 'x402') return presented.x402(payment) ?? { endMs: undefined }
    const key = await this.#deps.protocolKeys.find(payment.protocolKeyId)
    const { id, challenge, paymentHash, amountSat, tokenId, nowMs } = payment
    if (tokenId !== null) {
      const credential = presented.l402()
      if (credential instanceof Refusal) return credential
      const issued = { paymentId: id, paymentHash, tokenId }
      const endSeconds = judgeL402(primitives, credential, issued, key.rootKeyOf(id), Math.floor(nowMs / 1000))
      return endSeconds instanceof Refusal ? endSeconds : { endMs: endSeconds * 1000 }
    }
    const claim = presented.mppClaim(key)
    if (claim instanceof Refusal) return claim
    return judgeMpp(primitives, claim, { challenge, paymentHash, amountSat }) ?? { endMs: undefined }
  }

  /** Asks the payment's node, and returns the payment as it is afterwards. */
  async #askForSettlement(call: Call, payment: PaymentRow): Promise<[PaymentRow, PaymentFacts['settlement']]> {
    const word = await askUntilSettled(this.#deps, payment)
    // The node's event may have arrived meanwhile, even if the node did not answer.
    const again = await this.#find(call, payment.id)
    return [again, again.isSettled ? 'settled' : word === 'unpaid' ? 'unpaid' : 'unknown']
  }
}

/** Throws if the claim could be neither confirmed nor released. */
export function claimOf({
  requestId = null,
  holdSeconds = null,
}: {
  requestId?: string | null
  holdSeconds?: number | null
}): Claim {
  if (holdSeconds !== null && requestId === null)
    throw new Problem(
      'bad_request',
      'The field "requestId" is required with "holdSeconds": it is needed to confirm or release the delivery.',
    )
  return { requestId, holdSeconds }
}

function paidView({ id, protocol, receipt }: PaidRow): PaidPayment {
  return { id, protocol, status: 'paid', ...(receipt === null ? {} : { receipt }) }
}

function redeemedView(id: string, protocol: Protocol, delivery: Delivery): RedeemedPayment {
  const { nodeId, amountSat, description, resource, redeemedAt, receipt } = delivery
  return { ...paidView({ id, protocol, receipt }), nodeId, amountSat, description, resource, redeemedAt }
}
