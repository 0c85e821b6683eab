import type { RunnableCommand } from '../call.ts'

export const PROXY_COMMANDS: RunnableCommand[] = [
  {
    path: 'proxy',
    summary: 'Charge for an HTTP API without changing its code',
    about: `Listens in front of your program, responds with 402 where the price list says so, and forwards what is free or paid. The configuration is a YAML file; \${NAME} in it stands for an environment variable. Keeps no state, so any number of copies can run. On SIGTERM or Ctrl-C, it finishes what is in progress (at most 10 s) and exits with code 0.`,
    examples: [
      { line: 'boltyard proxy --config boltyard.proxy.yaml', does: 'run until Ctrl-C' },
      {
        line: 'boltyard proxy --config boltyard.proxy.yaml --check',
        does: 'check the file, the node and the upstream, and exit',
      },
      { line: 'boltyard proxy --config boltyard.proxy.yaml --print-routes', does: 'show what costs what' },
    ],
    options: {
      config: { kind: 'file', value: 'file', help: 'the configuration' },
      check: {
        kind: 'flag',
        help: 'check the configuration, that payments can be created, and that the upstream accepts connections',
      },
      'print-routes': { kind: 'flag', help: 'print the routes in the order in which they are tried' },
    },
    scope: 'gateway:write',
    load: async () => (await import('./proxy.ts')).proxy,
  },
]
