export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookBody,
  type WebhookEvent,
  type WebhookHeaders,
  WebhookVerificationError,
} from './verification.ts'
