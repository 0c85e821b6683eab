import type { RunnableCommand } from '../call.ts'

export const CHECK_COMMANDS: RunnableCommand[] = [
  {
    path: 'check',
    summary: 'Check any server that charges with HTTP 402 over Lightning',
    about:
      'Reads the seller’s discovery (openapi.json, l402.json, llms.txt), requests every operation in it without paying, and checks the challenges of MPP, L402 and x402, their invoices, and how the server responds to wrong credentials. Without discovery, only the URL is checked. GET, HEAD and OPTIONS are sent; other methods only if they are advertised as paid, and with an empty body. Nothing is paid without --pay-sandbox. At most 50 operations are checked. Exit code 9 if there are findings.',
    examples: [
      { line: 'boltyard check https://api.example.com', does: 'check everything that the seller advertises' },
      {
        line: 'boltyard check http://localhost:3000/joke --pay-sandbox',
        does: 'also buy with play money, and check the delivery',
      },
      {
        line: `boltyard check https://api.example.com --json | jq -r '.findings[] | [.severity, .id, .operation] | @tsv'`,
        does: 'print one finding per line',
      },
    ],
    positionals: [{ name: 'url', help: 'the seller’s address, or the URL of something that is sold' }],
    options: {
      'pay-sandbox': {
        kind: 'flag',
        help: 'buy up to ten GET operations with play money, and check that each is delivered once; needs the operator token, like sandbox pay',
      },
    },
    load: async () => (await import('./check.ts')).check,
  },
]
