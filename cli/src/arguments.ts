import { parseArgs } from 'node:util'
import { type Command, GLOBAL_OPTIONS, GROUPS, type Invocation, type Option, type Value } from './command.ts'
import { Failure, usage } from './failure.ts'
import { nearest } from './suggest.ts'

export type Asked<C extends Command = Command> =
  | { what: 'version' }
  | { what: 'help'; topic: string; isMistake: boolean }
  | ({ what: 'command' } & Invocation<C>)

/** `byk_`: a key. The scheme with what follows it: a customer's credential, unlike a challenge, has no parameters. 64 hex: a node's password. */
const SECRETS = [/byk_[0-9A-Za-z]{20,}/, /^(L402|LSAT|Payment) +[^" ]{20,}$/i, /^(--[a-z-]+=)?[0-9a-fA-F]{64}$/]

/**
 * Everyone on the machine can read the arguments of a process, and the shell writes them down. Refused before anything else looks at
 * them, so that no message can repeat one.
 */
export function refuseSecrets(argv: string[]): void {
  if (!argv.some((word) => SECRETS.some((secret) => secret.test(word)))) return
  throw new Failure('usage', 'secret_in_arguments', 'One of the arguments looks like a key, a password or a credential.', {
    next: [
      'Others on this machine can see arguments, and your shell keeps them: if it was a real one, revoke it.',
      'An API key comes from SERVICE_API_KEY or --api-key-file, a node’s password from --password-file, a credential from stdin or --credential-file.',
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
  // Only what could be a word is repeated: whatever else stands here may be a secret in the wrong place.
  const shown = /^[a-z-]{1,20}$/i.test(unknown) ? ` “${unknown}”` : ''
  throw usage(`There is no command${shown}.`, near ? `Did you mean: ${prefix} ${near}` : `All commands: ${prefix} --help`)
}

const isGlobal = (word: string): boolean =>
  word === '-h' || VERSION_FLAGS.includes(word) || word.replace(/^--|=.*$/gs, '') in GLOBAL_OPTIONS

/** What is neither an option nor its value. An option's kind is the same in every command, so the command need not be known yet. */
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
    if (values.has(token.name) && !('many' in option)) throw usage(`--${token.name} is there twice.`, help)
    values.set(token.name, 'many' in option ? [...((values.get(token.name) as string[]) ?? []), String(value)] : value)
  }
  const positionals = words.slice(command.path.split(' ').length)
  const wanted = command.positionals ?? []
  const missing = wanted.find(({ optional }, index) => !optional && positionals[index] === undefined)
  if (missing) throw usage(`<${missing.name}> is missing: ${missing.help}.`, help)
  if (positionals.length > wanted.length) throw usage(`There are more arguments than ${command.path} takes.`, help)
  return { values, positionals }
}

function checkedValue(name: string, option: Option, given: string | undefined, isInline: boolean, help: string): Value {
  if (option.kind === 'flag') {
    if (given !== undefined) throw usage(`--${name} takes no value.`, help)
    return true
  }
  // `--name --wait`: somebody forgot the name, and would get a node that is called “--wait”.
  if (given === undefined || (!isInline && /^--./.test(given))) throw usage(`--${name} needs a value.`, help)
  if (option.kind === 'choice') {
    if (option.choices.includes(given)) return given
    const near = nearest(given, option.choices)
    throw usage(`--${name} is one of ${option.choices.join(', ')}.`, near ? `Did you mean: --${name} ${near}` : help)
  }
  if (option.kind !== 'number') return given
  const number = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
  if (number >= option.min && number <= option.max) return number
  throw usage(`--${name} is a whole number from ${option.min} to ${option.max}.`, help)
}

function unknownOption(raw: string, known: Record<string, Option>, help: string): Failure {
  const name = raw.replace(/^-+|=.*$/gs, '')
  const near = nearest(name, Object.keys(known))
  const shown = /^[a-z-]{1,20}$/i.test(name) ? ` ${raw.replace(/=.*$/s, '')}` : ''
  return usage(`There is no option${shown} here.`, near ? `Did you mean: --${near}` : `All options: ${help}`)
}
