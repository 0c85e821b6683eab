import type { Call } from './call.ts'
import { type Command, GLOBAL_OPTIONS, GROUPS, type Option } from './command.ts'
import { usage } from './failure.ts'
import { nearest } from './suggest.ts'

export async function completion(call: Call, commands: Command[]): Promise<void> {
  const shell = call.argument(0)
  const script = SHELLS[shell as keyof typeof SHELLS]
  if (!script) {
    const near = nearest(shell, Object.keys(SHELLS))
    throw usage('<shell> must be one of bash, zsh, fish.', ...(near ? [`Did you mean: boltyard completion ${near}`] : []))
  }
  process.stdout.write(script(commands))
}

const SHELLS = { bash, zsh, fish }

const optionsOf = (command: Command): [string, Option][] => Object.entries({ ...command.options, ...GLOBAL_OPTIONS })
const words = (names: Iterable<string>): string => [...names].join(' ')
const firstWords = (commands: Command[]): Set<string> => new Set(commands.map(({ path }) => path.split(' ')[0] ?? ''))
const membersOf = (commands: Command[], group: string): string[] =>
  commands.filter(({ path }) => path.startsWith(`${group} `)).map(({ path }) => path.slice(group.length + 1))

/** An option takes the same kind of value in every command; only its choices may differ. */
function everyOption(commands: Command[]): Map<string, Option> {
  return new Map(commands.flatMap(optionsOf))
}

function named(commands: Command[], kind: Option['kind']): string {
  const names = [...everyOption(commands)].filter(([, option]) => option.kind === kind).map(([name]) => `--${name}`)
  return names.join('|')
}

function bash(commands: Command[]): string {
  const choices = commands.flatMap((command) =>
    optionsOf(command).flatMap(([name, option]) =>
      option.kind === 'choice' ? [`    '${command.path} --${name}') list='${words(option.choices)}' ;;`] : [],
    ),
  )
  const paths = commands.map((command) => {
    const shells = command.path === 'completion' ? `${words(Object.keys(SHELLS))} ` : ''
    return `    '${command.path}') list='${shells}${words(optionsOf(command).map(([name]) => `--${name}`))}' ;;`
  })
  return `# boltyard completion for bash: source <(boltyard completion bash)
_boltyard() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path='' list='' word
  COMPREPLY=()
  case $prev in
    ${named(commands, 'file')}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    ${[named(commands, 'text'), named(commands, 'number')].join('|')}) return ;;
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      -*) ;;
      *) case $path in
        '') path=$word ;;
        ${Object.keys(GROUPS).join('|')}) path="$path $word" ;;
      esac ;;
    esac
  done
  case $path in
    '') list='${words(firstWords(commands))} help --help --version' ;;
${Object.keys(GROUPS)
  .map((group) => `    ${group}) list='${words(membersOf(commands, group))} --help' ;;`)
  .join('\n')}
${paths.join('\n')}
  esac
  case "$path $prev" in
${choices.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$list" -- "$cur"))
}
complete -F _boltyard boltyard
`
}

const quoted = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`
/** These characters would end a description in zsh. */
const zshText = (text: string): string => text.replace(/[[\]:\\]/g, '\\$&')

function zsh(commands: Command[]): string {
  const action = (option: Option): string =>
    option.kind === 'flag'
      ? ''
      : option.kind === 'choice'
        ? `:value:(${words(option.choices)})`
        : option.kind === 'file'
          ? ':file:_files'
          : ':value:'
  const describe = (entries: [string, string][]): string =>
    entries.map(([name, help]) => quoted(`${name}:${zshText(help)}`)).join(' ')
  const cases = commands.map((command) => {
    const specs = optionsOf(command).map(([name, option]) => quoted(`--${name}[${zshText(option.help)}]${action(option)}`))
    const shells = command.path === 'completion' ? ` '1:shell:(${words(Object.keys(SHELLS))})'` : " '*:argument:'"
    return `    '${command.path}') _arguments${shells} ${specs.join(' ')} ;;`
  })
  const groups = Object.keys(GROUPS).map((group) => {
    const entries = commands
      .filter(({ path }) => path.startsWith(`${group} `))
      .map(({ path, summary }): [string, string] => [path.slice(group.length + 1), summary])
    return `    ${group}) list=(${describe(entries)}); _describe command list ;;`
  })
  const top: [string, string][] = [...firstWords(commands)].map((word) => [
    word,
    GROUPS[word] ?? commands.find(({ path }) => path === word)?.summary ?? '',
  ])
  return `#compdef boltyard
# boltyard completion for zsh: source <(boltyard completion zsh)
_boltyard() {
  local -a list
  local path_words="\${words[2]}" skip=1
  if (( CURRENT == 2 )); then
    list=(${describe(top)})
    _describe command list
    return
  fi
  case $path_words in
    ${Object.keys(GROUPS).join('|')}) if (( CURRENT > 3 )); then path_words="$path_words \${words[3]}"; skip=2; fi ;;
  esac
  shift $skip words
  (( CURRENT -= skip ))
  case $path_words in
${groups.join('\n')}
${cases.join('\n')}
  esac
}
compdef _boltyard boltyard
`
}

function fish(commands: Command[]): string {
  const line = (condition: string, rest: string): string => `complete -c boltyard -n '${condition}' ${rest}`
  const top = [...firstWords(commands)].map((word) =>
    line(
      '__fish_use_subcommand',
      `-f -a ${word} -d ${quoted(GROUPS[word] ?? commands.find(({ path }) => path === word)?.summary ?? '')}`,
    ),
  )
  const members = commands.flatMap((command) => {
    const [first = '', second] = command.path.split(' ')
    const seen = `__fish_seen_subcommand_from ${first}`
    const here = second ? `${seen}; and __fish_seen_subcommand_from ${second}` : seen
    const own = second
      ? [
          line(
            `${seen}; and not __fish_seen_subcommand_from ${words(membersOf(commands, first))}`,
            `-f -a ${second} -d ${quoted(command.summary)}`,
          ),
        ]
      : []
    const shells = command.path === 'completion' ? [line(here, `-f -a '${words(Object.keys(SHELLS))}'`)] : []
    const options = optionsOf(command).map(([name, option]) => {
      const value =
        option.kind === 'flag'
          ? ''
          : option.kind === 'choice'
            ? ` -x -a '${words(option.choices)}'`
            : option.kind === 'file'
              ? ' -r -F'
              : ' -x'
      return line(here, `-l ${name}${value} -d ${quoted(option.help)}`)
    })
    return [...own, ...shells, ...options]
  })
  return [
    '# boltyard completion for fish: boltyard completion fish | source',
    'complete -c boltyard -f',
    ...top,
    ...members,
    '',
  ].join('\n')
}
