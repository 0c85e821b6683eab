import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { isObject } from '../../../protocol/src/bytes.ts'
import {
  DUPLICATE_SETTLEMENT,
  INVOICE_NOT_SETTLED,
  readX402,
  readX402Payload,
  requirementsIn,
  X402_VERSION,
  type X402Payment,
  X402Refusal,
  x402NetworkOf,
  x402Response,
} from '../../../protocol/src/x402.ts'
import { judgeX402 } from '../../../protocol/src/x402-checks.ts'
import { isNodeKey } from '../lightning/invoice-signature.ts'
import { primitives } from '../platform/primitives.ts'
import { Problem } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import type { ExpectedTerms } from '../store/payments/deliveries.ts'
import { findIdByInvoice, findPayment, type PaymentRow } from '../store/payments/payments.ts'
import type { IssuerDeps } from './issue.ts'
import type { Call } from './payments.ts'
import { PresentedPayment } from './presented.ts'
import { deliveryProblem, refusalProblem } from './refusals.ts'
import { mismatchOf } from './terms.ts'
import {
  type ClaimParams,
  claimOf,
  type PaidPayment,
  type RedeemedPayment,
  type ValidateParams,
  type Validation,
} from './validation.ts'

export type ValidateByInvoiceParams = ValidateParams & { requestHash: string }
export type RedeemByInvoiceParams = ClaimParams & { credential: string; requestHash: string }
export type FacilitatorParams = {
  x402Version: number
  paymentPayload: Record<string, unknown>
  paymentRequirements: Record<string, unknown>
}
export type Verification = { isValid: boolean; invalidReason?: string }
export type Settlement = { success: boolean; errorReason?: string; transaction: string; network: string }
export type Supported = {
  kinds: { x402Version: number; scheme: string; network: string; extra: Record<string, unknown> }[]
  extensions: string[]
  signers: Record<string, unknown>
}

/** Also used for an invoice of another account. */
const NOT_OURS = 'invalid_exact_lnbtc_invoice_payee_mismatch'
const OTHER_REQUEST = 'invalid_exact_lnbtc_request_mismatch'

/** `as_issued`: what the challenge required. */
type Required = { requestHash: string } | { requirements: Record<string, unknown> } | 'as_issued'
type Found = { id: string; presented: PresentedPayment }

export type X402Deps = { sql: Sql; network: IssuerDeps['network']; validation: Validation }

/** x402 credentials contain no id. The payment is found by its invoice, and then redeemed like any other. */
export class X402 {
  readonly #deps: X402Deps

  constructor(deps: X402Deps) {
    this.#deps = deps
  }

  async redeem(call: Call, params: RedeemByInvoiceParams): Promise<RedeemedPayment & { paymentResponse: string }> {
    const { credential, requestHash, ...claim } = params
    // A bad request takes precedence over a bad credential.
    claimOf(claim)
    const { id, presented } = await this.#findBy(call, credential, requestHash)
    const redeemed = await this.#explaining(call, { id, presented }, claim.expect, () =>
      this.#deps.validation.redeemPresented(call, id, presented, claim),
    )
    return { ...redeemed, paymentResponse: x402Response(hashIn(presented.payment) ?? '', this.#network()) }
  }

  async validate(call: Call, { credential, requestHash, expect }: ValidateByInvoiceParams): Promise<PaidPayment> {
    const { id, presented } = await this.#findBy(call, credential, requestHash)
    return this.#explaining(call, { id, presented }, expect, () =>
      this.#deps.validation.validatePresented(call, id, presented, expect),
    )
  }

  supported(): Supported {
    const network = x402NetworkOf(this.#deps.network)
    const extra = { assetTransferMethod: 'bolt11', paymentFlow: 'upfront' }
    const kinds = network === undefined ? [] : [{ x402Version: X402_VERSION, scheme: 'exact', network, extra }]
    return { kinds, extensions: [], signers: {} }
  }

  async verify(call: Call, params: FacilitatorParams): Promise<Verification> {
    const invalidReason = await reasonOf(async () => {
      const { id, presented } = await this.#findFor(call, params)
      const { payment } = await this.#deps.validation.judge(call, id, presented, undefined)
      if (payment.delivery !== 'none') throw duplicate()
    })
    return invalidReason === undefined ? { isValid: true } : { isValid: false, invalidReason }
  }

  /** Claims the delivery for good. A repeated call looks the same as a replay, so it is refused too. */
  async settle(call: Call, params: FacilitatorParams): Promise<Settlement> {
    let transaction = ''
    const errorReason = await reasonOf(async () => {
      const { id, presented } = await this.#findFor(call, params)
      await this.#deps.validation.redeemPresented(call, id, presented, {})
      transaction = hashIn(presented.payment) ?? ''
    })
    const network = this.#network()
    return errorReason === undefined
      ? { success: true, transaction, network }
      : { success: false, errorReason, transaction: '', network }
  }

  /**
   * Adds the id to a refusal: the credential has none, and the seller may want to look the payment up. If the hash of the request
   * does not match, the refusal also says whether the payment is still unused. The shop may have hashed the request differently,
   * and then must not ask the customer to pay again.
   */
  async #explaining<T>(call: Call, found: Found, expect: ExpectedTerms | undefined, work: () => Promise<T>): Promise<T> {
    return naming(found.id, async () => {
      try {
        return await work()
      } catch (error) {
        const isOtherRequest = error instanceof Problem && error.details.errorReason === OTHER_REQUEST
        if (isOtherRequest && (await this.#isUnused(call, found, expect))) error.details.settled = true
        throw error
      }
    })
  }

  /**
   * Whether the payment is valid for the request it was issued for, has the expected terms (`minAmountSat` is ignored), and is
   * unused. Throws if another request holds the delivery, if the settlement is not known yet, or if the payment has expired.
   */
  async #isUnused(call: Call, { id, presented }: Found, expect: ExpectedTerms = {}): Promise<boolean> {
    const { minAmountSat: _price, ...terms } = expect
    const found = await findPayment(this.#deps.sql, call.accountId, id)
    if (!found || mismatchOf(found, terms).length > 0) return false
    const { payment } = presented
    const asIssued = new PresentedPayment(payment, (row) => judge(payment, 'as_issued', row))
    try {
      const { payment: granted } = await this.#deps.validation.judge(call, id, asIssued, undefined)
      if (granted.delivery === 'held') throw deliveryProblem('in_progress', granted)
      return granted.delivery === 'none'
    } catch (error) {
      if (
        error instanceof Problem &&
        error.code === 'invalid_payment_credential' &&
        error.details.errorReason !== INVOICE_NOT_SETTLED
      )
        return false
      throw error
    }
  }

  #network(): string {
    return x402NetworkOf(this.#deps.network) ?? ''
  }

  async #findFor(call: Call, { x402Version, paymentPayload, paymentRequirements }: FacilitatorParams): Promise<Found> {
    if (x402Version !== X402_VERSION) throw refused(new X402Refusal('invalid_x402_version'))
    const found = await this.#find(call, readX402Payload(paymentPayload), { requirements: paymentRequirements })
    if (found instanceof X402Refusal) throw refused(found)
    return found
  }

  async #findBy(call: Call, credential: string, requestHash: string): Promise<Found> {
    const found = await this.#find(call, readX402(credential), { requestHash })
    if (!(found instanceof X402Refusal)) return found
    throw refusalProblem(found.errorReason === NOT_OURS ? 'gateway_payment_not_found' : 'invalid_payment_credential', found)
  }

  /** A credential that belongs to no payment of this account is judged here. Any other is judged after its payment was read. */
  async #find(
    { accountId }: Call,
    read: X402Payment | X402Refusal,
    required: Exclude<Required, 'as_issued'>,
  ): Promise<Found | X402Refusal> {
    if (read instanceof X402Refusal) return read
    const hash = hashIn(read)
    const id = hash === undefined ? undefined : await findIdByInvoice(this.#deps.sql, accountId, Buffer.from(hash, 'hex'))
    if (id !== undefined) return { id, presented: new PresentedPayment(read, (payment) => judge(read, required, payment)) }
    // Nothing is stored for this invoice, so the credential is compared with its own requirements. The check of the invoice's
    // signature always fails, with NOT_OURS: the invoice was not issued for this account.
    const itself = 'requirements' in required ? required.requirements : withHash(read.accepted, required.requestHash)
    const context = { nowSeconds: Math.floor(Date.now() / 1000), isNodeKey, isSignedBy: () => false }
    const judged = judgeX402(primitives, read, itself, context)
    return judged instanceof X402Refusal ? judged : new X402Refusal(NOT_OURS)
  }
}

/**
 * The invoice was checked when the node created it, so here it only has to be the stored one. The seller sends either the
 * complete requirements, or the hash of the request, which replaces the hash in the stored requirements.
 */
function judge(presented: X402Payment, required: Required, { challenge, nowMs, isPaid }: PaymentRow): X402Refusal | undefined {
  const stored = requirementsIn(challenge)
  const requirements = requirementsFor(required, stored)
  const judged = judgeX402(primitives, presented, requirements, {
    nowSeconds: Math.floor(nowMs / 1000),
    isNodeKey,
    isSignedBy: (invoice, payTo) => invoice === stored.extra.invoice && payTo === stored.payTo,
  })
  if (!(judged instanceof X402Refusal)) return undefined
  // A payment that was accepted in time no longer expires. Its response may have been lost, or its delivery may have failed, so
  // only the claim decides.
  return judged.reason === 'expired' && isPaid ? undefined : judged
}

function requirementsFor(required: Required, stored: Record<string, unknown>): Record<string, unknown> {
  if (required === 'as_issued') return stored
  return 'requirements' in required ? required.requirements : withHash(stored, required.requestHash)
}

const withHash = (requirements: Record<string, unknown>, requestHash: string): Record<string, unknown> => ({
  ...requirements,
  extra: { ...(isObject(requirements.extra) ? requirements.extra : {}), requestHash },
})

/** The payment hash of the invoice that was paid, if it can be read. */
function hashIn({ accepted }: X402Payment): string | undefined {
  const { invoice } = isObject(accepted.extra) ? accepted.extra : {}
  return typeof invoice === 'string' ? readInvoice(invoice)?.paymentHash : undefined
}

const refused = (refusal: X402Refusal): Problem => refusalProblem('invalid_payment_credential', refusal)

const duplicate = (): Problem =>
  new Problem('already_redeemed', 'This payment was already redeemed.', { details: { errorReason: DUPLICATE_SETTLEMENT } })

async function naming<T>(paymentId: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem) error.details.paymentId = paymentId
    throw error
  }
}

/** The x402 reason for a refusal; undefined if the work was not refused. Any other error is thrown. */
async function reasonOf(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { errorReason } = error.details
    if (typeof errorReason === 'string') return errorReason
    // A delivery that is held may still be released, but a settlement cannot wait for that.
    if (error.code === 'delivery_in_progress') return DUPLICATE_SETTLEMENT
    throw error
  }
}
