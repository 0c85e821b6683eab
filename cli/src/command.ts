import type { Scope } from '../../sdk/src/index.ts'

/** The parser, the help, the shell completion and docs/cli.md all use this one description of a command, so they cannot disagree. */
export type Command = {
  /** The words that select the command, such as `nodes create`. */
  path: string
  summary: string
  about?: string
  examples: Example[]
  positionals?: Positional[]
  options?: Record<string, Option>
  /** The service returns the same 401 for a missing scope and an unknown key; this lets the CLI tell them apart. */
  scope?: Scope
}

export type Value = string | number | boolean | string[]
/** A command and its parsed arguments. */
export type Invocation<C extends Command = Command> = { command: C; values: Map<string, Value>; positionals: string[] }
export type Example = { line: string; does: string }
export type Positional = { name: string; help: string; optional?: true }
export type Option =
  | { kind: 'flag'; help: string }
  | { kind: 'text' | 'file'; value: string; help: string; many?: true }
  | { kind: 'number'; value: string; help: string; min: number; max: number }
  | { kind: 'choice'; choices: readonly string[]; help: string }

export const GLOBAL_OPTIONS: Record<string, Option> = {
  json: { kind: 'flag', help: 'print JSON on a terminal too; the default when the output is piped' },
  'base-url': {
    kind: 'text',
    value: 'url',
    help: 'address of the service; default SERVICE_BASE_URL, or http://127.0.0.1:8402/v1',
  },
  'api-key-file': {
    kind: 'file',
    value: 'file',
    help: 'file with the API key; default SERVICE_API_KEY, or first-run.json for a service on this machine',
  },
  timeout: {
    kind: 'number',
    value: 'seconds',
    min: 1,
    max: 86_400,
    help: 'give up after this many seconds in total (exit code 3)',
  },
  help: { kind: 'flag', help: 'show this help' },
}

export const GROUPS: Record<string, string> = {
  nodes: 'Create and operate Lightning nodes',
  payments: 'Charge for HTTP calls: create challenges and check credentials',
  sandbox: 'Use play money: fund a node, pay as a customer would',
  webhooks: 'Send events to your own server',
}
