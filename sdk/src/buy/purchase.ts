import type { CredentialHeader, Offer } from '../../../protocol/src/offers.ts'
import type { Credential } from './request.ts'

/**
 * `kept`: the wallet was not asked yet. `paying`: it may have been. `paid`: there is a credential. `answered`: the server has accepted it, but
 * the body was not read to its end. `delivered`: it was.
 */
export type PurchaseState = 'kept' | 'paying' | 'paid' | 'answered' | 'delivered'

/** What is kept about a purchase, before it is paid and after. It is enough to finish it after a crash at any time. */
export type Purchase = {
  state: PurchaseState
  method: string
  /** After all redirects. The credential is sent nowhere else. */
  url: string
  /** The id of the wallet that was asked to pay. Only this wallet knows what happened to the payment. */
  wallet: string
  protocol: Offer['protocol']
  header: CredentialHeader
  challenge: string
  invoice: string
  paymentHash: string
  amountSat: number
  feeSat?: number
  credential?: string
  createdAtMs: number
  /** Set when it is delivered. Never, without it. */
  forgetAtMs?: number
}

/** What a program may see of a purchase: no secret. */
export type PurchaseInfo = Pick<Purchase, 'state' | 'method' | 'url' | 'protocol' | 'paymentHash' | 'amountSat' | 'feeSat'>

export const infoOf = ({ state, method, url, protocol, paymentHash, amountSat, feeSat }: Purchase): PurchaseInfo => ({
  state,
  method,
  url,
  protocol,
  paymentHash,
  amountSat,
  ...(feeSat === undefined ? {} : { feeSat }),
})

export const credentialOf = ({ header, credential }: Purchase): Credential | undefined =>
  credential === undefined ? undefined : { header, credential }

export class UnreadablePurchase extends TypeError {
  constructor() {
    super('The store has an entry that is not a purchase. It may have been paid, so it is not replaced.')
  }
}

/** Throws if the text is not one: a purchase that cannot be read may have been paid, so it must not be taken for none. */
export function purchaseIn(text: string): Purchase {
  const value = parsed(text)
  const { state, url, wallet, challenge, invoice, paymentHash } = value ?? {}
  if ([state, url, wallet, challenge, invoice, paymentHash].some((one) => typeof one !== 'string')) throw new UnreadablePurchase()
  return value as Purchase
}

/** The parser's own error would quote the text, and with it a credential. */
function parsed(text: string): Partial<Purchase> | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
