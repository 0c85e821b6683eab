import type { Overview } from '../api/types.ts'
import { grouped } from './format.ts'
import { creditLasts } from './runway.ts'

export type Item = {
  kind: 'failed' | 'silent' | 'credit' | 'deliveries' | 'unclaimed' | 'disabled' | 'failing' | 'updates'
  tone: 'bad' | 'warn' | 'info'
  sentence: string
}

const counted = (count: number, one: string, many: string): string => (count === 1 ? `1 ${one}` : `${grouped(count)} ${many}`)

/** The worst first. */
export function itemsOf({ nodes, credit, attention }: Pick<Overview, 'nodes' | 'credit' | 'attention'>): Item[] {
  const { unclaimedPayments, failedDeliveries, failingWebhooks, disabledWebhooks, updates } = attention
  const items: (Item | false)[] = [
    nodes.failed > 0 && {
      kind: 'failed',
      tone: 'bad',
      sentence: `${counted(nodes.failed, 'node has failed and cannot', 'nodes have failed and cannot')} receive payments.`,
    },
    credit.warning !== 'none' && {
      kind: 'credit',
      tone: credit.warning === 'week' ? 'warn' : 'bad',
      sentence: credit.warning === 'empty' ? 'Your credit is used up.' : `Your credit is running low. ${creditLasts(credit)}`,
    },
    nodes.silent > 0 && {
      kind: 'silent',
      tone: 'warn',
      sentence: `${counted(nodes.silent, 'node does', 'nodes do')} not respond. The service restarts a node that has crashed.`,
    },
    failedDeliveries > 0 && {
      kind: 'deliveries',
      tone: 'bad',
      sentence:
        failedDeliveries === 1
          ? '1 delivery of the last 24 hours failed or was never confirmed. The customer has paid.'
          : `${grouped(failedDeliveries)} deliveries of the last 24 hours failed or were never confirmed. The customers have paid.`,
    },
    unclaimedPayments > 0 && {
      kind: 'unclaimed',
      tone: 'warn',
      sentence: `${counted(unclaimedPayments, 'customer has', 'customers have')} paid in the last 7 days without coming back for what they paid for.`,
    },
    disabledWebhooks > 0 && {
      kind: 'disabled',
      tone: 'bad',
      sentence: `${counted(disabledWebhooks, 'webhook was', 'webhooks were')} disabled because deliveries kept failing.`,
    },
    failingWebhooks > 0 && {
      kind: 'failing',
      tone: 'warn',
      sentence: `${counted(failingWebhooks, 'webhook is', 'webhooks are')} failing. Deliveries are retried.`,
    },
    updates > 0 && {
      kind: 'updates',
      tone: 'info',
      sentence: `An update is available for ${counted(updates, 'node', 'nodes')}.`,
    },
  ]
  return items.filter((item) => item !== false)
}
