import type { RunnableCommand } from '../call.ts'
import type { Option } from '../command.ts'

export const TYPES: Option = {
  kind: 'text',
  value: 'types',
  help: 'only these types, separated by commas; payment.* stands for all that begin with payment.',
}

export const EVENT_COMMANDS: RunnableCommand[] = [
  {
    path: 'events',
    summary: 'Show what has happened in the account, oldest first',
    about:
      'Payments, nodes, credit and keys. Each event has a cursor, the position after it: pass it as --after to continue there. With --follow, new events are printed as they happen, in a pipe as one line of JSON each; press Ctrl-C to stop.',
    examples: [
      { line: 'boltyard events --follow', does: 'print what happens from now on' },
      { line: `boltyard events --follow --types payment.settled | jq -r '.data.amountSat'`, does: 'print each amount' },
      { line: 'boltyard events --after AAAAAAAAAAc… --limit 200', does: 'the next page' },
    ],
    options: {
      follow: { kind: 'flag', help: 'print events as they happen, starting now or after --after' },
      types: TYPES,
      node: { kind: 'text', value: 'node', help: 'only events of this node and of payments to it, by id or name' },
      after: { kind: 'text', value: 'cursor', help: 'start after this position; default the oldest event that is kept' },
      limit: { kind: 'number', value: 'count', min: 1, max: 200, help: 'events per page, 1 to 200; default 50' },
    },
    scope: 'events:read',
    load: async () => (await import('./events.ts')).events,
  },
  {
    path: 'listen',
    summary: 'Forward events to a server on this machine, signed like webhooks',
    about:
      'For developing a webhook receiver: it needs no public address, and no webhook has to be created. Each event from now on is posted once, with the headers of Standard Webhooks; a failed delivery is reported and not repeated. The signing secret is created at the first use and stays the same. Press Ctrl-C to stop.',
    examples: [
      { line: 'boltyard listen --forward-to http://localhost:3000/hook', does: 'post every event to your program' },
      { line: 'export WEBHOOK_SECRET=$(boltyard listen --print-secret)', does: 'the secret your program verifies them with' },
      { line: `boltyard listen --forward-to http://localhost:3000/hook --types 'payment.*'`, does: 'only payments' },
    ],
    options: {
      'forward-to': { kind: 'text', value: 'url', help: 'where to post the events' },
      types: TYPES,
      'print-secret': { kind: 'flag', help: 'print the signing secret, and nothing else' },
    },
    scope: 'events:read',
    load: async () => (await import('./listen.ts')).listen,
  },
]
