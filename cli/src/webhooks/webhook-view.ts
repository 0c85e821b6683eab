import type { EventFilter, Webhook } from '../../../sdk/src/index.ts'
import type { Call } from '../call.ts'
import { ago, moment, type Paint, sanitize, sheet, table } from '../terminal.ts'

/** The value of --types. The service checks the types, so that new ones need no new version of this program. */
export const typesIn = (text: string): EventFilter[] => text.split(',').map((type) => type.trim() as EventFilter)

export function rowsOf(webhook: Webhook, paint: Paint): [string, string][] {
  const { id, url, types, nodeIds, description, createdAt, lastSuccessAt, failingSince } = webhook
  return [
    ['id', sanitize(id)],
    ['url', sanitize(url)],
    ['types', listOf(types)],
    ['nodes', listOf(nodeIds)],
    ...(description ? [['description', sanitize(description)] as [string, string]] : []),
    ['status', statusOf(webhook, paint)],
    ['created', moment(createdAt)],
    ['last success', lastSuccessAt === null ? '–' : moment(lastSuccessAt)],
    ...(failingSince === null ? [] : [['failing since', moment(failingSince)] as [string, string]]),
  ]
}

export function tableOf(webhooks: Webhook[], paint: Paint): string {
  return table(
    ['ID', 'STATUS', 'LAST SUCCESS', 'TYPES', 'URL'],
    webhooks.map((webhook) => [
      sanitize(webhook.id),
      statusOf(webhook, paint),
      webhook.lastSuccessAt === null ? '–' : ago(webhook.lastSuccessAt),
      listOf(webhook.types),
      sanitize(webhook.url),
    ]),
    paint,
  )
}

export function secretOf(secret: string, { paint }: Call): string {
  return `${paint('yellow', 'Store this now. It will not be shown again.')}\n${sheet([['secret', sanitize(secret)]], paint)}`
}

const listOf = (members: string[] | null): string => (members === null ? 'all' : sanitize(members.join(', ')))

function statusOf({ enabled, disabledReason, failingSince }: Webhook, paint: Paint): string {
  if (!enabled) return disabledReason === null ? paint('dim', 'disabled') : paint('red', `disabled, ${sanitize(disabledReason)}`)
  return failingSince === null ? paint('green', 'enabled') : paint('yellow', 'failing')
}
