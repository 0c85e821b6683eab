import { type Command, GLOBAL_OPTIONS, GROUPS, type Option } from './command.ts'

const WIDTH = 100

/** Help for all commands (''), a group or one command. Examples come first because people look for them. */
export function helpOn(topic: string, commands: Command[]): string {
  const command = commands.find(({ path }) => path === topic)
  return (command ? commandHelp(command) : topic === '' ? overview(commands) : groupHelp(topic, commands)).join('\n')
}

const EXITS = `0 success · 1 other error · 2 usage or invalid input · 3 network, timeout, or unavailable service or node · 4 key or scope · 5 not found · 6 rate limited · 7 credit · 8 state conflict · 9 check found problems · 130 interrupted`

function overview(commands: Command[]): string[] {
  const rows = commands.filter(({ path }) => !path.includes(' ')).map(({ path, summary }): [string, string] => [path, summary])
  return [
    'Examples',
    ...examples([
      { line: 'export SERVICE_API_KEY=…', does: 'set the API key, from the dashboard or first-run.json' },
      {
        line: 'boltyard nodes create --name shop --credentials-file shop.json --wait',
        does: 'create a node and wait until it is ready',
      },
      {
        line: 'boltyard payments create --node <id> --amount-sat 100 --description "Weather report"',
        does: 'create the challenge for your own 402 response',
      },
      {
        line: 'boltyard pay https://example.com/weather --password-file shop.json',
        does: 'fetch a URL and pay for it from that node',
      },
      {
        line: 'boltyard listen --forward-to http://localhost:3000/hook',
        does: 'send events to your program, as a webhook would',
      },
    ]),
    '',
    'Usage',
    '  boltyard <command> [options]',
    '',
    'Commands',
    ...columns([...Object.entries(GROUPS), ...rows].sort()),
    '',
    '  Run boltyard <command> --help for details.',
    '',
    'Global options',
    ...columns(optionRows({ ...GLOBAL_OPTIONS, version: { kind: 'flag', help: 'show the version; also -v' } })),
    '',
    'Environment',
    ...wrap(
      'SERVICE_API_KEY is the API key and SERVICE_BASE_URL the address of the service, ending in /v1. If they are not set, BOLTYARD_API_KEY and BOLTYARD_BASE_URL are used.',
      2,
    ),
    '',
    'Output',
    ...wrap(
      'Tables on a terminal; JSON when piped or with --json. Data goes to stdout, everything else to stderr. Without a terminal, an error is one line of JSON with code, message and requestId. NO_COLOR is supported. If stdout is closed (>&-), the output is lost and the exit code is still 0, because Node.js cannot tell it from >/dev/null; commands that print credentials fail in both cases.',
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
    ...wrap(`${summary}.${about ? ` ${about}` : ''}${scope ? ` Requires the scope ${scope}.` : ''}`, 0),
    '',
    ...(positionals.length === 0 ? [] : ['Arguments', ...columns(positionals.map(({ name, help }) => [`<${name}>`, help])), '']),
    ...(Object.keys(options).length === 0 ? [] : ['Options', ...columns(optionRows(options)), '']),
    'Global options',
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
