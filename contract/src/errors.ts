import { Type } from 'typebox'
import { amountSat, named, text, timestamp } from './schemas.ts'

/** Every error code, its status, and what it means. Within v1 codes are added and never removed (C1, C2). */
export const ERRORS = {
  bad_request: [400, 'The body, a field, a header or a query parameter is invalid; `message` says which.'],
  invalid_payment_credential: [
    400,
    'Not a valid proof of this payment. With `error.reason` `not_settled` the proof is right, but the node has not reported the money yet.',
  ],
  invalid_node_state: [400, 'The node’s status does not allow this operation.'],
  no_update_available: [400, 'The node already runs the newest version, or the version is not in the catalogue.'],
  unauthorized: [401, 'The key or session is missing, invalid, disabled or revoked, or lacks the scope.'],
  insufficient_credit: [402, 'The account’s credit does not cover another node. Paying `error.topUp.invoice` adds credit.'],
  forbidden_origin: [403, 'A page of another site called a node.'],
  node_not_found: [404, 'No such node in this account.'],
  gateway_payment_not_found: [404, 'No such payment in this account.'],
  not_found: [404, 'Nothing here by that name, or not in this account.'],
  method_not_allowed: [405, 'The path exists, but not with this method; see `Allow`.'],
  node_has_funds: [409, 'The node holds funds. Send them away first, or repeat with `force=true`.'],
  operation_in_progress: [409, 'The same request, or another operation on this node, is still running.'],
  idempotency_conflict: [409, 'This `Idempotency-Key` was used with another body.'],
  limit_reached: [409, 'The limit on the number of nodes, keys, open invoices or releases is reached.'],
  already_redeemed: [409, 'Already delivered, to another `requestId`.'],
  delivery_in_progress: [409, 'Another `requestId` holds the delivery. Try again after `Retry-After`.'],
  terms_mismatch: [409, 'The payment was made on other terms than `expect`. `error.mismatch` names them; nothing was claimed.'],
  not_claimed: [409, 'This `requestId` does not hold the delivery, or has released it.'],
  payment_expired: [410, 'Not paid in time, or the L402 credential itself has expired.'],
  payload_too_large: [413, 'The body is larger than 64 KiB.'],
  unsupported_media_type: [415, 'The body is not `application/json`.'],
  misdirected_request: [421, 'The service does not answer under this `Host`.'],
  rate_limited: [429, 'Too many requests. Wait for `Retry-After` seconds.'],
  internal_error: [500, 'A fault of the service. `error.requestId` names the request.'],
  payment_service_unavailable: [502, 'The node is not ready, or does not answer.'],
  service_unavailable: [503, 'The service is stopping, busy, or cannot reach its database. Try again after `Retry-After`.'],
} as const satisfies Record<string, readonly [status: number, meaning: string]>

export type ErrorCode = keyof typeof ERRORS

const code = Type.String({ description: 'What to act on. Codes may be added; treat an unknown one by its status.' })
const message = text('For people; may change.')

export const ErrorResponse = Type.Object(
  { error: Type.Object({ code, message }, { additionalProperties: true }) },
  {
    $id: 'ErrorResponse',
    description: 'Every error has this shape. Some codes add members to `error`.',
    examples: [{ error: { code: 'node_not_found', message: 'There is no such node.' } }],
  },
)

export const TopUpOffer = named(
  { amountSat: amountSat('What is missing.'), invoice: text('A BOLT 11 invoice.'), expiresAt: timestamp('When it expires.') },
  { $id: 'TopUpOffer', description: 'Paying the invoice credits the account with its amount.' },
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

/** The schema of an error answer, by its status. */
export const errorSchema = (status: number) => (status === 402 ? InsufficientCreditResponse : ErrorResponse)
