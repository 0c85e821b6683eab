import { canonicalSegment } from './path.ts'

/** What a route matches. */
export type Pattern = {
  /** Undefined: every method. */
  methods: readonly string[] | undefined
  path: string
  /** Undefined: any one segment. */
  segments: readonly (string | undefined)[]
  /** Whether it ends with `**`. */
  hasRest: boolean
}

const FORM = /^(?:([^\s/]+) +)?(\/\S*)$/
/** Not CONNECT, which is for tunnels, nor TRACE: a response to it would show the headers that the proxy has added. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'PROPFIND', 'REPORT', 'SEARCH', 'PURGE']
const NAME = /^:[A-Za-z_][A-Za-z0-9_]*$/

/** The pattern, or what is wrong with its text. */
export function patternOf(match: string): Pattern | string {
  const [, verbs, path = ''] = FORM.exec(match) ?? []
  if (path === '') return 'must be a path such as /articles/:id, optionally after one or more methods: GET|POST /search'
  const methods = verbs?.split('|')
  const unknown = methods?.find((method) => !METHODS.includes(method))
  if (unknown !== undefined) return `must have methods in capitals, separated by |, out of ${METHODS.join(', ')}`
  const parts = path.slice(1).split('/')
  const hasRest = parts.at(-1) === '**'
  const segments: (string | undefined)[] = []
  for (const [index, part] of (hasRest ? parts.slice(0, -1) : parts).entries()) {
    const segment = segmentOf(part, index === parts.length - 1)
    if ('wrong' in segment) return segment.wrong
    segments.push(segment.text)
  }
  return { methods, path, segments, hasRest }
}

function segmentOf(part: string, isLast: boolean): { text: string | undefined } | { wrong: string } {
  if (part === '*' || NAME.test(part)) return { text: undefined }
  if (part === '' && isLast) return { text: '' }
  if (part === '**') return { wrong: 'can have ** only at the end' }
  if (part.startsWith(':') || part.includes('*')) return { wrong: 'must have :name and * as whole segments: /files/:name' }
  const text = /^[\x21-\x7e]+$/.test(part) && !/[?#]/.test(part) ? canonicalSegment(part) : undefined
  if (text === undefined)
    return {
      wrong: 'must be a path without empty segments, dots, query, fragment, ";", "\\" and %2F; percent-encode what is not ASCII',
    }
  return { text }
}

export function matchesPath({ segments, hasRest }: Pattern, requested: readonly string[]): boolean {
  if (requested.length < segments.length || (!hasRest && requested.length > segments.length)) return false
  return segments.every((segment, index) => (segment === undefined ? requested[index] !== '' : segment === requested[index]))
}

/** A route for GET is also for HEAD. */
export function takesMethod({ methods }: Pattern, method: string): boolean {
  return methods === undefined || methods.includes(method) || (method === 'HEAD' && methods.includes('GET'))
}

/** Whether a later route can never match, because an earlier one takes all of its requests. */
export function hides(earlier: Pattern, later: Pattern): boolean {
  if (earlier.methods && !later.methods?.every((method) => takesMethod(earlier, method))) return false
  if (later.segments.length < earlier.segments.length) return false
  if (!earlier.hasRest && (later.hasRest || later.segments.length > earlier.segments.length)) return false
  return earlier.segments.every((segment, index) =>
    segment === undefined ? later.segments[index] !== '' : segment === later.segments[index],
  )
}
