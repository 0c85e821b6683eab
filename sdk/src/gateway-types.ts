// Generated from contract/ by `npm run openapi`. Edit the contract, not this file.
/* Times are in Unix seconds, amounts in whole satoshis. */

/** A delivery and the request that claimed it. */
export type ClaimedDelivery = {
  /** Id of the payment, `pay_…`. */
  id: string
  /** The `requestId` that redeemed the payment. */
  requestId: string
}

/** Completed deliveries that were claimed with `holdSeconds`. */
export type ConfirmDeliveriesParams = {
  /** The deliveries to confirm. */
  deliveries: ClaimedDelivery[]
}

/** The result of one confirmation. */
export type DeliveryResult = {
  /** Id of the payment, `pay_…`. */
  id: string
  /** The `requestId` you passed. */
  requestId: string
  /** `not_claimed`: this `requestId` does not hold the delivery. */
  result: 'delivered' | 'not_claimed'
}

/** One result for each delivery, in the same order. */
export type DeliveryResults = {
  deliveries: DeliveryResult[]
}

/** The HTTP 402 protocol the customer pays with. */
export type Protocol = 'mpp' | 'l402' | 'x402'

/** Options of an MPP challenge. */
export type MppParams = {
  /** The client sends its credential in this header, and `Authorization` stays free for your own use. */
  header: 'Payment-Authorization'
}

/** What the client buys. */
export type X402ResourceParams = {
  /** The public URL that is sold. For `http:1`, the URL that was hashed. */
  url: string
  /** Defaults to the description of the payment. */
  description?: string
  /** The type of what is delivered. */
  mimeType?: string
}

/** How the request was hashed: `http:1` for an HTTP request, `mcp:1` for the call of an MCP tool. */
export type X402BindingProfile = 'http:1' | 'mcp:1'

/** `{ headers }` for `http:1`, `{ server, metadata }` for `mcp:1`. */
export type X402BindingParams = {
  /** `http:1` only: the lowercase names of the headers that were hashed, in ascending order. */
  headers?: string[]
  /** `mcp:1` only: the URI of the MCP server. */
  server?: string
  /** `mcp:1` only: the names of the members of `_meta` that were hashed, in ascending order. */
  metadata?: string[]
}

/** What an x402 payment is bound to. */
export type X402Params = {
  resource: X402ResourceParams
  /** The hash of the request that is sold. The invoice contains it as its description hash. */
  requestHash: string
  requestBindingProfile: X402BindingProfile
  requestBindingParams: X402BindingParams
}

/** What to charge for. `protocol` defaults to `mpp`. The fields `mpp` and `x402` are options for these protocols. */
export type CreatePaymentParams = {
  /** A ready node of this account, which receives the money. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to. Defaults to the description. */
  resource?: string
  protocol?: Protocol
  mpp?: MppParams
  x402?: X402Params
}

/** An entry of `accepts` in PAYMENT-REQUIRED. */
export type X402Requirements = {
  /** Always `exact`. */
  scheme: string
  /** The Lightning network, `lnbtc:` and the beginning of the hash of its first block. */
  network: string
  /** The price in millisatoshis. */
  amount: string
  /** Always `BTC`. */
  asset: string
  /** The public key of the node that is paid. */
  payTo: string
  /** The lifetime of the invoice. */
  maxTimeoutSeconds: number
  /** The invoice, and the request that it is bound to. */
  extra: Record<string, unknown>
}

/** A payment and its challenge. Keep the id: you need it to validate the credential. */
export type CreatedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: 'payment_required'
  /** The value of `WWW-Authenticate` for your own 402 response; for x402, that of `PAYMENT-REQUIRED`. */
  challenge: string
  /** x402 only: the entries of `accepts` in the challenge, decoded. */
  accepts?: X402Requirements[]
}

/** What to charge for, in several protocols. The field `x402` is required if `protocols` contains `x402`. */
export type CreatePaymentBatchParams = {
  /** A ready node of this account, which receives the money. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to. Defaults to the description. */
  resource?: string
  /** One payment is created for each. */
  protocols: Protocol[]
  mpp?: MppParams
  x402?: X402Params
}

/** One payment for each protocol, in the same order. The customer pays one of them; the others expire. */
export type CreatedPayments = {
  payments: CreatedPayment[]
}

/** `settled`: the node received the money, but no credential was validated. */
export type PaymentStatusFilter = 'payment_required' | 'paid' | 'expired' | 'settled'

/** `received`: the node has the money. Of these, `undelivered`: no delivery is claimed; `delivering`: one is claimed but not confirmed yet; `delivered`: it is final. `unfulfilled`: received more than ten minutes ago, but no credential was validated, or the delivery failed or was never confirmed. */
export type PaymentStateFilter = 'unpaid' | 'expired' | 'received' | 'undelivered' | 'delivering' | 'delivered' | 'unfulfilled'

/** Which payments to export. */
export type ExportPaymentsParams = {
  /** Only payments created at this time or later. Unix seconds. */
  from?: number
  /** Only payments created before this time. Unix seconds. */
  to?: number
  /** Only payments to this node. */
  nodeId?: string
  status?: PaymentStatusFilter
  state?: PaymentStateFilter
  protocol?: Protocol
  /** Only payments that this API key created. */
  keyId?: string
  /** Only payments of at least this price. */
  minAmountSat?: number
  /** Only payments of at most this price. */
  maxAmountSat?: number
  /** An id or its beginning, a payment hash, an invoice, or a part of the description. Case does not matter. */
  search?: string
}

/** `paid`: a credential was validated. `expired`: it can no longer be paid, and no payment has been reported; if one was made in time, it can still become `paid`. */
export type PaymentStatus = 'payment_required' | 'paid' | 'expired'

/** A payment and its challenge. */
export type Payment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: PaymentStatus
  /** The value of `WWW-Authenticate` for your own 402 response; for x402, that of `PAYMENT-REQUIRED`. */
  challenge: string
  /** The node that is paid. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to; null if it is the description. */
  resource: string | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** When it expires if unpaid. Unix seconds. */
  expiresAt: number
  /** When the node received the money. Unix seconds. */
  settledAt: number | null
  /** When a credential was first validated. Unix seconds. */
  paidAt: number | null
  /** When the delivery was claimed; null if it is unclaimed or was released. Unix seconds. */
  redeemedAt: number | null
}

/** `held`: claimed but not confirmed yet. `done`: final or confirmed. */
export type DeliveryState = 'none' | 'held' | 'done'

/** Which payments to list. */
export type ListPaymentsParams = {
  /** Maximum number of payments to return. */
  limit?: number
  /** `nextCursor` of the previous page. */
  cursor?: string
  status?: PaymentStatusFilter
  delivery?: DeliveryState
  /** Only payments to this node. */
  nodeId?: string
}

/** A payment, without its challenge. */
export type ListedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: PaymentStatus
  /** The node that is paid. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to; null if it is the description. */
  resource: string | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** When it expires if unpaid. Unix seconds. */
  expiresAt: number
  /** When the node received the money. Unix seconds. */
  settledAt: number | null
  /** When a credential was first validated. Unix seconds. */
  paidAt: number | null
  /** When the delivery was claimed; null if it is unclaimed or was released. Unix seconds. */
  redeemedAt: number | null
}

/** One page of payments, newest first. */
export type PaymentPage = {
  payments: ListedPayment[]
  /** Pass it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null
}

/** What this request sells. Absent fields are not compared. A payment that does not match is rejected, and this request does not use it up. */
export type ExpectedTerms = {
  /** The node that was paid. */
  nodeId?: string
  /** The resource it was created with, or the description if it has no resource. */
  resource?: string
  /** The description it was created with. */
  description?: string
  /** Exactly this price. */
  amountSat?: number
  /** At least this price. Useful if prices change between quote and payment. */
  minAmountSat?: number
}

/** The customer’s credential, and how to claim the delivery. */
export type RedeemPaymentParams = {
  /** The whole value of the customer’s `Authorization` header, or of the header you chose with `mpp.header`. */
  credential: string
  /** Your id for this attempt. Repeating it returns the same response, so you can retry when a response is lost. */
  requestId?: string
  /** L402 only: deliver once, as MPP always does. */
  singleUse?: boolean
  expect?: ExpectedTerms
  /** The claim lapses after this time unless you confirm the delivery. Without it, the claim is final immediately. */
  holdSeconds?: number
}

/** A payment whose delivery this request has claimed. Deliver now. */
export type RedeemedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: 'paid'
  /** MPP only: the value of `Payment-Receipt` for your own response. */
  receipt?: string
  /** x402 only: the value of `PAYMENT-RESPONSE` for your own response. */
  paymentResponse?: string
  /** The node that is paid. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to; null if it is the description. */
  resource: string | null
  /** When the delivery was claimed. Unix seconds. */
  redeemedAt: number
}

/** The customer’s x402 payment, the request it must be for, and how to claim the delivery. */
export type RedeemByInvoiceParams = {
  /** The value of the customer’s `PAYMENT-SIGNATURE` header. */
  credential: string
  /** The hash of the request you are serving, computed from that request and never taken from the credential. */
  requestHash: string
  /** Your id for this attempt. Repeating it returns the same response, so you can retry when a response is lost. */
  requestId?: string
  expect?: ExpectedTerms
  /** The claim lapses after this time unless you confirm the delivery. Without it, the claim is final immediately. */
  holdSeconds?: number
}

/** The claim to release. */
export type ReleasePaymentParams = {
  /** The `requestId` that holds the claim. It can never claim this payment again. */
  requestId: string
  /** Why the delivery failed, for the activity log. */
  reason?: string
}

/** A payment that can be redeemed again. */
export type ReleasedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  status: 'paid'
  redeemable: true
}

/** The customer’s credential and, optionally, the expected terms. */
export type ValidatePaymentParams = {
  /** The whole value of the customer’s `Authorization` header, or of the header you chose with `mpp.header`. */
  credential: string
  expect?: ExpectedTerms
}

/** A payment whose credential is valid. */
export type PaidPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: 'paid'
  /** MPP only: the value of `Payment-Receipt` for your own response. */
  receipt?: string
}

/** The customer’s x402 payment, the request it must be for and, optionally, the expected terms. */
export type ValidateByInvoiceParams = {
  /** The value of the customer’s `PAYMENT-SIGNATURE` header. */
  credential: string
  /** The hash of the request you are serving, computed from that request and never taken from the credential. */
  requestHash: string
  expect?: ExpectedTerms
}

/** A kind of payment that can be settled here. */
export type X402Kind = {
  /** The version of x402: 2. */
  x402Version: number
  /** Always `exact`. */
  scheme: string
  /** The Lightning network. */
  network: string
  /** Fields of the scheme. */
  extra: Record<string, unknown>
}

/** What can be settled here. */
export type X402Supported = {
  kinds: X402Kind[]
  /** Always empty. */
  extensions: string[]
  /** Always empty: nobody signs for a Lightning payment. */
  signers: Record<string, unknown>
}

/** A payment and the requirements that it must meet. */
export type X402PaymentParams = {
  /** The version of x402: 2. */
  x402Version: number
  /** The decoded value of the customer’s PAYMENT-SIGNATURE. */
  paymentPayload: Record<string, unknown>
  /** What the request that you are serving requires, with the hash of that request. */
  paymentRequirements: Record<string, unknown>
}

/** The result of a settlement. */
export type X402Settlement = {
  /** Whether this call has settled the payment. Deliver only if it is true. */
  success: boolean
  /** Why the payment was not settled. `exact_lnbtc_invoice_not_settled` and `exact_lnbtc_receiver_unavailable` are not final. */
  errorReason?: string
  /** The payment hash; empty after a failure. */
  transaction: string
  /** The Lightning network. */
  network: string
}

/** The result of a verification. */
export type X402Verification = {
  /** Whether `settle` would succeed now. */
  isValid: boolean
  /** Why `settle` would fail. */
  invalidReason?: string
}
