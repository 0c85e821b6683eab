import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { placeOf } from '../../../sdk/src/proxy/config/config.ts'
import { settingsOf } from '../../../sdk/src/proxy/config/settings.ts'
import { type ConfigMistake, type ProxyConfig, ProxyConfigError } from '../../../sdk/src/proxy/index.ts'
import { Failure, usage } from '../failure.ts'
import { isSystemError, reasonOf } from '../files.ts'
import { nearest } from '../suggest.ts'
import { sanitize } from '../terminal.ts'
import { withEnvironment } from './environment.ts'
import { withOpenapi } from './openapi-file.ts'

type Mistake = { line: number; column: number; path: string; message: string }
type Document = ReturnType<typeof parseDocument>

export type ConfigFile = {
  config: ProxyConfig
  /** `file:line:column` of a setting. */
  at: (setting: ConfigMistake['path']) => string
}

/** The checked content of a file. All of its mistakes are reported at once. */
export function readConfig(path: string): ConfigFile {
  const lines = new LineCounter()
  const document = parseDocument(textOf(path), { lineCounter: lines, prettyErrors: false })
  const found = [...document.errors, ...document.warnings].map(({ pos, message }) => at(lines, pos[0], '', message))
  if (found.length > 0) throw invalid(path, found)
  const mistakes: ConfigMistake[] = []
  const written = withEnvironment(contentOf(document, mistakes), process.env, mistakes) as ProxyConfig
  const config = withOpenapi(written, dirname(path), mistakes)
  mistakes.push(...mistakesIn(config, mistakes))
  const placed = (setting: ConfigMistake['path']): string =>
    placeIn(path, at(lines, offsetOf(document, { path: setting, message: '' }), '', ''))
  if (mistakes.length === 0) return { config, at: placed }
  throw invalid(
    path,
    mistakes.map((mistake) => at(lines, offsetOf(document, mistake), placeOf(mistake.path), messageOf(mistake))),
  )
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usage(`Cannot read the configuration from ${sanitize(path)}: ${reasonOf(error)}.`)
  }
}

function contentOf(document: Document, mistakes: ConfigMistake[]): unknown {
  try {
    return document.toJS()
  } catch (error) {
    mistakes.push({ path: [], message: (error as Error).message })
    return undefined
  }
}

/** Leaves out values that already have a mistake, such as one whose environment variable is not set. */
function mistakesIn(config: ProxyConfig, known: readonly ConfigMistake[]): readonly ConfigMistake[] {
  try {
    settingsOf(config)
    return []
  } catch (error) {
    if (!(error instanceof ProxyConfigError)) throw error
    const places = known.map(({ path }) => placeOf(path))
    return error.mistakes.filter(({ path }) => !places.includes(placeOf(path)))
  }
}

function messageOf({ path, message, known }: ConfigMistake): string {
  const suggestion = known && nearest(String(path.at(-1)), known)
  return suggestion === undefined ? message : `${message} Did you mean ${suggestion}?`
}

/** The place of a mistake: the value, the name if the name is wrong, or the enclosing value if something is missing. */
function offsetOf({ contents }: Document, { path, known }: ConfigMistake): number {
  let node: unknown = contents
  let offset = 0
  for (const [index, step] of path.entries()) {
    const isName = known !== undefined && index === path.length - 1
    const pair = isMap(node)
      ? node.items.find(({ key }) => (isScalar(key) ? String(key.value) : key) === String(step))
      : undefined
    node = pair ? (isName ? pair.key : (pair.value ?? pair.key)) : isSeq(node) ? node.items[Number(step)] : undefined
    if (!isNode(node)) break
    offset = node.range?.[0] ?? offset
  }
  return path.length === 0 && isNode(contents) ? (contents.range?.[0] ?? 0) : offset
}

function at(lines: LineCounter, offset: number, path: string, message: string): Mistake {
  const { line, col } = lines.linePos(offset)
  return { line: Math.max(1, line), column: Math.max(1, col), path, message }
}

const placeIn = (file: string, { line, column }: Mistake): string => `${sanitize(file)}:${line}:${column}`

function invalid(file: string, mistakes: Mistake[]): Failure {
  const inOrder = mistakes.sort((a, b) => a.line - b.line || a.column - b.column)
  const next = inOrder.map(
    (mistake) => `${placeIn(file, mistake)}  ${mistake.path === '' ? '' : `${mistake.path}: `}${mistake.message}`,
  )
  const count = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`
  return new Failure('usage', 'invalid_config', `${sanitize(file)} has ${count}.`, {
    next,
    isList: true,
    details: { mistakes: inOrder },
  })
}
