import { Type } from 'typebox'
import { amountSat, named, text, timestamp } from './schemas.ts'

/** Every error code, its status, and what it means. Within v1, codes may be added but are never removed (C1, C2). */
export const ERRORS = {
  bad_request: [400, 'The body, a field, a header or a query parameter is invalid; `message` says which.'],
  invalid_payment_credential: [
    400,
    'The credential does not prove this payment. If `error.reason` is `not_settled`, the credential is correct, but the node has not reported the money as received yet. If `error.settled` is true, it is a settled, unused x402 payment for another request.',
  ],
  invalid_node_state: [400, 'The node’s status does not allow this operation.'],
  no_update_available: [
    400,
    'The node already runs the latest version, the requested version is not newer or not in the catalog, or this installation cannot update nodes.',
  ],
  unauthorized: [401, 'The key or session is missing, invalid, disabled, expired or revoked, or lacks the scope.'],
  insufficient_credit: [402, 'The account’s credit does not cover another node. Pay `error.topUp.invoice` to add credit.'],
  forbidden_origin: [403, 'A web page from another origin called a node.'],
  node_not_found: [404, 'The account has no node with this id.'],
  gateway_payment_not_found: [404, 'The account has no payment with this id or invoice.'],
  not_found: [404, 'The path or the object does not exist, or it belongs to another account.'],
  method_not_allowed: [405, 'The path does not support this method; see `Allow`.'],
  node_has_funds: [409, 'The node holds funds. Send them elsewhere first, or retry with `force=true`.'],
  operation_in_progress: [409, 'The same request, or another operation on this node, is still running.'],
  idempotency_conflict: [409, 'This `Idempotency-Key` was already used with a different body.'],
  limit_reached: [409, 'A limit on nodes, keys, webhooks, replayed events, open invoices or releases has been reached.'],
  account_exists: [409, 'The invited person already has an account. Create a sign-in link for it instead.'],
  already_redeemed: [409, 'The payment was already redeemed, by another `requestId` or without one.'],
  delivery_in_progress: [409, 'Another `requestId` holds the delivery. Try again after `Retry-After`.'],
  terms_mismatch: [
    409,
    'The payment does not match `expect`. `error.mismatch` lists the terms that differ; nothing was claimed.',
  ],
  not_claimed: [409, 'This `requestId` does not hold the delivery, or has already released it.'],
  payment_expired: [
    410,
    'The challenge has expired, and the node reports that it was not paid; or the credential has expired. An L402 credential contains the time when it expires; an x402 payment expires 60 seconds after its invoice.',
  ],
  cursor_expired: [
    410,
    'Events after the cursor have been removed. Continue with `error.oldestCursor`, and fetch what you missed.',
  ],
  payload_too_large: [413, 'The body is larger than 64 KiB.'],
  unsupported_media_type: [415, 'The body is not `application/json`.'],
  misdirected_request: [421, 'The service is not configured for this `Host`.'],
  rate_limited: [429, 'Too many requests. Wait `Retry-After` seconds.'],
  internal_error: [500, 'An error in the service. Quote `error.requestId` when you report it.'],
  payment_service_unavailable: [
    502,
    'The node is not ready or does not respond. If `error.reason` is `outcome_unknown`, it may have carried out the request.',
  ],
  service_unavailable: [
    503,
    'The service is stopping, busy, or cannot reach its database. A change may have been made. Try again after `Retry-After`.',
  ],
} as const satisfies Record<string, readonly [status: number, meaning: string]>

export type ErrorCode = keyof typeof ERRORS

const code = Type.String({
  description: 'The value to act on. New codes may be added; handle an unknown code by its HTTP status.',
})
const message = text('An explanation for people. The wording may change.')

export const ErrorResponse = Type.Object(
  { error: Type.Object({ code, message }, { additionalProperties: true }) },
  {
    $id: 'ErrorResponse',
    description: 'Every error has this shape. Some codes add members to `error`.',
  },
)

export const TopUpOffer = named(
  {
    amountSat: amountSat('The amount of credit that is missing.'),
    invoice: text('A BOLT 11 invoice.'),
    expiresAt: timestamp('When it expires.'),
  },
  {
    $id: 'TopUpOffer',
    description: 'Once the operator’s node has received the payment, the account is credited with its amount.',
  },
)

export const InsufficientCreditResponse = Type.Object(
  { error: Type.Object({ code, message, topUp: Type.Optional(TopUpOffer) }, { additionalProperties: true }) },
  {
    $id: 'InsufficientCreditResponse',
    examples: [
      {
        error: {
          code: 'insufficient_credit',
          message: 'The account’s credit does not cover another node.',
          topUp: { amountSat: 100, invoice: 'lnbc1u1…', expiresAt: 1767229200 },
        },
      },
    ],
  },
)

/** The schema of an error response, by status. */
export const errorSchema = (status: number) => (status === 402 ? InsufficientCreditResponse : ErrorResponse)
