import type { ActivityEntry, ActivityFilter } from '../api/activity.ts'
import type { Activity } from '../api/types.ts'
import { grouped } from './format.ts'

/** Activity log entries as sentences. `%` stands for the target's name. */
const SENTENCES: Record<string, string> = {
  'account.created': 'The account was created',
  'account.deleted': 'The account was deleted',
  'account.renamed': 'The account was renamed',
  'credit.added': 'Credit was added',
  'credit.taken': 'Credit was deducted',
  'credit.warning': 'Credit is running low',
  'credit.used_up': 'Credit is used up',
  'credit.exhausted': 'Nodes are being stopped, because there has been no credit for too long',
  'credit.topped_up': 'Credit was topped up over Lightning',
  'key.changed': 'API key % was changed',
  'key.created': 'API key % was created',
  'key.disabled': 'API key % was disabled',
  'key.enabled': 'API key % was enabled',
  'key.revoked': 'API key % was revoked',
  'key.rotated': 'API key % got a new secret',
  'link.created': 'A sign-in link was created',
  'node.created': 'Node % was created',
  'node.renamed': 'Node % was renamed',
  // These are logged when an operation is requested. It may still fail, and an update of a stopped node waits for its next start.
  'node.start': 'Node % was asked to start',
  'node.stop': 'Node % was asked to stop',
  'node.restart': 'Node % was asked to restart',
  'node.update': 'Node % was asked to update its software',
  'node.updated': 'Node % was updated',
  'node.update_failed': 'The update of node % failed',
  'node.delete': 'Node % was deleted',
  'node.undeleted': 'Node % was restored',
  'node.adopted': 'Node % was created from an existing wallet',
  'node.released': 'Node % was released to another installation',
  'node.pay': 'Node % was asked to send a payment',
  'payment.settled': 'Payment % was received by its node',
  'payment.paid': 'Payment % was validated',
  'payment.released': 'The delivery of payment % failed and was released',
  'person.email_changed': 'The email address was changed',
  'person.passkey_added': 'A passkey was added',
  'person.passkey_removed': 'A passkey was removed',
  'person.password_changed': 'The password was changed',
  'person.recovery_code_used': 'A recovery code was used',
  'person.recovery_codes_replaced': 'The recovery codes were replaced',
  'person.signed_in': 'Signed in',
  'person.signed_out': 'Signed out',
  'person.signed_up': 'Signed up',
  'person.two_factor_disabled': 'Two-factor sign-in was turned off',
  'person.two_factor_enabled': 'Two-factor sign-in was turned on',
  'webhook.created': 'Webhook % was created',
  'webhook.deleted': 'Webhook % was deleted',
  'webhook.disabled': 'Webhook % was disabled',
  'webhook.enabled': 'Webhook % was enabled',
  'webhook.secret_rotated': 'Webhook % got a new secret',
}

/** The sentence, split where the target goes. An unknown action is shown by its code, never hidden. */
export function sentenceOf({ action: logged, target, detail }: Activity): {
  before: string
  after: string
  namesTarget: boolean
} {
  const action = actionOf(logged, detail)
  const sentence = SENTENCES[action] ?? `${capital(action.replaceAll(/[._-]/g, ' '))}${target ? ': %' : ''}`
  const [before = '', after = ''] = sentence.split('%')
  return { before, after, namesTarget: sentence.includes('%') }
}

/** Some actions mean different things to people, depending on the detail. */
function actionOf(action: string, detail: Activity['detail']): string {
  if (action === 'credit.added' && Number(detail.amountMsat) < 0) return 'credit.taken'
  if (action === 'credit.warning' && detail.level === 'empty') return 'credit.used_up'
  return action
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Who did it; null if the sentence already says so. `keys`: the keys whose names are known. */
export function actorOf(actor: string, me: string | null, keys: { id: string; name: string }[] = []): string | null {
  if (actor === me) return 'you'
  if (actor === 'operator') return 'the operator'
  if (actor.startsWith('key_')) return `API key ${keys.find(({ id }) => id === actor)?.name ?? actor}`
  if (actor.startsWith('node_')) return null
  if (actor === 'credit' || actor === 'system') return 'the service'
  return actor
}

/** A log filtered by person or key is incomplete, so a count of zero is left out: "0 received" might be false. */
export function foldCounts(
  { received, validated }: Pick<NonNullable<ActivityEntry['fold']>, 'received' | 'validated'>,
  { actor, keyId }: ActivityFilter,
): string {
  const isPart = actor !== undefined || keyId !== undefined
  const counts = { received, validated }
  return Object.entries(counts)
    .filter(([, count]) => count > 0 || !isPart)
    .map(([word, count]) => `${grouped(count)} ${word}`)
    .join(', ')
}
