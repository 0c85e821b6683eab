import { type Command, GLOBAL_OPTIONS, GROUPS, type Option } from './command.ts'

const WIDTH = 100

/** Of everything (''), of a group or of one command. Examples first: they are what people look for. */
export function helpOn(topic: string, commands: Command[]): string {
  const command = commands.find(({ path }) => path === topic)
  return (command ? commandHelp(command) : topic === '' ? overview(commands) : groupHelp(topic, commands)).join('\n')
}

const EXITS = `0 ok · 1 other · 2 usage or refused input · 3 network, timeout, or the service or node is unavailable · 4 key or scope · 5 not found · 6 rate limited · 7 credit · 8 state conflict · 130 interrupted`

function overview(commands: Command[]): string[] {
  const rows = commands.filter(({ path }) => !path.includes(' ')).map(({ path, summary }): [string, string] => [path, summary])
  return [
    'Examples',
    ...examples([
      { line: 'export SERVICE_API_KEY=…', does: 'the key, from the dashboard or first-run.json' },
      { line: 'boltyard nodes create --name shop --credentials-file shop.json --wait', does: 'a node, ready to be paid' },
      {
        line: 'boltyard payments create --node <id> --amount-sat 100 --description "Weather report"',
        does: 'the challenge for your own 402',
      },
      {
        line: 'boltyard pay https://example.com/weather --password-file shop.json',
        does: 'fetch what costs something, from that node',
      },
    ]),
    '',
    'Usage',
    '  boltyard <command> [options]',
    '',
    'Commands',
    ...columns([...Object.entries(GROUPS), ...rows].sort()),
    '',
    '  boltyard <command> --help says more about each.',
    '',
    'Options everywhere',
    ...columns(optionRows({ ...GLOBAL_OPTIONS, version: { kind: 'flag', help: 'which boltyard this is; also -v' } })),
    '',
    'Environment',
    ...wrap(
      'SERVICE_API_KEY holds the API key, SERVICE_BASE_URL the address of the service, which ends in /v1. Where they are not set, BOLTYARD_API_KEY and BOLTYARD_BASE_URL count.',
      2,
    ),
    '',
    'Output',
    ...wrap(
      'A table on a terminal, JSON when piped or with --json. Data goes to stdout, all else to stderr; errors off the terminal are one line of JSON with code, message and requestId. NO_COLOR is heeded.',
      2,
    ),
    '',
    'Exit codes',
    ...wrap(EXITS, 2),
    '',
  ]
}

function groupHelp(group: string, commands: Command[]): string[] {
  const members = commands.filter(({ path }) => path.startsWith(`${group} `))
  return [
    'Examples',
    ...examples(members.flatMap(({ examples: [first] }) => first ?? []).slice(0, 5)),
    '',
    'Usage',
    `  boltyard ${group} <command> [options]`,
    '',
    `${GROUPS[group]}.`,
    '',
    'Commands',
    ...columns(members.map(({ path, summary }) => [path, summary])),
    '',
  ]
}

function commandHelp({ path, summary, about, examples: lines, positionals = [], options = {}, scope }: Command): string[] {
  const words = positionals.map(({ name, optional }) => (optional ? `[<${name}>]` : `<${name}>`))
  return [
    'Examples',
    ...examples(lines),
    '',
    'Usage',
    `  ${['boltyard', path, ...words, '[options]'].join(' ')}`,
    '',
    ...wrap(`${summary}.${about ? ` ${about}` : ''}${scope ? ` The key needs ${scope}.` : ''}`, 0),
    '',
    ...(positionals.length === 0 ? [] : ['Arguments', ...columns(positionals.map(({ name, help }) => [`<${name}>`, help])), '']),
    ...(Object.keys(options).length === 0 ? [] : ['Options', ...columns(optionRows(options)), '']),
    'Options everywhere',
    ...columns(optionRows(GLOBAL_OPTIONS)),
    '',
  ]
}

const examples = (lines: Command['examples']): string[] => lines.flatMap(({ line, does }) => [`  # ${does}`, `  ${line}`])

function optionRows(options: Record<string, Option>): [string, string][] {
  return Object.entries(options).map(([name, option]) => {
    const value = option.kind === 'flag' ? '' : option.kind === 'choice' ? ` ${option.choices.join('|')}` : ` <${option.value}>`
    return [`--${name}${value}`, option.help]
  })
}

function columns(rows: [string, string][]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length)) + 4
  return rows.flatMap(([left, right]) => {
    const [first = '', ...rest] = wrap(right, width)
    return [`  ${left}`.padEnd(width) + first.trimStart(), ...rest]
  })
}

function wrap(text: string, indent: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(' '.repeat(indent) + word)
  }
  return lines
}
