import type { MasterKey } from '../../platform/secrets.ts'
import type { SigningSecrets } from '../../store/events/webhooks.ts'
import type { SentRequest } from './sender.ts'
import { openSecrets, signedHeaders } from './signing.ts'

/** An event as it is sent. `data` is JSON text, and stays as it was stored: the body is the same, byte for byte, in every attempt. */
export type SentEvent = { id: string; type: string; createdAt: number; accountId: string; data: string; isTest?: true }

export function bodyOf({ id, type, createdAt, accountId, data, isTest }: SentEvent): string {
  const head = JSON.stringify({ id, type, createdAt, accountId, ...(isTest ? { test: true } : {}) })
  return `${head.slice(0, -1)},"data":${data}}`
}

/** Signed with the secrets and the time of this attempt. */
export function requestOf(
  masterKeys: readonly MasterKey[],
  webhook: SigningSecrets & { webhookId: string; url: string; nowSeconds: number },
  event: SentEvent,
): SentRequest {
  const body = bodyOf(event)
  const secrets = openSecrets(masterKeys, { accountId: event.accountId, webhookId: webhook.webhookId }, webhook)
  return { url: webhook.url, headers: signedHeaders(secrets, event.id, webhook.nowSeconds, body), body }
}
