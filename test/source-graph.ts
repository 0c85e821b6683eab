import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Every source file of the repository, and what it imports. */

export const root = fileURLToPath(new URL('..', import.meta.url))

export const ROOMS = [
  'protocol',
  'contract',
  'server',
  'sandboxd',
  'sdk',
  'cli',
  'dashboard',
  'site',
  'deploy',
  'examples',
  'bench',
  'test',
  'testing',
]

export type SourceFile = { path: string; text: string; lines: number; isTest: boolean }
/** `to` is a path from the root, or the name of a package. */
export type Import = { from: string; to: string; isFile: boolean }

const NOT_OURS = /(^|\/)(node_modules|dist|\.next)\//
const SOURCE = /\.(tsx?|mjs|cjs)$/

export const files: SourceFile[] = ROOMS.filter((room) => existsSync(join(root, room))).flatMap((room) =>
  readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
    .map((path) => `${room}/${path}`)
    .filter((path) => SOURCE.test(path) && !NOT_OURS.test(path))
    .map((path) => {
      const text = readFileSync(join(root, path), 'utf8')
      const isTest = /^(test|testing|bench|examples)\/|\/test\//.test(path)
      return { path, text, lines: text.split('\n').length - 1, isTest }
    }),
)

const STATEMENT = /^(?:import|export)\s[^'`;]*?\bfrom\s+'([^']+)'/gm
const BARE = /^import\s+'([^']+)'/gm
const CALL = /\bimport\(\s*'([^']+)'/g

export const imports: Import[] = files.flatMap(({ path: from, text }) => {
  // Template literals may contain example programs, whose imports do not count.
  const code = text.replace(/`[^`]*`/g, '``')
  const names = [STATEMENT, BARE, CALL].flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[1] ?? ''))
  return names.map((name) => {
    const isFile = name.startsWith('.')
    return { from, to: isFile ? relative(root, resolve(root, dirname(from), name)) : name, isFile }
  })
})

/** `@scope/name` or `name`, without the rest of the path. */
export const packageOf = (name: string): string => name.split('/', name.startsWith('@') ? 2 : 1).join('/')

/** One path for each group of files that import each other, types included. */
export function cycles(): string[] {
  const next = new Map<string, string[]>()
  for (const { from, to, isFile } of imports) if (isFile) next.set(from, [...(next.get(from) ?? []), to])
  const done = new Set<string>()
  const found: string[] = []
  const visit = (file: string, trail: string[]): void => {
    if (trail.includes(file)) return void found.push([...trail.slice(trail.indexOf(file)), file].join(' → '))
    if (done.has(file)) return
    for (const target of next.get(file) ?? []) visit(target, [...trail, file])
    done.add(file)
  }
  for (const { path } of files) visit(path, [])
  return found
}
