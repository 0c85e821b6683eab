import type { Language } from './program-snippets.ts'

export type CodeLanguage = Language | 'json' | 'http'
type Kind = 'word' | 'text' | 'number' | 'name' | 'comment'
export type Token = { kind: Kind | undefined; text: string }

const DOUBLE = String.raw`"(?:[^"\\\n]|\\.)*"`
const SINGLE = String.raw`'(?:[^'\\\n]|\\.)*'`
const NUMBER = String.raw`\b\d[\d_]*(?:\.\d+)?\b`
const CALL = String.raw`\b[A-Za-z_]\w*(?=\()`
const words = (list: string): string => `\\b(?:${list.replaceAll(' ', '|')})\\b`

/** The first alternative that matches wins. */
const RULES: Record<CodeLanguage, Partial<Record<Kind, string>>> = {
  json: {
    name: `${DOUBLE}(?=\\s*:)`,
    text: DOUBLE,
    number: String.raw`-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b`,
    word: words('true false null'),
  },
  http: {
    word: String.raw`^(?:GET|POST|PUT|PATCH|DELETE)\b|^HTTP/[\d.]+`,
    name: String.raw`^[A-Za-z][\w-]*(?=:)`,
    number: String.raw`(?<=^HTTP/[\d.]+ )\d{3}\b`,
  },
  // Shell commands, with JSON in here-documents.
  curl: {
    comment: String.raw`(?<=^|\s)#.*`,
    name: String.raw`${DOUBLE}(?=\s*:)|\$\{?\w+\}?`,
    text: `${SINGLE}|${DOUBLE}`,
    word: String.raw`^(?:curl|boltyard|export)\b|(?<=\s)--?[A-Za-z][\w-]*`,
    number: String.raw`(?<=[\s=])\d+\b`,
  },
  typescript: {
    comment: String.raw`\/\/.*|\/\*[\s\S]*?\*\/`,
    text: `${SINGLE}|${DOUBLE}|${'`(?:[^`\\\\]|\\\\.)*`'}`,
    word: words(
      'import from export const let function return await async new if else for of in typeof true false null undefined',
    ),
    name: CALL,
    number: NUMBER,
  },
  python: {
    comment: '#.*',
    text: `f?(?:${DOUBLE}|${SINGLE})`,
    word: words('import from as with try except def return for in if else print None True False and or not'),
    name: CALL,
    number: NUMBER,
  },
}

const compiled = new Map<CodeLanguage, RegExp>()

function patternOf(language: CodeLanguage): RegExp {
  const known = compiled.get(language)
  if (known) return known
  const groups = Object.entries(RULES[language]).map(([kind, rule]) => `(?<${kind}>${rule})`)
  const pattern = new RegExp(groups.join('|'), 'gm')
  compiled.set(language, pattern)
  return pattern
}

/** Splits code into parts with a color. Joined, the parts are always exactly the code. */
export function tokensOf(code: string, language: CodeLanguage): Token[] {
  const tokens: Token[] = []
  let at = 0
  for (const match of code.matchAll(patternOf(language))) {
    if (match.index > at) tokens.push({ kind: undefined, text: code.slice(at, match.index) })
    const [kind] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? []
    tokens.push({ kind: kind as Kind | undefined, text: match[0] })
    at = match.index + match[0].length
  }
  if (at < code.length) tokens.push({ kind: undefined, text: code.slice(at) })
  return tokens
}
