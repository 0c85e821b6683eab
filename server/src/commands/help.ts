export const HELP = `usage: node server/dist/main.js [COMMAND]

Without a command, this runs the service. Its settings are environment variables, explained in docs/operating.md.

Commands, with the same environment as the service:
  migrate                      bring the database of DATABASE_URL up to date, and exit
  backup FILE                  write a consistent copy of the database; - for standard output
  restore FILE                 fill an empty database from a backup; - for standard input
  adopt DIRECTORY [--account ACCOUNT_ID] --version VERSION [--name NAME] [--access-mode limited|full] [--start] [--newest]
                               take over an existing phoenixd, or a released node; --newest: the wallet has run since it was
                               released, or since an interrupted adoption, and no other copy is newer
  release NODE_ID DIRECTORY    move a node out, for another installation to adopt

Exit codes: 0 success; 1 error; 75 another instance uses DATA_DIR, another wallet is being moved, or the node has an operation in progress;
78 invalid configuration or arguments.
`

export const asksForHelp = (args: string[]): boolean => args.some((one) => one === '--help' || one === '-h') || args[0] === 'help'
