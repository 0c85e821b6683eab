export type PathTemplate = { path: string; parameters: string[] }

const ANY_DEPTH = '**'
/** `:id`, with a regular expression in `()` (Express 4, Koa, Fastify) or `{}` (Hono). */
const PARAMETER = /:(\w+)(?:\([^()]*\)|\{[^{}]*\})?/g
/** `*`, `*name` (Express 5), `{id}` (OpenAPI) and `[id]` (Next). */
const WHOLE_SEGMENT = /^(?:\*(\w*)|\{(\w+)\}|\[(\w+)\])$/
/** Optional parts, regular expressions, wildcards inside a segment. */
const INEXPRESSIBLE = /[*?+(){}[\]|\\:]/

/** The path as OpenAPI writes it, or undefined if OpenAPI has no form for it: a parameter is always within one segment. */
export function templateOf(pattern: string): PathTemplate | undefined {
  const parameters: string[] = []
  const add = (name: string): string => {
    const unique = parameters.includes(name) ? `${name}${parameters.length + 1}` : name
    parameters.push(unique)
    return `{${unique}}`
  }
  const segments = pattern.split('/').map((segment) => {
    const whole = WHOLE_SEGMENT.exec(segment)
    if (whole) return add(whole[1] || whole[2] || whole[3] || 'wildcard')
    if (INEXPRESSIBLE.test(segment.replace(PARAMETER, ''))) return undefined
    return segment.replace(PARAMETER, (_, name: string) => add(name))
  })
  return segments.includes(undefined) ? undefined : { path: segments.join('/'), parameters }
}

/**
 * Returns the same text for two templates that differ only in the names of their parameters, because OpenAPI treats them as one
 * path. Decodes `:`, `(` and `)`, which a pattern has to percent-encode to use them literally.
 */
export const shapeOf = (template: string): string =>
  template.replace(/\{[^{}]*\}/g, '{}').replace(/%(?:3A|28|29)/gi, decodeURIComponent)

/**
 * Whether the pattern matches everything that the template stands for. `**` matches any number of segments, anything else exactly
 * one.
 */
export function covers(pattern: string, template: string): boolean {
  const [before, after] = pattern.split(`/${ANY_DEPTH}`, 2)
  const prefix = templateOf(before ?? '')?.path
  if (prefix === undefined || (after !== undefined && after !== '')) return false
  const [wanted, given] = [prefix.split('/'), template.split('/')]
  if (after === undefined ? wanted.length !== given.length : wanted.length > given.length) return false
  return wanted.every((segment, at) => matches(segment, given[at] ?? ''))
}

function matches(wanted: string, given: string): boolean {
  return /^\{\w+\}$/.test(wanted) ? given !== '' : shapeOf(wanted) === shapeOf(given)
}
