import { invoiceExpiresAtSeconds } from '../../../protocol/src/bolt11.ts'
import { fromHex } from '../../../protocol/src/bytes.ts'
import type { Offer } from '../../../protocol/src/offers.ts'
import { pause } from '../waiting.ts'
import { type BuyerCrypto, sha256Hex } from './crypto/crypto.ts'
import { PurchaseError } from './errors.ts'
import type { Paid, PaymentState, Wallet } from './wallets/wallet.ts'

const FIRST_PAUSE_MS = 300
const LONGEST_PAUSE_MS = 5_000
/** How long to ask the wallet about a payment. */
const PATIENCE_MS = 120_000
/** If the wallet does not know the payment after this time, the request was lost, or is waiting inside the wallet. */
const UNHEARD_MS = 5_000
/** Clocks differ, so for this long after the invoice has expired, a request waiting in the wallet may still pay it. */
const EXPIRY_GRACE_MS = 60_000

export type SettleOptions = {
  crypto: Pick<BuyerCrypto, 'sha256'>
  /** Whether the wallet may have been asked to pay this invoice before. */
  isResumed: boolean
  signal: AbortSignal
  patienceMs?: number | undefined
  /** Called right before the wallet is asked to pay. If it throws, nothing is paid and the error is passed on. */
  beforePaying: () => Promise<void> | void
}

type Payable = Pick<Offer, 'invoice' | 'invoiceText'>

/** Pays the invoice, unless the wallet already has. `lapsed`: it was not paid and can no longer be. */
export async function settle(wallet: Wallet, offer: Payable, options: SettleOptions): Promise<Paid | 'lapsed'> {
  const { paymentHash } = offer.invoice
  const { crypto, isResumed, signal } = options
  const before: PaymentState = (await wallet.lookUp?.(paymentHash, signal)) ?? { is: 'unknown' }
  if (before.is === 'paid') return proven(crypto, wallet, paymentHash, before.paid)
  if (before.is === 'refused') throw before.error
  const outcome = new Outcome(wallet, paymentHash, before, options)
  if (before.is === 'pending') return outcome.learn()

  const isUnpaid = before.is === 'failed' || before.is === 'unheard' || !isResumed
  const expiredMs = Date.now() - invoiceExpiresAtSeconds(offer.invoice) * 1000
  if (expiredMs >= 0) {
    if (isUnpaid && (expiredMs > EXPIRY_GRACE_MS || !isResumed)) return 'lapsed'
    throw unknown(`The invoice has expired, but the ${wallet.noun} may have paid it, or may still pay it.`)
  }
  if (!isUnpaid && !wallet.paysOnce)
    throw unknown(`The ${wallet.noun} may have paid an earlier attempt, and does not say whether it did.`)

  await options.beforePaying()
  signal.throwIfAborted()
  const attempt = await wallet.pay(offer.invoiceText, paymentHash, signal)
  if (attempt.is === 'paid') return proven(crypto, wallet, paymentHash, attempt.paid)
  if (attempt.is === 'refused') return outcome.unlessMade(attempt.error)
  if (attempt.is === 'unknown') return outcome.learn(attempt.cause)
  throw attempt.error
}

/** Finds out what became of one payment. */
class Outcome {
  readonly #wallet: Wallet
  readonly #paymentHash: string
  readonly #options: SettleOptions
  /** What the wallet knew before this attempt. An attempt that had failed by then says nothing about this attempt. */
  #before: PaymentState

  constructor(wallet: Wallet, paymentHash: string, before: PaymentState, options: SettleOptions) {
    this.#wallet = wallet
    this.#paymentHash = paymentHash
    this.#before = before
    this.#options = options
  }

  /**
   * Throws the refusal only if the wallet did not pay: a proxy may have sent the request twice, and only the second one was
   * refused.
   */
  async unlessMade(refusal: PurchaseError): Promise<Paid> {
    const state = await this.#wallet.lookUp?.(this.#paymentHash, this.#options.signal)
    if (state?.is === 'unheard' || state?.is === 'failed') throw refusal
    return this.learn(refusal)
  }

  /** Asks the wallet until it knows the outcome. */
  async learn(cause?: unknown): Promise<Paid> {
    const { crypto, signal, patienceMs = PATIENCE_MS } = this.#options
    const { noun, lookUp } = this.#wallet
    if (!lookUp) throw unknown(`The ${noun} did not say whether it paid, and cannot be asked. It may have paid.`, cause)
    const startedMs = performance.now()
    for (
      let pauseMs = FIRST_PAUSE_MS;
      performance.now() < startedMs + patienceMs;
      pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)
    ) {
      const state = await lookUp.call(this.#wallet, this.#paymentHash, signal)
      if (state.is === 'paid') return proven(crypto, this.#wallet, this.#paymentHash, state.paid)
      if (state.is === 'pending') this.#before = state
      if (state.is === 'failed' && this.#isNew(state)) throw new PurchaseError('unpaid', 'payment_failed', 'The payment failed.')
      if (state.is === 'unheard' && performance.now() - startedMs > UNHEARD_MS)
        throw unknown(
          `The ${noun} does not know the payment, but may still make it: for example, it may be waiting for the block height.`,
          cause,
        )
      await pause(pauseMs, signal)
    }
    throw unknown(`The ${noun} does not report whether it paid. It may have paid.`, cause)
  }

  #isNew({ completedAtMs, isFinal = false }: { completedAtMs: number; isFinal?: boolean }): boolean {
    if (isFinal) return true
    if (this.#before.is === 'failed') return completedAtMs !== this.#before.completedAtMs
    return this.#before.is !== 'unknown'
  }
}

const unknown = (message: string, cause?: unknown): PurchaseError =>
  new PurchaseError('unknown', 'payment_unknown', message, { cause })

/** A wrong preimage would make a useless credential for real money, so check it before presenting it. */
function proven(crypto: SettleOptions['crypto'], { noun }: Wallet, paymentHash: string, paid: Paid): Paid {
  if (/^[0-9a-f]{64}$/.test(paid.preimage) && sha256Hex(crypto, fromHex(paid.preimage)) === paymentHash) return paid
  throw new PurchaseError(
    'unknown',
    'wrong_preimage',
    `The ${noun} reports the payment as made, but its preimage does not match the invoice.`,
    { details: { paymentHash } },
  )
}

/**
 * The old invoice must also have expired by the seller's clock, which the timestamp of the new invoice shows. Otherwise a request
 * that is still waiting in the wallet could pay the old invoice, and this call would pay the new one.
 */
export const mayReplace = (old: Payable['invoice'], { invoice }: Payable): boolean =>
  invoice.timestampSeconds > invoiceExpiresAtSeconds(old)
