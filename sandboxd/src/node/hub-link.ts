import type { Delivery, DeliveryAnswer } from '../delivery.ts'
import { CallFailed, JsonClient } from '../json-client.ts'
import type { HubAddress } from '../options.ts'

const REGISTER_TIMEOUT_MS = 5_000
/** Longer than the hub waits for a recipient, so that the hub's "unknown" arrives before the node's own timeout. */
const DELIVER_TIMEOUT_MS = 15_000

/** A node's connection to the hub: announces its address and hands over payments to relay. */
export class HubLink {
  readonly #hub: HubAddress
  readonly #client = new JsonClient()

  constructor(hub: HubAddress) {
    this.#hub = hub
  }

  /** Undefined on success, otherwise what went wrong. */
  async register(self: { nodeId: string; controlPort: number; controlToken: string }): Promise<string | undefined> {
    try {
      const answer = await this.#client.post(this.#hub, '/register', self, REGISTER_TIMEOUT_MS)
      return answer.status === 200 ? undefined : `the hub answered ${answer.status}: ${String(answer.body.error)}`
    } catch (error) {
      if (error instanceof CallFailed) return `the hub cannot be reached: ${error.message}`
      throw error
    }
  }

  deliver(delivery: Delivery): Promise<DeliveryAnswer> {
    return deliverOver(this.#client, this.#hub, '/relay', delivery, DELIVER_TIMEOUT_MS)
  }

  close(): void {
    this.#client.close()
  }
}

/** The only place that translates the outcome of an HTTP call into the outcome of a payment. */
export async function deliverOver(
  client: JsonClient,
  target: HubAddress,
  path: string,
  delivery: Delivery,
  timeoutMs: number,
): Promise<DeliveryAnswer> {
  try {
    const { status, body } = await client.post(target, path, delivery, timeoutMs)
    // Rejected before it was carried out: another process may now use the port of a node that has stopped.
    if (status === 401 || status === 404 || status === 405) return { outcome: 'unreachable' }
    if (status !== 200) return { outcome: 'unknown' }
    if (body.outcome === 'paid' && typeof body.preimage === 'string') return { outcome: 'paid', preimage: body.preimage }
    if (body.outcome === 'refused' && typeof body.reason === 'string') return { outcome: 'refused', reason: body.reason }
    return { outcome: body.outcome === 'unreachable' ? 'unreachable' : 'unknown' }
  } catch (error) {
    if (error instanceof CallFailed) return { outcome: error.mayHaveArrived ? 'unknown' : 'unreachable' }
    throw error
  }
}

const HEX32 = /^[0-9a-f]{64}$/

/** Checks every field, because the body comes from the network. Undefined if it is not a valid delivery. */
export function parseDelivery(body: Record<string, unknown>): Delivery | undefined {
  const { paymentId, recipient, paymentHash, paymentSecret, amountMsat, again } = body
  if (typeof paymentId !== 'string' || !/^[0-9a-f-]{36}$/.test(paymentId)) return undefined
  if (typeof recipient !== 'string' || !/^[0-9a-f]{66}$/.test(recipient)) return undefined
  if (typeof paymentHash !== 'string' || !HEX32.test(paymentHash)) return undefined
  if (typeof paymentSecret !== 'string' || !HEX32.test(paymentSecret)) return undefined
  if (typeof amountMsat !== 'number' || !Number.isSafeInteger(amountMsat) || amountMsat <= 0) return undefined
  if (typeof again !== 'boolean') return undefined
  return { paymentId, recipient, paymentHash, paymentSecret, amountMsat, again }
}
