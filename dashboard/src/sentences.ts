import type { Activity } from './api-types.ts'

/** The log in words. `%` is where the name of what it happened to goes. */
const SENTENCES: Record<string, string> = {
  'account.created': 'The account was created',
  'account.claimed': 'The account was claimed',
  'credit.added': 'Credit was added',
  'credit.warning': 'Credit is running low',
  'credit.empty': 'Credit is used up',
  'credit.stopped': 'Nodes were stopped for lack of credit',
  'credit.topped_up': 'Credit was topped up',
  'invitation.created': 'An invitation was made',
  'invitation.accepted': 'An invitation was accepted',
  'key.created': 'API key % was created',
  'key.disabled': 'API key % was disabled',
  'key.enabled': 'API key % was enabled',
  'key.revoked': 'API key % was revoked',
  'node.created': 'Node % was created',
  'node.renamed': 'Node % was renamed',
  'node.start': 'Node % was asked to start',
  'node.started': 'Node % was started',
  'node.stop': 'Node % was asked to stop',
  'node.stopped': 'Node % was stopped',
  'node.restart': 'Node % was asked to restart',
  'node.restarted': 'Node % was restarted',
  'node.update': 'Node % was asked to update',
  'node.updated': 'Node % was updated',
  'node.delete': 'Node % was deleted',
  'node.deleted': 'Node % was deleted',
  'node.undeleted': 'Node % was brought back',
  'node.ready': 'Node % became ready',
  'node.failed': 'Node % failed',
  'payment.settled': 'Payment % was received by its node',
  'payment.paid': 'Payment % was validated',
}

/** In words, with a gap for the target; what is not known is shown as it is called, and never hidden. */
export function sentenceOf({ action, target }: Activity): { before: string; after: string } {
  const sentence = SENTENCES[action] ?? `${capital(action.replaceAll(/[._-]/g, ' '))}${target ? ': %' : ''}`
  const [before = '', after = ''] = sentence.split('%')
  return { before, after }
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Who it was, as far as the id tells. */
export function actorOf(actor: string, me: string | null): string {
  if (actor === me) return 'you'
  if (actor === 'operator') return 'the operator'
  if (actor.startsWith('key_')) return `API key ${actor}`
  if (actor.startsWith('node_')) return 'the node'
  if (actor === 'system' || actor === 'service') return 'the service'
  return actor
}
