export type { AccountEvent } from '../types.ts'
export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookBody,
  type WebhookHeaders,
  WebhookVerificationError,
} from './verification.ts'
