import type { CredentialHeader, Offer } from '../../../protocol/src/offers.ts'
import { jsonIn } from '../json.ts'
import type { Credential } from './request.ts'

/**
 * `kept`: the wallet has not been asked to pay. `paying`: it may have been asked. `paid`: there is a credential. `answered`: the
 * server accepted the credential, but the body was not read to the end. `delivered`: the body was read to the end.
 */
export type PurchaseState = 'kept' | 'paying' | 'paid' | 'answered' | 'delivered'

/** What the store keeps of a purchase: enough to finish it after a crash at any time. */
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
  /** Set at delivery. If it is missing, the purchase is kept forever. */
  forgetAtMs?: number
}

/** The parts of a purchase that a program may see. They contain no secret. */
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
  constructor(name: string) {
    super(
      `The store’s entry ${name} cannot be read. Its purchase may have been paid, so it is not replaced. Check your wallet, then remove the entry to buy again.`,
    )
  }
}

/** Throws if the text is not a purchase: it may have been paid, so it must not count as missing. */
export function purchaseIn(text: string, name: string): Purchase {
  const value = jsonIn(text) as Partial<Purchase> | null | undefined
  const { state, url, wallet, challenge, invoice, paymentHash } = value ?? {}
  if ([state, url, wallet, challenge, invoice, paymentHash].some((one) => typeof one !== 'string'))
    throw new UnreadablePurchase(name)
  return value as Purchase
}
