import { parseArgs } from 'node:util'
import { type Command, GLOBAL_OPTIONS, GROUPS, type Invocation, type Option, type Value } from './command.ts'
import { Failure, usage } from './failure.ts'
import { nearest } from './suggest.ts'

export type Asked<C extends Command = Command> =
  | { what: 'version' }
  | { what: 'help'; topic: string; isMistake: boolean }
  | ({ what: 'command' } & Invocation<C>)

/**
 * An API key (`byk_`), a webhook's secret (`whsec_`), a node's password (64 hex digits), or a customer's credential (a scheme and one
 * token, whereas a challenge has parameters).
 */
const SECRETS = [
  /byk_[0-9A-Za-z]{20,}/,
  /whsec_[0-9A-Za-z+/]{20,}/,
  /^(L402|LSAT|Payment) +[^" ]{20,}$/i,
  /^(--[a-z-]+=)?[0-9a-fA-F]{64}$/,
]

/**
 * Every user on the machine can read a process's arguments, and shells keep them in their history. This check runs before anything else
 * reads the arguments, so no error message can repeat a secret.
 */
export function refuseSecrets(argv: string[]): void {
  if (!argv.some((word) => SECRETS.some((secret) => secret.test(word)))) return
  throw new Failure('usage', 'secret_in_arguments', 'One of the arguments looks like a key, a password or a credential.', {
    next: [
      'Other users on this machine can see arguments, and your shell keeps them in its history. If the secret is real, revoke it.',
      'Pass an API key in SERVICE_API_KEY or --api-key-file, a node’s password in --password-file, and a credential on stdin or in --credential-file.',
    ],
  })
}

const VERSION_FLAGS = ['--version', '-v', '-V']

export function parse<C extends Command>(argv: string[], commands: C[]): Asked<C> {
  refuseSecrets(argv)
  const words = wordsOf(argv, commands)
  const wantsHelp = argv.includes('--help') || argv.includes('-h') || words[0] === 'help'
  const topicWords = words[0] === 'help' ? words.slice(1) : words
  const wantsVersion = words.length === 0 ? VERSION_FLAGS.some((flag) => argv.includes(flag)) : words.join() === 'version'
  if (!wantsHelp && wantsVersion) return { what: 'version' }
  const command = [topicWords.slice(0, 2).join(' '), topicWords[0]]
    .map((path) => commands.find((one) => one.path === path))
    .find((one) => one !== undefined)
  if (!command) return withoutCommand(topicWords, commands, wantsHelp, argv)
  if (wantsHelp) return { what: 'help', topic: command.path, isMistake: false }
  return { what: 'command', command, ...readOptions(argv, command) }
}

function withoutCommand(
  words: string[],
  commands: Command[],
  wantsHelp: boolean,
  argv: string[],
): Extract<Asked, { what: 'help' }> {
  const [first, second] = words
  const group = first !== undefined && first in GROUPS ? first : undefined
  const unknown = group ? second : first
  if (unknown === undefined) {
    const stray = argv.find((word) => word.startsWith('-') && !isGlobal(word))
    if (stray && !wantsHelp) throw unknownOption(stray, GLOBAL_OPTIONS, 'boltyard --help')
    return { what: 'help', topic: group ?? '', isMistake: !wantsHelp }
  }
  const known = new Set(
    commands.map(({ path }) => (group ? path.split(' ') : path.split(' ').slice(0, 1))).map((path) => path[group ? 1 : 0] ?? ''),
  )
  const siblings = group
    ? commands.filter(({ path }) => path.startsWith(`${group} `)).map(({ path }) => path.slice(group.length + 1))
    : [...known]
  const near = nearest(unknown, siblings)
  const prefix = group ? `boltyard ${group}` : 'boltyard'
  // Repeat only what looks like a word. Anything else may be a misplaced secret.
  const shown = /^[a-z-]{1,20}$/i.test(unknown) ? ` “${unknown}”` : ''
  throw usage(`Unknown command${shown}.`, near ? `Did you mean: ${prefix} ${near}` : `All commands: ${prefix} --help`)
}

const isGlobal = (word: string): boolean =>
  word === '-h' || VERSION_FLAGS.includes(word) || word.replace(/^--|=.*$/gs, '') in GLOBAL_OPTIONS

/**
 * The words that are neither options nor option values. An option takes the same kind of value in every command, so this works before the
 * command is known.
 */
function wordsOf(argv: string[], commands: Command[]): string[] {
  const options = Object.assign({}, GLOBAL_OPTIONS, ...commands.map((command) => command.options)) as Record<string, Option>
  const words: string[] = []
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word === '--') return [...words, ...argv.slice(at + 1)]
    if (!word.startsWith('-') || word === '-') words.push(word)
    else if (!word.includes('=') && (options[word.slice(2)]?.kind ?? 'flag') !== 'flag') at++
  }
  return words
}

function readOptions(argv: string[], command: Command): { values: Map<string, Value>; positionals: string[] } {
  const known: Record<string, Option> = { ...GLOBAL_OPTIONS, ...command.options }
  const help = `boltyard ${command.path} --help`
  const { tokens } = parseArgs({
    args: argv,
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(known).map(([name, { kind }]) => [name, { type: kind === 'flag' ? 'boolean' : 'string' }] as const),
    ),
  })
  const values = new Map<string, Value>()
  const words: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const option = token.rawName.startsWith('--') ? known[token.name] : undefined
    if (!option) throw unknownOption(token.rawName, known, help)
    const value = checkedValue(token.name, option, token.value, token.inlineValue ?? false, help)
    if (values.has(token.name) && !('many' in option)) throw usage(`--${token.name} was given more than once.`, help)
    values.set(token.name, 'many' in option ? [...((values.get(token.name) as string[]) ?? []), String(value)] : value)
  }
  const positionals = words.slice(command.path.split(' ').length)
  const wanted = command.positionals ?? []
  const missing = wanted.find(({ optional }, index) => !optional && positionals[index] === undefined)
  if (missing) throw usage(`<${missing.name}> is missing: ${missing.help}.`, help)
  if (positionals.length > wanted.length) throw usage(`Too many arguments for ${command.path}.`, help)
  return { values, positionals }
}

function checkedValue(name: string, option: Option, given: string | undefined, isInline: boolean, help: string): Value {
  if (option.kind === 'flag') {
    if (given !== undefined) throw usage(`--${name} does not take a value.`, help)
    return true
  }
  // In `--name --wait` the name is missing. Without this check the node would be named “--wait”.
  if (given === undefined || (!isInline && /^--./.test(given))) throw usage(`--${name} needs a value.`, help)
  if (option.kind === 'choice') {
    if (option.choices.includes(given)) return given
    const near = nearest(given, option.choices)
    throw usage(`--${name} must be one of ${option.choices.join(', ')}.`, near ? `Did you mean: --${name} ${near}` : help)
  }
  if (option.kind !== 'number') return given
  const number = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
  if (number >= option.min && number <= option.max) return number
  throw usage(`--${name} must be a whole number from ${option.min} to ${option.max}.`, help)
}

function unknownOption(raw: string, known: Record<string, Option>, help: string): Failure {
  const name = raw.replace(/^-+|=.*$/gs, '')
  const near = nearest(name, Object.keys(known))
  const shown = /^[a-z-]{1,20}$/i.test(name) ? ` ${raw.replace(/=.*$/s, '')}` : ''
  return usage(`Unknown option${shown}.`, near ? `Did you mean: --${near}` : `All options: ${help}`)
}
