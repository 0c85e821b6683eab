import type { Network } from '../../../../protocol/src/bolt11.ts'
import { isObject } from '../../../../protocol/src/bytes.ts'
import { NotPaidError, PurchaseError } from '../errors.ts'
import type { Attempt, PaymentState, Wallet } from './wallet.ts'

/** Pays the invoice and returns its preimage in hex. Throws `NotPaidError` if it certainly did not pay. */
export type PayFunction = (invoice: string) => Promise<string | { preimage: string; feeSat?: number | undefined }>

export type CustomWallet = {
  pay: PayFunction
  /**
   * What the wallet knows about a payment that this program has asked for before: the preimage if it was made, `failed` if it was not and
   * no attempt is under way, undefined if the wallet does not know. Without this function, an interrupted payment stays unknown.
   */
  lookUp?: ((paymentHash: string) => Promise<string | 'failed' | undefined>) | undefined
  /** Invoices of any other network are refused. */
  network?: Network | undefined
  /** Names the wallet in kept purchases; needed if a program has several. */
  id?: string | undefined
}

export function customWallet({ pay, lookUp, network, id = 'function' }: CustomWallet): Wallet {
  return {
    noun: 'wallet',
    id,
    paysOnce: false,
    network: async () => network,
    ...(lookUp ? { lookUp: (paymentHash) => asked(lookUp, paymentHash) } : {}),
    pay: (invoice) => attempted(pay, invoice),
  }
}

async function attempted(pay: PayFunction, invoice: string): Promise<Attempt> {
  try {
    const answer: unknown = await pay(invoice)
    const { preimage, feeSat } = isObject(answer) ? answer : { preimage: answer, feeSat: undefined }
    if (typeof preimage !== 'string') return { is: 'unknown', cause: new TypeError('The wallet returned no preimage.') }
    return { is: 'paid', paid: { preimage: preimage.toLowerCase(), feeSat: typeof feeSat === 'number' ? feeSat : undefined } }
  } catch (error) {
    if (!(error instanceof NotPaidError)) return { is: 'unknown', cause: error }
    const message = `The wallet could not pay: ${error.message.replace(/\.$/, '')}.`
    return { is: 'failed', error: new PurchaseError('unpaid', 'payment_failed', message, { cause: error }) }
  }
}

async function asked(lookUp: NonNullable<CustomWallet['lookUp']>, paymentHash: string): Promise<PaymentState> {
  try {
    const answer = await lookUp(paymentHash)
    if (answer === undefined) return { is: 'unknown' }
    if (answer === 'failed') return { is: 'failed', completedAtMs: Date.now(), isFinal: true }
    return { is: 'paid', paid: { preimage: answer.toLowerCase(), feeSat: undefined } }
  } catch {
    return { is: 'unknown' }
  }
}
