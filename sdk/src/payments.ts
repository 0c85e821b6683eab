import type { CallOptions, Transport } from './transport.ts'
import type {
  ClaimedDelivery,
  ConfirmDeliveriesParams,
  CreatedPayment,
  CreatePaymentParams,
  DeliveryResult,
  DeliveryResults,
  ExpectedTerms,
  ListedPayment,
  ListPaymentsParams,
  PaidPayment,
  Payment,
  PaymentPage,
  RedeemedPayment,
  RedeemPaymentParams,
  ReleasedPayment,
  ReleasePaymentParams,
  ValidatePaymentParams,
} from './types.ts'

export class Payments {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** With `idempotencyKey: null` a lost answer makes a second payment, which nobody pays; the service has less to keep. */
  create(
    params: CreatePaymentParams,
    { idempotencyKey = crypto.randomUUID(), ...options }: CallOptions & { idempotencyKey?: string | null | undefined } = {},
  ): Promise<CreatedPayment> {
    return this.#transport.call({
      ...options,
      method: 'POST',
      path: PATH,
      body: params,
      idempotencyKey: idempotencyKey ?? undefined,
    })
  }

  /** Has this credential paid? It may be asked as often as you like; `redeem` is what to ask before you deliver. */
  validate(
    id: string,
    credential: string,
    { expect, ...options }: CallOptions & { expect?: ExpectedTerms } = {},
  ): Promise<PaidPayment> {
    const body: ValidatePaymentParams = { credential, ...(expect === undefined ? {} : { expect }) }
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/validate`, body })
  }

  /** Validates, and claims the delivery. A lost answer is asked for again under the same request id, so that it claims once. */
  redeem(id: string, params: RedeemPaymentParams, options: CallOptions = {}): Promise<RedeemedPayment> {
    const body = { ...params, requestId: params.requestId ?? crypto.randomUUID() }
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/redeem`, body })
  }

  /** Confirms deliveries that were redeemed with `holdSeconds`: at most 100, each with its result, in the same order. */
  async delivered(deliveries: ClaimedDelivery[], options: CallOptions = {}): Promise<DeliveryResult[]> {
    const body: ConfirmDeliveriesParams = { deliveries }
    const answer = await this.#transport.call<DeliveryResults>({
      ...options,
      method: 'POST',
      path: `${PATH}/delivered`,
      body,
    })
    return answer.deliveries
  }

  /** Gives a claimed delivery back after it failed: the credential is good again, for a new request id. */
  release(id: string, params: ReleasePaymentParams, options: CallOptions = {}): Promise<ReleasedPayment> {
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/release`, body: params })
  }

  get(id: string, options: CallOptions = {}): Promise<Payment> {
    return this.#transport.call({ ...options, method: 'GET', path: pathOf(id) })
  }

  /** One page, newest first. */
  list(params: ListPaymentsParams = {}, options: CallOptions = {}): Promise<PaymentPage> {
    return this.#transport.call({ ...options, method: 'GET', path: PATH, query: params })
  }

  /** All of them, page by page as you go. */
  async *all(params: ListPaymentsParams = {}, options: CallOptions = {}): AsyncGenerator<ListedPayment, void, undefined> {
    let { cursor } = params
    do {
      const page = await this.list({ limit: 100, ...params, ...(cursor === undefined ? {} : { cursor }) }, options)
      yield* page.payments
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
  }
}

const PATH = '/gateway/payments'
const pathOf = (id: string): string => `${PATH}/${encodeURIComponent(id)}`
