import { isSignedWith, receivedPaymentIn } from '../lightning/phoenixd/events.ts'
import type { Settlements } from '../settlements/settlements.ts'
import type { AccessTo } from './access.ts'

/** Resolves to false if that node did not sign the event. */
export type ReceiveNodeEvent = (nodeId: string, body: Buffer, signature: string) => Promise<boolean>

/** Accepts every event that its node has signed. An event about a payment that is not ours has no effect. */
export function nodeEventReceiver(accessTo: AccessTo, settlements: Settlements): ReceiveNodeEvent {
  return async (nodeId, body, signature) => {
    const node = await accessTo(nodeId)
    const secret = node?.webhookSecret()
    if (!node || secret === undefined || !isSignedWith(secret, body, signature)) return false
    const paymentHash = receivedPaymentIn(body)
    if (paymentHash) await settlements.followHint({ nodeId, paymentHash }, node)
    return true
  }
}
