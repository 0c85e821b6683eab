import type { Network } from '../../../../protocol/src/bolt11.ts'
import type { PurchaseError } from '../errors.ts'

export type Paid = { preimage: string; feeSat: number | undefined }

/**
 * What a wallet knows about a payment. `unheard`: it does not know the payment. `refused`: it rejects our password. `unknown`: it
 * did not say. `failed`: the attempt that ended at `completedAtMs` failed; with `isFinal`, all attempts failed and none is under
 * way.
 */
export type PaymentState =
  | { is: 'paid'; paid: Paid }
  | { is: 'failed'; completedAtMs: number; isFinal?: true }
  | { is: 'pending' }
  | { is: 'unheard' }
  | { is: 'refused'; error: PurchaseError }
  | { is: 'unknown' }

/**
 * How an attempt to pay ended. `failed`: the wallet says that the payment was not made. `refused`: the wallet or a proxy rejected
 * the request, but the payment may have been made. `unsent`: the wallet was not reached. `unknown`: the payment may or may not
 * have been made.
 */
export type Attempt =
  | { is: 'paid'; paid: Paid }
  | { is: 'failed' | 'refused' | 'unsent'; error: PurchaseError }
  | { is: 'unknown'; cause?: unknown }

export interface Wallet {
  /** What the wallet is called in messages. */
  readonly noun: 'node' | 'wallet'
  /** Names the wallet in kept purchases, without any secret. Only this wallet knows what happened to a payment. */
  readonly id: string
  /** Whether it pays a payment hash at most once, however often it is asked. If not, it is not asked again while the outcome is unknown. */
  readonly paysOnce: boolean
  /** The network it pays on; undefined if it does not say. */
  network?(signal: AbortSignal): Promise<Network | undefined>
  /** Absent if the wallet cannot be asked. */
  lookUp?(paymentHash: string, signal: AbortSignal): Promise<PaymentState>
  pay(invoice: string, paymentHash: string, signal: AbortSignal): Promise<Attempt>
}
