import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { GROUPS } from './src/command.ts'
import { COMMANDS } from './src/commands.ts'
import { helpOn } from './src/help.ts'

/** docs/cli.md is what the commands say of themselves; `--check` only says whether it is current. */
const PATH = fileURLToPath(new URL('../docs/cli.md', import.meta.url))

const fenced = (topic: string): string => `\`\`\`text\n${helpOn(topic, COMMANDS)}\`\`\`\n`
const groups = Object.keys(GROUPS)
const sections = COMMANDS.flatMap(({ path }, index) => {
  const group = groups.find((name) => path.startsWith(`${name} `))
  const isFirst = group !== undefined && !COMMANDS[index - 1]?.path.startsWith(`${group} `)
  return [
    ...(isFirst ? [`## boltyard ${group}\n\n${GROUPS[group]}.\n`] : []),
    `${group ? '###' : '##'} boltyard ${path}\n\n${fenced(path)}`,
  ]
})
const text = [
  '# The command line\n\nGenerated from `boltyard --help` by `npm run docs:cli`; change it in `cli/src/commands.ts`.\n',
  `## boltyard\n\n${fenced('')}`,
  ...sections,
].join('\n')

if (process.argv.includes('--check')) {
  if (text !== readFileSync(PATH, 'utf8')) {
    process.stderr.write('docs/cli.md is not current: npm run docs:cli\n')
    process.exit(1)
  }
} else writeFileSync(PATH, text)
