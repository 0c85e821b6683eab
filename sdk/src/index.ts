export { paymentIdOf } from '../../protocol/src/payment-id.ts'
export { Boltyard, type BoltyardOptions } from './boltyard.ts'
export {
  AuthenticationError,
  BadRequestError,
  BoltyardError,
  ConflictError,
  ConnectionError,
  CredentialError,
  ExpiredError,
  InsufficientCreditError,
  NotFoundError,
  RateLimitError,
  ServiceError,
  TimeoutError,
  UncertainOutcomeError,
} from './errors.ts'
export type { Events, EventsOptions, StreamedEvent } from './events/events.ts'
export type { CreateOptions, Nodes, WaitOptions } from './nodes.ts'
export type { Payments } from './payments.ts'
export type { CallOptions } from './transport.ts'
export type * from './types.ts'
export type * from './webhooks/types.ts'
export type { Webhooks } from './webhooks/webhooks.ts'
