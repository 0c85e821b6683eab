import { isObject } from '../../../protocol/src/bytes.ts'
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

/** An error of JSON.parse would quote the text, which may contain a credential. */
function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Throws if the text is not one: a purchase that cannot be read may have been paid, so it must not be taken for none. */
export function purchaseIn(text: string): Purchase {
  const value = objectIn(text) as Partial<Purchase> | undefined
  const { state, url, wallet, challenge, invoice, paymentHash } = value ?? {}
  if ([state, url, wallet, challenge, invoice, paymentHash].some((one) => typeof one !== 'string'))
    throw new TypeError('The store has an entry that is not a purchase.')
  return value as Purchase
}
