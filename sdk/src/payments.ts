import type { CallOptions, Transport } from './transport.ts'
import type {
  ClaimedDelivery,
  ConfirmDeliveriesParams,
  CreatedPayment,
  CreatedPayments,
  CreatePaymentBatchParams,
  CreatePaymentParams,
  DeliveryResult,
  DeliveryResults,
  ExpectedTerms,
  ListedPayment,
  ListPaymentsParams,
  PaidPayment,
  Payment,
  PaymentPage,
  RedeemByInvoiceParams,
  RedeemedPayment,
  RedeemPaymentParams,
  ReleasedPayment,
  ReleasePaymentParams,
  ValidateByInvoiceParams,
  ValidatePaymentParams,
} from './types.ts'

export class Payments {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /**
   * Creates a payment and its challenge. With `idempotencyKey: null`, a retry may create a second payment, which stays unpaid; in exchange,
   * the service stores less for each payment.
   */
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

  /** Creates one payment for each of `protocols`, in that order: either all or none. `idempotencyKey` as in `create`. */
  async createBatch(
    params: CreatePaymentBatchParams,
    { idempotencyKey = crypto.randomUUID(), ...options }: CallOptions & { idempotencyKey?: string | null | undefined } = {},
  ): Promise<CreatedPayment[]> {
    const { payments } = await this.#transport.call<CreatedPayments>({
      ...options,
      method: 'POST',
      path: `${PATH}/batch`,
      body: params,
      idempotencyKey: idempotencyKey ?? undefined,
    })
    return payments
  }

  /** Checks whether a credential is valid and paid. Safe to repeat. Before you deliver, call `redeem`. */
  validate(
    id: string,
    credential: string,
    { expect, ...options }: CallOptions & { expect?: ExpectedTerms } = {},
  ): Promise<PaidPayment> {
    const body: ValidatePaymentParams = { credential, ...(expect === undefined ? {} : { expect }) }
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/validate`, body })
  }

  /**
   * Validates the credential and claims the delivery. After a lost response it retries with the same request id, so it claims
   * only once. If the call still fails, repeat it with the id in `error.details.requestId`.
   */
  redeem(id: string, params: RedeemPaymentParams, options: CallOptions = {}): Promise<RedeemedPayment> {
    const requestId = params.requestId ?? crypto.randomUUID()
    const body = { ...params, requestId }
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/redeem`, body, requestId })
  }

  /** `validate` for an x402 credential, which contains an invoice instead of an id. */
  validateByInvoice(params: ValidateByInvoiceParams, options: CallOptions = {}): Promise<PaidPayment> {
    return this.#transport.call({ ...options, method: 'POST', path: `${PATH}/validate`, body: params })
  }

  /** `redeem` for an x402 credential. The gateway waits up to 10 s for the money. */
  redeemByInvoice(params: RedeemByInvoiceParams, options: CallOptions = {}): Promise<RedeemedPayment> {
    const requestId = params.requestId ?? crypto.randomUUID()
    const body = { ...params, requestId }
    return this.#transport.call({ ...options, method: 'POST', path: `${PATH}/redeem`, body, requestId })
  }

  /** Confirms up to 100 deliveries that were redeemed with `holdSeconds`. Returns a result for each, in the same order. */
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

  /** Releases the claim on a delivery that failed. The credential can then be redeemed again with a new request id. */
  release(id: string, params: ReleasePaymentParams, options: CallOptions = {}): Promise<ReleasedPayment> {
    return this.#transport.call({ ...options, method: 'POST', path: `${pathOf(id)}/release`, body: params })
  }

  get(id: string, options: CallOptions = {}): Promise<Payment> {
    return this.#transport.call({ ...options, method: 'GET', path: pathOf(id) })
  }

  /** Returns one page, newest first. */
  list(params: ListPaymentsParams = {}, options: CallOptions = {}): Promise<PaymentPage> {
    return this.#transport.call({ ...options, method: 'GET', path: PATH, query: params })
  }

  /** Iterates over all payments, fetching pages as needed. */
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
