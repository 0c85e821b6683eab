import type { RunnableCommand } from './call.ts'
import type { Option, Positional } from './command.ts'

/** Every command there is. Here is what they are called and take; what they do is loaded when one is called. */

const NODE: Positional = { name: 'node', help: 'the node’s id (node_…) or name' }
const PAYMENT: Positional = { name: 'payment', help: 'the payment’s id, pay_…' }
const WAIT: Option = { kind: 'flag', help: 'return when the node is ready; at most 5 minutes, or --timeout' }
const IDEMPOTENCY: Option = {
  kind: 'text',
  value: 'text',
  help: 'the same again within 24 hours gives the same answer; one is made up unless given',
}
const CREDENTIAL_FILE: Option = {
  kind: 'file',
  value: 'file',
  help: 'holds the whole Authorization header of the customer, or JSON with it as “credential”; default is standard input',
}
const HOLDER: Option = { kind: 'text', value: 'text', help: 'the one that redeemed it' }
const MAX_SAT = 9_007_199_254_740

const nodes = () => import('./nodes/nodes.ts')
const payments = () => import('./payments.ts')
const sandbox = () => import('./sandbox.ts')

const NODES: RunnableCommand[] = [
  {
    path: 'nodes create',
    summary: 'Create a node',
    about:
      'Its recovery words and passwords are given this once: on the terminal, in the JSON, or in a file of their own. If it is cut short, repeating it with the same --idempotency-key or the same --credentials-file gives the same node and its credentials, never a second node.',
    examples: [
      {
        line: 'boltyard nodes create --name shop --credentials-file shop.json --wait',
        does: 'a node that is ready, its secrets in a file that only you can read',
      },
      { line: 'boltyard nodes create', does: 'with a name of the service’s choice; the secrets are shown once' },
      { line: 'id=$(boltyard nodes create --credentials-file shop.json | jq -r .node.id)', does: 'in a script' },
    ],
    options: {
      name: { kind: 'text', value: 'text', help: 'at most 16 characters; otherwise “Node n”' },
      'auto-liquidity': {
        kind: 'choice',
        choices: ['2m', '5m', '10m'],
        help: 'how much inbound liquidity it buys by itself; default 2m',
      },
      'access-mode': {
        kind: 'choice',
        choices: ['limited', 'full'],
        help: 'what the dashboard may do with it: limited cannot send; default limited',
      },
      'credentials-file': {
        kind: 'file',
        value: 'file',
        help: 'write the secrets there (a new file, 0600) instead of showing them',
      },
      'idempotency-key': IDEMPOTENCY,
      wait: WAIT,
    },
    scope: 'nodes:write',
    load: async () => (await import('./nodes/create.ts')).create,
  },
  {
    path: 'nodes list',
    summary: 'List the account’s nodes',
    examples: [
      { line: 'boltyard nodes list', does: 'a table' },
      { line: `boltyard nodes list | jq -r '.nodes[] | select(.status == "failed") | .id'`, does: 'in a script' },
    ],
    scope: 'nodes:read',
    load: async () => (await nodes()).list,
  },
  {
    path: 'nodes get',
    summary: 'Show one node',
    examples: [{ line: 'boltyard nodes get node_06c2y8…', does: 'its state and its endpoint' }],
    positionals: [NODE],
    scope: 'nodes:read',
    load: async () => (await nodes()).get,
  },
  {
    path: 'nodes rename',
    summary: 'Give a node another name',
    examples: [{ line: 'boltyard nodes rename node_06c2y8… "till 2"', does: 'at most 16 characters' }],
    positionals: [NODE, { name: 'name', help: 'its new name' }],
    scope: 'nodes:write',
    load: async () => (await nodes()).rename,
  },
  {
    path: 'nodes start',
    summary: 'Start a stopped or failed node',
    about: 'Returns when it is ready.',
    examples: [{ line: 'boltyard nodes start node_06c2y8…', does: 'and wait until it answers' }],
    positionals: [NODE],
    scope: 'nodes:write',
    load: async () => (await nodes()).start,
  },
  {
    path: 'nodes stop',
    summary: 'Stop a node',
    about: 'It cannot be paid, and costs nothing, until it is started again.',
    examples: [{ line: 'boltyard nodes stop node_06c2y8…', does: 'and wait until it is down' }],
    positionals: [NODE],
    scope: 'nodes:write',
    load: async () => (await nodes()).stop,
  },
  {
    path: 'nodes restart',
    summary: 'Stop a ready node and start it again',
    examples: [{ line: 'boltyard nodes restart node_06c2y8…', does: 'its payment API is away meanwhile' }],
    positionals: [NODE],
    scope: 'nodes:write',
    load: async () => (await nodes()).restart,
  },
  {
    path: 'nodes updates',
    summary: 'Show whether there is a newer version for a node',
    examples: [{ line: 'boltyard nodes updates node_06c2y8…', does: 'what it runs, and what there is' }],
    positionals: [NODE],
    scope: 'nodes:read',
    load: async () => (await nodes()).updates,
  },
  {
    path: 'nodes update',
    summary: 'Update a node',
    about: 'Its data is copied first.',
    examples: [
      { line: 'boltyard nodes update node_06c2y8… --wait', does: 'to the newest version' },
      { line: 'boltyard nodes update node_06c2y8… --to 0.8.1', does: 'to this one' },
    ],
    positionals: [NODE],
    options: {
      to: { kind: 'text', value: 'version', help: 'the version; the newest unless given' },
      wait: { kind: 'flag', help: 'return when the update has ended; at most 5 minutes, or --timeout' },
    },
    scope: 'nodes:write',
    load: async () => (await nodes()).update,
  },
  {
    path: 'nodes delete',
    summary: 'Delete a node',
    about:
      'Its data is kept for the retention period, and the operator can bring it back until then. A node that holds funds is not deleted without --force.',
    examples: [
      { line: 'boltyard nodes delete node_06c2y8…', does: 'asks for the node’s name first' },
      { line: 'boltyard nodes delete node_06c2y8… --yes', does: 'in a script' },
    ],
    positionals: [NODE],
    options: {
      yes: { kind: 'flag', help: 'do not ask; needed where there is no terminal' },
      force: { kind: 'flag', help: 'also when it holds funds' },
    },
    scope: 'nodes:write',
    load: async () => (await nodes()).remove,
  },
  {
    path: 'nodes wait',
    summary: 'Wait until a node is ready',
    about: 'Ends at once, with exit 8, when it is stopped or has failed.',
    examples: [{ line: 'boltyard nodes wait node_06c2y8… --timeout 120', does: 'at most two minutes' }],
    positionals: [NODE],
    scope: 'nodes:read',
    load: async () => (await nodes()).wait,
  },
]

const PAYMENTS: RunnableCommand[] = [
  {
    path: 'payments create',
    summary: 'Ask for a challenge, to answer your own client with 402',
    about: 'The challenge is the value of WWW-Authenticate. It can be paid for five minutes.',
    examples: [
      { line: 'boltyard payments create --node shop --amount-sat 100 --description "Weather report"', does: 'MPP' },
      {
        line: 'boltyard payments create --node node_06c2y8… --amount-sat 100 --description Report --protocol l402 | jq -r .challenge',
        does: 'L402, in a script',
      },
    ],
    options: {
      node: { kind: 'text', value: 'node', help: 'the node that is paid, by id or name' },
      'amount-sat': { kind: 'number', value: 'sat', min: 1, max: MAX_SAT, help: 'the price' },
      description: { kind: 'text', value: 'text', help: 'what it is for; at most 500 characters' },
      resource: { kind: 'text', value: 'text', help: 'what the payment is bound to; its description unless given' },
      protocol: { kind: 'choice', choices: ['mpp', 'l402'], help: 'default mpp' },
      'idempotency-key': IDEMPOTENCY,
    },
    scope: 'gateway:write',
    load: async () => (await payments()).create,
  },
  {
    path: 'payments validate',
    summary: 'Ask whether a customer’s credential has paid',
    about: 'As often as you like, with the same answer. Before you deliver, ask redeem instead: it says yes once.',
    examples: [
      { line: 'echo "$AUTHORIZATION" | boltyard payments validate', does: 'the payment’s id is in the credential' },
      { line: 'boltyard payments validate pay_06c2y8… --credential-file header.txt', does: 'for this payment and no other' },
    ],
    positionals: [{ ...PAYMENT, optional: true }],
    options: { 'credential-file': CREDENTIAL_FILE },
    scope: 'gateway:write',
    load: async () => (await payments()).validate,
  },
  {
    path: 'payments redeem',
    summary: 'Validate a credential and claim the delivery',
    examples: [
      {
        line: 'echo "$AUTHORIZATION" | boltyard payments redeem --request-id order-17',
        does: 'again with the same request id: the same answer',
      },
      {
        line: 'boltyard payments redeem --expect-resource "GET /report" --expect-min-sat 100 --credential-file header.txt',
        does: 'refused, and not used up, if it paid for something else',
      },
    ],
    positionals: [{ ...PAYMENT, optional: true }],
    options: {
      'credential-file': CREDENTIAL_FILE,
      'request-id': {
        kind: 'text',
        value: 'text',
        help: 'of your delivery, so that one that failed can be repeated; made up unless given',
      },
      'single-use': { kind: 'flag', help: 'L402: deliver once, as MPP always does' },
      'expect-node': { kind: 'text', value: 'node', help: 'refuse a payment to another node; by id or name' },
      'expect-resource': { kind: 'text', value: 'text', help: 'refuse a payment for something else' },
      'expect-min-sat': { kind: 'number', value: 'sat', min: 1, max: MAX_SAT, help: 'refuse a payment of less' },
      'hold-seconds': {
        kind: 'number',
        value: 'seconds',
        min: 1,
        max: 600,
        help: 'the claim lapses after that time, unless payments delivered confirms it',
      },
    },
    scope: 'gateway:write',
    load: async () => (await payments()).redeem,
  },
  {
    path: 'payments delivered',
    summary: 'Confirm a delivery that was redeemed with --hold-seconds',
    examples: [{ line: 'boltyard payments delivered pay_06c2y8… --request-id order-17', does: 'the claim is final' }],
    positionals: [PAYMENT],
    options: { 'request-id': HOLDER },
    scope: 'gateway:write',
    load: async () => (await payments()).delivered,
  },
  {
    path: 'payments release',
    summary: 'Give a claimed delivery back after it failed',
    about: 'The customer’s credential is good again, for a new request id. At most ten times per payment.',
    examples: [
      {
        line: 'boltyard payments release pay_06c2y8… --request-id order-17 --reason "printer on fire"',
        does: 'the next redemption may be anybody’s',
      },
    ],
    positionals: [PAYMENT],
    options: {
      'request-id': HOLDER,
      reason: { kind: 'text', value: 'text', help: 'why, for the activity log; at most 200 characters' },
    },
    scope: 'gateway:write',
    load: async () => (await payments()).release,
  },
  {
    path: 'payments get',
    summary: 'Show one payment, with its challenge',
    examples: [{ line: 'boltyard payments get pay_06c2y8…', does: 'its state' }],
    positionals: [PAYMENT],
    scope: 'gateway:write',
    load: async () => (await payments()).get,
  },
  {
    path: 'payments list',
    summary: 'List payments, newest first',
    examples: [
      { line: 'boltyard payments list --status paid', does: 'the last 20' },
      { line: 'boltyard payments list --status settled', does: 'your node has the money, and no credential was accepted' },
      { line: 'boltyard payments list --status paid --delivery none', does: 'paid, and not served' },
      { line: `boltyard payments list --all | jq '[.payments[].amountSat] | add'`, does: 'in a script' },
    ],
    options: {
      status: { kind: 'choice', choices: ['payment_required', 'settled', 'paid', 'expired'], help: 'only these' },
      delivery: { kind: 'choice', choices: ['none', 'held', 'done'], help: 'only these; held is claimed and not confirmed yet' },
      node: { kind: 'text', value: 'node', help: 'only to this node, by id or name' },
      limit: { kind: 'number', value: 'count', min: 1, max: 100, help: 'how many, 1 to 100; default 20' },
      cursor: { kind: 'text', value: 'cursor', help: 'nextCursor of the page before' },
      all: { kind: 'flag', help: 'all pages' },
    },
    scope: 'gateway:write',
    load: async () => (await payments()).list,
  },
]

const PAY: RunnableCommand = {
  path: 'pay',
  summary: 'Fetch a URL, and pay for it if it answers 402',
  about:
    'Understands MPP (Payment, lightning) and L402. It pays at most once in a run, only what the invoice itself says, and never more than --max-sat; the node’s routing fee comes on top (phoenixd: 4 sat + 0.4 %). What was paid for and not delivered is kept in a file, and the message says how to present it again. The answer’s body goes to stdout, price and receipt to stderr.',
  examples: [
    {
      line: 'boltyard pay https://example.com/weather --password-file shop.json',
      does: 'from the node whose credentials file that is',
    },
    {
      line: 'boltyard pay https://example.com/weather --node-url https://…/n/node_06c2y8… --password-file password.txt --max-sat 50',
      does: 'from any phoenixd',
    },
    {
      line: 'boltyard pay https://example.com/feed --password-file shop.json --credential-file feed.json',
      does: 'pay once, then use the same L402 credential until it lapses',
    },
  ],
  positionals: [{ name: 'url', help: 'what to fetch' }],
  options: {
    'node-url': { kind: 'text', value: 'url', help: 'the paying node’s endpointUrl; from the credentials file if that is given' },
    'password-file': {
      kind: 'file',
      value: 'file',
      help: 'the node’s full password, or its --credentials-file; - is standard input',
    },
    'max-sat': { kind: 'number', value: 'sat', min: 0, max: MAX_SAT, help: 'refuse to pay more; default 1000' },
    'credential-file': {
      kind: 'file',
      value: 'file',
      help: 'keep the paid credential there (0600), and use it if it is there already',
    },
    method: { kind: 'text', value: 'method', help: 'default GET, or POST with --data-file' },
    header: {
      kind: 'text',
      value: 'header',
      many: true,
      help: '“Name: value”, as often as needed; @file reads them from a file',
    },
    'data-file': { kind: 'file', value: 'file', help: 'the request’s body' },
    output: { kind: 'file', value: 'file', help: 'write the answer there instead of to stdout' },
  },
  load: async () => (await import('./pay/pay.ts')).pay,
}

const SANDBOX: RunnableCommand[] = [
  {
    path: 'sandbox fund',
    summary: 'Give a sandbox node play money',
    about: 'Needs the operator’s token: OPERATOR_TOKEN, OPERATOR_TOKEN_FILE, or operator.token in DATA_DIR.',
    examples: [{ line: 'boltyard sandbox fund node_06c2y8… 100000', does: 'so that it can pay' }],
    positionals: [NODE, { name: 'sat', help: 'how much, in satoshi' }],
    load: async () => (await sandbox()).fund,
  },
  {
    path: 'sandbox pay',
    summary: 'Pay a sandbox invoice as a customer would',
    about:
      'Given a whole challenge it also prints the credential that a customer would come back with. Needs the operator’s token, as sandbox fund does.',
    examples: [
      { line: 'boltyard sandbox pay lnbcrt1u1p…', does: 'gives the preimage' },
      {
        line: 'boltyard payments create --node shop --amount-sat 100 --description Report | boltyard sandbox pay - | boltyard payments redeem',
        does: 'the whole way of a payment',
      },
    ],
    positionals: [
      { name: 'invoice', help: 'the invoice or the challenge; - is standard input, which may be the JSON of payments create' },
    ],
    load: async () => (await sandbox()).pay,
  },
]

export const COMMANDS: RunnableCommand[] = [
  ...NODES,
  ...PAYMENTS,
  PAY,
  {
    path: 'key',
    summary: 'Show whose API key this is and what it may do',
    examples: [{ line: 'boltyard key', does: 'account and scopes; never the key itself' }],
    load: async () => (await import('./key.ts')).key,
  },
  ...SANDBOX,
  {
    path: 'completion',
    summary: 'Print the completion script of a shell',
    examples: [
      { line: 'source <(boltyard completion bash)', does: 'in ~/.bashrc' },
      { line: 'source <(boltyard completion zsh)', does: 'in ~/.zshrc, after compinit' },
      { line: 'boltyard completion fish | source', does: 'in ~/.config/fish/config.fish' },
    ],
    positionals: [{ name: 'shell', help: 'bash, zsh or fish' }],
    load: async () => {
      const { completion } = await import('./completion.ts')
      return (call) => completion(call, COMMANDS)
    },
  },
]
