/** What a command is, for the parser, the help, the completion and the documentation alike: none of them can tell another story. */
export type Command = {
  /** The words that call it. */
  path: string
  summary: string
  about?: string
  examples: Example[]
  positionals?: Positional[]
  options?: Record<string, Option>
  /** Without it the service answers 401, as for a key that it does not know: this tells the two apart. */
  scope?: 'nodes:read' | 'nodes:write' | 'gateway:write'
}

export type Value = string | number | boolean | string[]
/** A command with what was given to it. */
export type Invocation<C extends Command = Command> = { command: C; values: Map<string, Value>; positionals: string[] }
export type Example = { line: string; does: string }
export type Positional = { name: string; help: string; optional?: true }
export type Option =
  | { kind: 'flag'; help: string }
  | { kind: 'text' | 'file'; value: string; help: string; many?: true }
  | { kind: 'number'; value: string; help: string; min: number; max: number }
  | { kind: 'choice'; choices: readonly string[]; help: string }

export const GLOBAL_OPTIONS: Record<string, Option> = {
  json: { kind: 'flag', help: 'JSON, also on a terminal; it is the default when the output is piped' },
  'base-url': {
    kind: 'text',
    value: 'url',
    help: 'the service; default SERVICE_BASE_URL, or http://127.0.0.1:8402/v1',
  },
  'api-key-file': {
    kind: 'file',
    value: 'file',
    help: 'holds the API key; default SERVICE_API_KEY, or, for a service on this machine, the key in its first-run.json',
  },
  timeout: { kind: 'number', value: 'seconds', min: 1, max: 86_400, help: 'give up after so long in all (exit 3)' },
  help: { kind: 'flag', help: 'this text' },
}

export const GROUPS: Record<string, string> = {
  nodes: 'Create and operate Lightning nodes',
  payments: 'Charge for an HTTP call: challenges, and the credentials that come back',
  sandbox: 'Play money on a laptop: fund a node, pay as a customer would',
}
