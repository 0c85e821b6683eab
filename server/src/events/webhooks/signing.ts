import { createHmac, randomBytes } from 'node:crypto'
import { derivedKey, type MasterKey, open, seal } from '../../platform/secrets.ts'
import type { Sql } from '../../store/db.ts'
import { replaceSealed, type SealedSecret, type SigningSecrets, webhooksUnder } from '../../store/events/webhooks.ts'

const PURPOSE = 'signing secret of a webhook'
const SECRET_BYTES = 32
const RESEALED_AT_ONCE = 100

export type WebhookIds = { accountId: string; webhookId: string }

/** The context is authenticated with the sealed value, so a value that was copied to another webhook cannot be opened. */
const contextOf = ({ accountId, webhookId }: WebhookIds): string => `${accountId} ${webhookId} signing secret`

export const newSecret = (): Buffer => randomBytes(SECRET_BYTES)

/** The secret in the format of Standard Webhooks. */
export const secretText = (secret: Buffer): string => `whsec_${secret.toString('base64')}`

export function sealSecret(master: MasterKey, ids: WebhookIds, secret: Buffer): SealedSecret {
  return { keyId: master.id, secret: seal(derivedKey(master, PURPOSE), contextOf(ids), secret) }
}

export function openSecret(masterKeys: readonly MasterKey[], ids: WebhookIds, { keyId, secret }: SealedSecret): Buffer {
  const master = masterKeys.find(({ id }) => id === keyId)
  if (!master) throw new Error('a webhook’s secret is sealed with an unknown master key; set MASTER_KEY_PREVIOUS')
  return open(derivedKey(master, PURPOSE), contextOf(ids), secret)
}

/** The secrets that sign now: two during a grace period, the current one first. */
export function openSecrets(masterKeys: readonly MasterKey[], ids: WebhookIds, sealed: SigningSecrets): Buffer[] {
  const { keyId, secret, previousSecret } = sealed
  const both = previousSecret ? [secret, previousSecret] : [secret]
  return both.map((one) => openSecret(masterKeys, ids, { keyId, secret: one }))
}

/** The headers of Standard Webhooks. */
export function signedHeaders(secrets: Buffer[], id: string, timestampSeconds: number, body: string): Record<string, string> {
  const signed = `${id}.${timestampSeconds}.${body}`
  const signatures = secrets.map((secret) => `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': String(timestampSeconds), 'webhook-signature': signatures.join(' ') }
}

/** Reseals secrets that are still sealed with the previous master key. Can be interrupted at any row and run again. */
export async function resealWebhooks(sql: Sql, master: MasterKey, previous: MasterKey): Promise<number> {
  let count = 0
  for (;;) {
    const rows = await webhooksUnder(sql, previous.id, RESEALED_AT_ONCE)
    for (const { id, accountId, secret, previousSecret } of rows) {
      const ids = { accountId, webhookId: id }
      const again = (sealed: Buffer): SealedSecret =>
        sealSecret(master, ids, openSecret([previous], ids, { keyId: previous.id, secret: sealed }))
      const next = { id, accountId, ...again(secret), previousSecret: previousSecret && again(previousSecret).secret }
      await replaceSealed(sql, { keyId: previous.id, secret }, next)
      count++
    }
    if (rows.length < RESEALED_AT_ONCE) return count
  }
}
