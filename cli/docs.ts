import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { GROUPS } from './src/command.ts'
import { COMMANDS } from './src/commands.ts'
import { helpOn } from './src/help.ts'

/** Generates docs/cli.md from the help texts. With `--check`, only reports whether it is up to date. */
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
  '# The command line\n\nGenerated from `boltyard --help` by `npm run docs:cli`. Edit `cli/src/commands.ts`, not this file.\n',
  `## boltyard\n\n${fenced('')}`,
  ...sections,
].join('\n')

if (process.argv.includes('--check')) {
  if (text !== readFileSync(PATH, 'utf8')) {
    process.stderr.write('docs/cli.md is out of date. Run npm run docs:cli.\n')
    process.exit(1)
  }
} else writeFileSync(PATH, text)
