import type { Overview } from '../api/types.ts'
import { counted } from './format.ts'

export type Item = {
  kind: 'failed' | 'silent' | 'unfulfilled' | 'disabled' | 'failing' | 'updates'
  tone: 'bad' | 'warn' | 'info'
  sentence: string
}

/** Whether there may be payments whose customers got nothing. How many are in the list is only known from the list's own count. */
export const mayBeUnfulfilled = ({ unclaimedPayments, failedDeliveries }: Overview['attention']): boolean =>
  unclaimedPayments + failedDeliveries > 0

/** The worst first. Credit that runs out has a banner on every page, and is not repeated. `unfulfilled`: how many payments are in the list that the item links to; undefined if that is not known. */
export function itemsOf({ nodes, attention }: Pick<Overview, 'nodes' | 'attention'>, unfulfilled: number | undefined): Item[] {
  const { failingWebhooks, disabledWebhooks, updates } = attention
  const items: (Item | false)[] = [
    nodes.failed > 0 && {
      kind: 'failed',
      tone: 'bad',
      sentence: `${counted(nodes.failed, 'node has failed and cannot', 'nodes have failed and cannot')} receive payments.`,
    },
    nodes.silent > 0 && {
      kind: 'silent',
      tone: 'warn',
      sentence: `${counted(nodes.silent, 'node does', 'nodes do')} not respond. The service restarts a node that has crashed.`,
    },
    mayBeUnfulfilled(attention) &&
      unfulfilled !== 0 && {
        kind: 'unfulfilled',
        tone: 'bad',
        sentence:
          unfulfilled === undefined
            ? 'Customers may have paid in the last 7 days without getting anything.'
            : `For ${counted(unfulfilled, 'payment', 'payments')} of the last 7 days, the customer got nothing.`,
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
