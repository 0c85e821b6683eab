import type { RunnableCommand } from '../call.ts'
import type { Option, Positional } from '../command.ts'
import { TYPES } from '../events/commands.ts'

const WEBHOOK: Positional = { name: 'webhook', help: 'the webhook’s id, hook_…' }
const NODE: Option = {
  kind: 'text',
  value: 'node',
  many: true,
  help: 'only events of this node and of payments to it, by id or name; repeatable',
}
const DESCRIPTION: Option = { kind: 'text', value: 'text', help: 'a note for yourself; at most 500 characters' }
const TIME = 'a time such as 2026-01-31T12:00:00Z, a date (UTC), or Unix seconds'

const webhooks = () => import('./webhooks.ts')
const deliveries = () => import('./deliveries.ts')

export const WEBHOOK_COMMANDS: RunnableCommand[] = [
  {
    path: 'webhooks create',
    summary: 'Create a webhook: from now on, events are sent to a URL',
    about:
      'Events are sent with POST, signed as Standard Webhooks describes. The secret to verify them with is shown only once. Outside a local installation, the URL must use https and be reachable from the internet; to try a receiver on your own machine, use boltyard listen.',
    examples: [
      { line: `boltyard webhooks create https://shop.example/hook --types 'payment.*'`, does: 'send all events of payments' },
      { line: 'boltyard webhooks create https://shop.example/hook --node shop', does: 'send the events of one node' },
      {
        line: '(umask 077; boltyard webhooks create https://shop.example/hook > webhook.json)',
        does: 'keep the id and the secret in a file only you can read',
      },
    ],
    positionals: [{ name: 'url', help: 'where events are sent' }],
    options: { types: TYPES, node: NODE, description: DESCRIPTION },
    scope: 'webhooks:write',
    load: async () => (await webhooks()).create,
  },
  {
    path: 'webhooks list',
    summary: 'List the account’s webhooks',
    examples: [
      { line: 'boltyard webhooks list', does: 'show all webhooks, and which of them fail' },
      { line: `boltyard webhooks list | jq -r '.webhooks[] | select(.failingSince) | .url'`, does: 'print the URLs that fail' },
    ],
    scope: 'webhooks:write',
    load: async () => (await webhooks()).list,
  },
  {
    path: 'webhooks get',
    summary: 'Show one webhook, without its secret',
    examples: [{ line: 'boltyard webhooks get hook_06c2y8…', does: 'show what it sends, and whether that works' }],
    positionals: [WEBHOOK],
    scope: 'webhooks:write',
    load: async () => (await webhooks()).get,
  },
  {
    path: 'webhooks update',
    summary: 'Change, disable or enable a webhook',
    about:
      'Settings that you do not pass stay as they are. Events that happen while a webhook is disabled are not sent later; use webhooks replay for that.',
    examples: [
      { line: 'boltyard webhooks update hook_06c2y8… --url https://shop.example/new', does: 'send events elsewhere' },
      { line: 'boltyard webhooks update hook_06c2y8… --types payment.settled,node.failed', does: 'send only these types' },
      { line: 'boltyard webhooks update hook_06c2y8… --enable', does: 'enable it again after you have fixed the receiver' },
    ],
    positionals: [WEBHOOK],
    options: {
      url: { kind: 'text', value: 'url', help: 'where events are sent' },
      types: TYPES,
      'all-types': { kind: 'flag', help: 'send events of all types' },
      node: NODE,
      'all-nodes': { kind: 'flag', help: 'send events of the whole account' },
      description: { ...DESCRIPTION, help: `${DESCRIPTION.help}; empty to remove it` },
      enable: { kind: 'flag', help: 'send events again, and continue deliveries that were waiting' },
      disable: { kind: 'flag', help: 'send nothing until it is enabled' },
    },
    scope: 'webhooks:write',
    load: async () => (await webhooks()).update,
  },
  {
    path: 'webhooks delete',
    summary: 'Delete a webhook',
    about: 'Its secret, its deliveries and their attempts are deleted as well.',
    examples: [
      { line: 'boltyard webhooks delete hook_06c2y8…', does: 'delete it after you confirm its id' },
      { line: 'boltyard webhooks delete hook_06c2y8… --yes', does: 'in a script' },
    ],
    positionals: [WEBHOOK],
    options: { yes: { kind: 'flag', help: 'do not ask for confirmation; required without a terminal' } },
    scope: 'webhooks:write',
    load: async () => (await webhooks()).remove,
  },
  {
    path: 'webhooks test',
    summary: 'Send a sample event to a webhook, and show the response',
    about: 'The sample is marked with “test”: true. The exit code is 1 if the receiver does not respond with 2xx.',
    examples: [
      { line: 'boltyard webhooks test hook_06c2y8…', does: 'send a sample of payment.settled' },
      { line: 'boltyard webhooks test hook_06c2y8… --type node.failed', does: 'send another type' },
    ],
    positionals: [WEBHOOK],
    options: { type: { kind: 'text', value: 'type', help: 'the type of the sample; default payment.settled' } },
    scope: 'webhooks:write',
    load: async () => (await deliveries()).test,
  },
  {
    path: 'webhooks rotate',
    summary: 'Replace the secret of a webhook',
    about:
      'The new secret is shown only once. During the grace period, requests are signed with both secrets, so there is time to give the receiver the new one.',
    examples: [
      { line: 'boltyard webhooks rotate hook_06c2y8… --grace-seconds 3600', does: 'the old secret also signs for an hour' },
      { line: 'boltyard webhooks rotate hook_06c2y8…', does: 'if the secret was leaked: the old one stops signing at once' },
    ],
    positionals: [WEBHOOK],
    options: {
      'grace-seconds': {
        kind: 'number',
        value: 'seconds',
        min: 0,
        max: 86_400,
        help: 'how long requests are also signed with the old secret, up to 86400; default 0',
      },
    },
    scope: 'webhooks:write',
    load: async () => (await webhooks()).rotate,
  },
  {
    path: 'webhooks deliveries',
    summary: 'List the deliveries of a webhook and their attempts, newest event first',
    examples: [
      { line: 'boltyard webhooks deliveries hook_06c2y8… --status failed', does: 'what never arrived' },
      {
        line: `boltyard webhooks deliveries hook_06c2y8… | jq '.deliveries[0].attempts'`,
        does: 'all attempts of the newest delivery, with the responses',
      },
    ],
    positionals: [WEBHOOK],
    options: {
      status: {
        kind: 'choice',
        choices: ['pending', 'delivered', 'failed'],
        help: 'filter by status; pending: there will be another attempt',
      },
      limit: { kind: 'number', value: 'count', min: 1, max: 100, help: 'deliveries per page, 1 to 100; default 50' },
      cursor: { kind: 'text', value: 'cursor', help: 'nextCursor of the previous page' },
    },
    scope: 'webhooks:write',
    load: async () => (await deliveries()).list,
  },
  {
    path: 'webhooks redeliver',
    summary: 'Send one event to a webhook again',
    about: 'This also works if the event has already arrived. The event has the same id each time, so a receiver can skip it.',
    examples: [{ line: 'boltyard webhooks redeliver hook_06c2y8… dlv_1042', does: 'as soon as possible' }],
    positionals: [WEBHOOK, { name: 'delivery', help: 'the delivery’s id, dlv_…, from webhooks deliveries' }],
    scope: 'webhooks:write',
    load: async () => (await deliveries()).redeliver,
  },
  {
    path: 'webhooks replay',
    summary: 'Send the events of a period to a webhook again',
    about:
      'This includes events from before the webhook was created and events from when it was disabled, if they are still kept. Each event has the same id as the first time, so a receiver can skip those it knows.',
    examples: [
      { line: 'boltyard webhooks replay hook_06c2y8… --from 2026-01-31', does: 'everything since that day' },
      {
        line: `boltyard webhooks replay hook_06c2y8… --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z --types 'payment.*'`,
        does: 'the payments of one hour',
      },
    ],
    positionals: [WEBHOOK],
    options: {
      from: { kind: 'text', value: 'time', help: `the beginning of the period: ${TIME}` },
      to: { kind: 'text', value: 'time', help: 'the end of the period, which is not part of it; default now' },
      types: TYPES,
    },
    scope: 'webhooks:write',
    load: async () => (await deliveries()).replay,
  },
]
