import type { CallOptions, Transport } from '../transport.ts'
import type {
  ChangeWebhookParams,
  CreatedWebhook,
  CreateWebhookParams,
  Delivery,
  DeliveryPage,
  ListDeliveriesParams,
  Replay,
  ReplayEventsParams,
  RotatedSecret,
  RotateSecretParams,
  TestResult,
  TestWebhookParams,
  Webhook,
  WebhookList,
} from './types.ts'

export class Webhooks {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /**
   * Creates a webhook. Store the secret: it is returned only once. Not retried if it may have succeeded, because a second webhook
   * would get every event as well.
   */
  create(params: CreateWebhookParams, options: CallOptions = {}): Promise<CreatedWebhook> {
    return this.#transport.call({ ...options, method: 'POST', path: PATH, body: params, whenUncertain: 'give up' })
  }

  async list(options: CallOptions = {}): Promise<Webhook[]> {
    const { webhooks } = await this.#transport.call<WebhookList>({ ...options, method: 'GET', path: PATH })
    return webhooks
  }

  get(id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.#transport.call({ ...options, method: 'GET', path: pathOf(id) })
  }

  /** Fields that are absent stay as they are. */
  update(id: string, params: ChangeWebhookParams, options: CallOptions = {}): Promise<Webhook> {
    return this.#transport.call({ ...options, method: 'PATCH', path: pathOf(id), body: params })
  }

  delete(id: string, options: CallOptions = {}): Promise<void> {
    return this.#transport.delete({ ...options, path: pathOf(id) })
  }

  /**
   * Replaces the secret. Store the new one: it is returned only once. Without `graceSeconds`, the old one stops signing at once.
   * Not retried if it may have succeeded, because a second rotation would end the grace period of the secret that your receiver
   * knows.
   */
  rotateSecret(id: string, params: RotateSecretParams = {}, options: CallOptions = {}): Promise<RotatedSecret> {
    const path = `${pathOf(id)}/rotate-secret`
    return this.#transport.call({ ...options, method: 'POST', path, body: params, whenUncertain: 'give up' })
  }

  /**
   * Sends a sample event now, with `test: true`, and returns what the receiver responded. Not retried if the event may have been
   * sent.
   */
  test(id: string, params: TestWebhookParams = {}, options: CallOptions = {}): Promise<TestResult> {
    const path = `${pathOf(id)}/test`
    return this.#transport.call({ ...options, method: 'POST', path, body: params, whenUncertain: 'give up' })
  }

  /** Returns one page with the attempts of each delivery, newest event first. */
  deliveries(id: string, params: ListDeliveriesParams = {}, options: CallOptions = {}): Promise<DeliveryPage> {
    return this.#transport.call({ ...options, method: 'GET', path: `${pathOf(id)}/deliveries`, query: params })
  }

  /** Sends one event again as soon as possible, with the same `webhook-id`. */
  redeliver(id: string, deliveryId: string, options: CallOptions = {}): Promise<Delivery> {
    const path = `${pathOf(id)}/deliveries/${encodeURIComponent(deliveryId)}/redeliver`
    return this.#transport.call({ ...options, method: 'POST', path })
  }

  /**
   * Sends the events of a period again, each with the same `webhook-id` as the first time. Not retried if it may have succeeded,
   * because a second replay would send them all once more.
   */
  replay(id: string, params: ReplayEventsParams, options: CallOptions = {}): Promise<Replay> {
    const path = `${pathOf(id)}/replay`
    return this.#transport.call({ ...options, method: 'POST', path, body: params, whenUncertain: 'give up' })
  }
}

const PATH = '/webhooks'
const pathOf = (id: string): string => `${PATH}/${encodeURIComponent(id)}`
